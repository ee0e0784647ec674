"""The entry and the exit queue of validators."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import Endpoint, Shape
from beaconframes.schema import Count, Gwei, Table


class ValidatorQueue(Table):
    """The validator queues. One row per response."""

    validators_count = Count("Active validators.", key=True, wire="validatorscount")
    entering_count = Count(
        "New public keys among the waiting deposits; top-ups do not count.",
        wire="beaconchain_entering",
    )
    exiting_count = Count("Validators waiting to exit.", wire="beaconchain_exiting")
    entering_balance_gwei = Gwei(
        "Amount waiting to enter, top-ups included; null before Electra.",
        wire="beaconchain_entering_balance",
        optional=True,
        minimum=0,
    )
    exiting_balance_gwei = Gwei(
        "Amount waiting to leave; null before Electra.",
        wire="beaconchain_exiting_balance",
        optional=True,
        minimum=0,
    )


VALIDATOR_QUEUE = Endpoint(
    "validator_queue",
    route="GET /api/v1/validators/queue",
    table=ValidatorQueue,
    shape=Shape.OBJECT,
)


@loader(VALIDATOR_QUEUE)
def load_validator_queue() -> Values:
    """Load the number and the balance of validators that wait to enter and to leave, one row.

    Returns
    -------
    polars.DataFrame
        One row. Since Electra, deposits wait, not validators: one public key may wait with several
        deposits, so read the balances rather than the counts.

    Notes
    -----
    ``GET /api/v1/validators/queue``. Never final.
    """
    return {}
