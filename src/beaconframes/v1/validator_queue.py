"""The queues of validators that enter and leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.client import load
from beaconframes.endpoint import Endpoint, Shape
from beaconframes.schema import Count, Gwei, Table

if TYPE_CHECKING:
    from typing import Unpack

    import polars as pl

    from beaconframes.client import Explorer, Options


class ValidatorQueue(Table):
    """The queues of validators. One row per reading."""

    validators_count = Count("Active validators.", key=True, wire="validatorscount")
    entering_count = Count(
        "New public keys among the deposits that wait; top-ups are none.",
        wire="beaconchain_entering",
    )
    exiting_count = Count("Validators that wait to leave.", wire="beaconchain_exiting")
    entering_balance_gwei = Gwei(
        "What waits to enter, top-ups included; null before Electra.",
        wire="beaconchain_entering_balance",
    )
    exiting_balance_gwei = Gwei(
        "What waits to leave; null before Electra.", wire="beaconchain_exiting_balance"
    )


VALIDATOR_QUEUE = Endpoint(
    "validator_queue",
    route="GET /api/v1/validators/queue",
    table=ValidatorQueue,
    shape=Shape.OBJECT,
)


def load_validator_queue(
    *, explorer: Explorer | None = None, **options: Unpack[Options]
) -> pl.DataFrame:
    """Load how many validators, and how much, wait to enter and to leave: one row.

    Parameters
    ----------
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.
    options
        See `load_validators`.

    Returns
    -------
    polars.DataFrame
        One row. Since Electra the count of those that enter says little: deposits wait, and one
        key may wait for much.

    Notes
    -----
    ``GET /api/v1/validators/queue``. Never final.
    """
    return load(VALIDATOR_QUEUE, explorer, options)
