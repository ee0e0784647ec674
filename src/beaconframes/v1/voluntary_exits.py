"""Voluntary exits in blocks."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality
from beaconframes.schema import Consecutive, Count, Epoch, Hex, Slot, SlotTime, Table
from beaconframes.v1._slot_items import SlotItems


class VoluntaryExits(Table):
    """Voluntary exits in blocks. One row per included exit."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex(
        "Root of the block; null if the service does not report it.",
        key=True,
        none=("0x00", "0x01", "0x"),
        nullable=True,
    )
    block_index = Count("Position among the voluntary exits of the block, from 0.", key=True)
    time = SlotTime("Start of the block's slot, UTC.", of="block_slot")
    epoch = Epoch("First epoch in which the exit message is valid.")
    validator_index = Count("Validator that exits.", wire="validatorindex")
    signature = Hex("Signature of the exit message.")

    invariants = (Consecutive("block_index", ("block_slot", "block_root"), first=0),)


VOLUNTARY_EXITS = Endpoint(
    "voluntary_exits",
    route="GET /api/v1/slot/{slot}/voluntaryexits",
    table=VoluntaryExits,
    parameters=(SlotItems("slots", VoluntaryExits.block_slot),),
    finality=Finality.AT_FINALITY,
)


@loader(VOLUNTARY_EXITS)
def load_voluntary_exits(slots: Subjects) -> Values:
    """Load the voluntary exits in blocks, one row per included exit.

    One request per slot. A slot without exits, or without a block, has no rows.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; ``"latest"`` is the latest processed slot.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_slot``, ``block_root``, ``block_index``. A validator leaves at its
        ``exit_epoch`` (`load_validators`), not at ``epoch``.

    Notes
    -----
    ``GET /api/v1/slot/{slot}/voluntaryexits``. Final once the epoch of the slot is finalized.

    A gap in the numbers of a block's exits raises ``IntegrityError``. The response does not
    state how many there are: compare with ``voluntary_exits_count`` of `load_slots`.
    """
    return {"slots": slots}
