"""Slots with withdrawals of validators."""

from __future__ import annotations

from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    Envelope,
    Finality,
    SlotTimeRange,
    ValidatorSelector,
)
from beaconframes.schema import Slot, Table
from beaconframes.time_range import Moment


class WithdrawalSlots(Table):
    """Slots with withdrawals. One row per record, with all fields of the service."""

    first_slot = Slot("First slot of the searched range.", context="range.slot.start")
    last_slot = Slot("Last slot of the searched range.", context="range.slot.end")

    keeps_every_field = True


WITHDRAWAL_SLOTS = Endpoint(
    "withdrawal_slots",
    route="POST /api/v2/ethereum/validators/withdrawal-slots",
    table=WithdrawalSlots,
    parameters=(ChainName(), ValidatorSelector(batched="refused"), SlotTimeRange()),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    envelope=Envelope.V2,
)


@loader(WITHDRAWAL_SLOTS)
def load_withdrawal_slots(
    validators: SubjectsOrSet, *, since: Moment | None = None, until: Moment | None = None
) -> Values:
    """Load the slots with withdrawals of validators, one row per record of the service.

    One request per page. At most 100 validators (20 on the smallest plans) or a dashboard of any
    size: rows may not name their validator, so rows of several requests could not be distinguished.
    `beaconframes.load_validator_withdrawals` loads every withdrawal, with documented columns.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    since, until
        First and last slot, inclusive: a slot, a negative number counting back from the latest, a
        date, a datetime or ``"30d"``. Default: from genesis to the latest slot.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        In the order of the service. Every field of a record is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/withdrawal-slots``. Its request is assumed to be that of
    ``validators/proposal-slots``. The shape of its response is not published: names and types of
    columns follow from the response. If the service does not have it yet, the call raises
    `NotServed`.
    """
    return {"validators": validators, "since": since, "until": until}
