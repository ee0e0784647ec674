"""Slots in which validators will have duties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import Cursor, Endpoint, Envelope, OnChain, ValidatorsIn
from beaconframes.schema import Slot, Table
from beaconframes.v2._subjects import Validators

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class UpcomingDutySlots(Table):
    """Slots with duties to come. One row per record of the service, with whatever it tells."""

    first_slot = Slot("First slot that the service looked at.", context="range.slot.start")
    last_slot = Slot("Last slot that it looked at.", context="range.slot.end")

    keeps_every_field = True


UPCOMING_DUTY_SLOTS = Endpoint(
    "upcoming_duty_slots",
    route="POST /api/v2/ethereum/validators/upcoming-duty-slots",
    table=UpcomingDutySlots,
    parameters=(OnChain(), ValidatorsIn(batched="refused")),
    pagination=Cursor(),
    envelope=Envelope.V2,
)


@overload
def load_upcoming_duty_slots(validators: Validators, **options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_upcoming_duty_slots(validators: Validators, **options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_upcoming_duty_slots(validators: Validators, **options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_upcoming_duty_slots(
    validators: Validators,
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the slots in which validators will have duties, one row per record of the service.

    One request a page, of 100 validators at most (20 on the smallest plans): rows may not say whose
    they are, so that those of several requests could not be told apart. A dashboard may be of any
    size.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.
    options
        See `load_validators`.

    Returns
    -------
    polars.DataFrame
        In the order of the service. Every field of its records is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/upcoming-duty-slots``. Its request is taken to be that of
    validators/sync-committee-periods, and the shape of its answer is not published: names and types
    follow from what comes. A service that does not have it yet raises `NotServed`.
    """
    return load(
        UPCOMING_DUTY_SLOTS,
        {"validators": validators},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
