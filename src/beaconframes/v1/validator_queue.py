"""The entry and the exit queue of validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import Endpoint, Shape
from beaconframes.schema import Count, Gwei, Table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


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
    )
    exiting_balance_gwei = Gwei(
        "Amount waiting to leave; null before Electra.",
        wire="beaconchain_exiting_balance",
        optional=True,
    )


VALIDATOR_QUEUE = Endpoint(
    "validator_queue",
    route="GET /api/v1/validators/queue",
    table=ValidatorQueue,
    shape=Shape.OBJECT,
)


@overload
def load_validator_queue(**options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_validator_queue(**options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_validator_queue(**options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_validator_queue(
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the number and the balance of validators that wait to enter and to leave, one row.

    Parameters
    ----------
    explorer, strict, lazy, frame, max_requests
        See `load_validators`.

    Returns
    -------
    polars.DataFrame
        One row. Since Electra, deposits wait, not validators: one public key may wait with several
        deposits, so read the balances rather than the counts.

    Notes
    -----
    ``GET /api/v1/validators/queue``. Never final.
    """
    return load(
        VALIDATOR_QUEUE,
        {},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
