"""Deposits of slots."""

from __future__ import annotations

from beaconframes.client import Subjects, SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    Envelope,
    Finality,
    SlotSelector,
    ValidatorSelector,
)
from beaconframes.schema import Hex, Slot, Table


class SlotDeposits(Table):
    """Deposits of slots. One row per deposit, with all fields of the service."""

    slot = Slot("Requested slot.", context=("request.slot.number", "range.slot.start"))
    block_root = Hex("Requested block root, if any.", context="request.slot.root")

    keeps_every_field = True


SLOT_DEPOSITS = Endpoint(
    "slot_deposits",
    route="POST /api/v2/ethereum/slot/deposits",
    table=SlotDeposits,
    parameters=(ChainName(), SlotSelector(SlotDeposits.slot), ValidatorSelector(optional=True)),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    envelope=Envelope.V2,
)


@loader(SLOT_DEPOSITS)
def load_slot_deposits(slots: Subjects, validators: SubjectsOrSet | None = None) -> Values:
    """Load the deposits of slots, one row per deposit.

    One slot per call and ten rows per request. `beaconframes.load_slot_deposits` and
    `beaconframes.load_deposits` load deposits from V1, with documented columns.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; or block roots. ``"latest"`` and
        ``"finalized"`` are resolved to a number first.
    validators
        Only rows of these validators: indices, public keys, or a set; see `load_validators`.
        Default: all.

    Returns
    -------
    polars.DataFrame
        In the order of the service. Every field of a record is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/slot/deposits``. Its request is assumed to be that of
    ``slot/withdrawals``. The shape of its response is not published: names and types of columns
    follow from the response. If the service does not have it yet, the call raises `NotServed`.
    """
    return {"slots": slots, "validators": validators}
