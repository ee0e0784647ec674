"""Places of validators in queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import ChainName, Cursor, Endpoint, Envelope, ValidatorSelector
from beaconframes.schema import Epoch, Table
from beaconframes.v2._arguments import SubjectsOrSet

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class ValidatorQueues(Table):
    """Places in queues. One row per record, with all fields of the service."""

    epoch = Epoch("Epoch of the observation.", context="range.epoch.end")

    keeps_every_field = True


VALIDATOR_QUEUES = Endpoint(
    "validator_queues",
    route="POST /api/v2/ethereum/validators/queues",
    table=ValidatorQueues,
    parameters=(ChainName(), ValidatorSelector()),
    pagination=Cursor(sized=False),
    envelope=Envelope.V2,
)


@overload
def load_validator_queues(validators: SubjectsOrSet, **options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_validator_queues(validators: SubjectsOrSet, **options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_validator_queues(validators: SubjectsOrSet, **options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_validator_queues(
    validators: SubjectsOrSet,
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the places of validators in queues, one row per record of the service.

    100 validators per request (20 on the smallest plans). Times are estimates from the current
    churn. `load_queues` loads the queues as a whole.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    explorer, strict, lazy, frame, max_requests
        See `beaconframes.load_validators`.

    Returns
    -------
    polars.DataFrame
        In the order of the service. Every field of a record is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/queues``. Its request is assumed to be that of
    ``validators/sync-committee-periods``. The shape of its response is not published: names and
    types of columns follow from the response. If the service does not have it yet, the call raises
    `NotServed`.
    """
    return load(
        VALIDATOR_QUEUES,
        {"validators": validators},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
