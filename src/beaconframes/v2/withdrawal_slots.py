"""Slots with withdrawals of validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.calendar import Moment
from beaconframes.client import EagerRange, Explorer, Frame, LazyRange, PandasRange, load
from beaconframes.endpoint import (
    Cursor,
    Endpoint,
    Envelope,
    Final,
    OnChain,
    TimestampsIn,
    ValidatorsIn,
)
from beaconframes.schema import Slot, Table
from beaconframes.v2._subjects import Validators

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class WithdrawalSlots(Table):
    """Slots with withdrawals. One row per record of the service, with whatever it tells."""

    first_slot = Slot("First slot that the service looked at.", context="range.slot.start")
    last_slot = Slot("Last slot that it looked at.", context="range.slot.end")

    keeps_every_field = True


WITHDRAWAL_SLOTS = Endpoint(
    "withdrawal_slots",
    route="POST /api/v2/ethereum/validators/withdrawal-slots",
    table=WithdrawalSlots,
    parameters=(OnChain(), ValidatorsIn(batched="refused"), TimestampsIn()),
    pagination=Cursor(),
    finality=Final.AT_FINALITY,
    envelope=Envelope.V2,
)


@overload
def load_withdrawal_slots(
    validators: Validators, **options: Unpack[EagerRange]
) -> pl.DataFrame: ...
@overload
def load_withdrawal_slots(validators: Validators, **options: Unpack[LazyRange]) -> pl.LazyFrame: ...
@overload
def load_withdrawal_slots(
    validators: Validators, **options: Unpack[PandasRange]
) -> pd.DataFrame: ...
def load_withdrawal_slots(
    validators: Validators,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the slots that had withdrawals of validators, one row per record of the service.

    One request a page, of 100 validators at most (20 on the smallest plans): rows may not say whose
    they are, so that those of several requests could not be told apart. A dashboard may be of any
    size. `beaconframes.load_validator_withdrawals` has every withdrawal, in described columns.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    since, until
        First and last slot, both inclusive: a slot, a negative number counting back from the
        latest, a date, a datetime or ``"30d"``. Left out: since the chain began, until now.
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
    ``POST /api/v2/ethereum/validators/withdrawal-slots``. Its request is taken to be that of
    validators/proposal-slots, and the shape of its answer is not published: names and types follow
    from what comes. A service that does not have it yet raises `NotServed`.
    """
    return load(
        WITHDRAWAL_SLOTS,
        {"validators": validators, "since": since, "until": until},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
