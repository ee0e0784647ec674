"""Proposer slashings in blocks."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality
from beaconframes.schema import Consecutive, Count, Hex, Slot, SlotTime, Table
from beaconframes.v1._slot_items import SlotItems


class ProposerSlashings(Table):
    """Proposer slashings in blocks. One row per included proof."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex(
        "Root of the block; null if the service does not report it.",
        key=True,
        none=("0x00", "0x01", "0x"),
        nullable=True,
    )
    block_index = Count("Position among the proposer slashings of the block, from 0.", key=True)
    time = SlotTime("Start of the block's slot, UTC.", of="block_slot")
    proposer_index = Count(
        "Validator that signed both headers, and was slashed.", wire="proposerindex"
    )
    header1_slot = Slot("Slot of the first header.")
    header1_parent_root = Hex("Parent root of the header.", wire="header1_parentroot")
    header1_state_root = Hex("State root of the header.", wire="header1_stateroot")
    header1_body_root = Hex("Body root of the header.", wire="header1_bodyroot")
    header1_signature = Hex("Signature of the header.")
    header2_slot = Slot("Slot of the second header.")
    header2_parent_root = Hex("Parent root of the header.", wire="header2_parentroot")
    header2_state_root = Hex("State root of the header.", wire="header2_stateroot")
    header2_body_root = Hex("Body root of the header.", wire="header2_bodyroot")
    header2_signature = Hex("Signature of the header.")

    invariants = (Consecutive("block_index", ("block_slot", "block_root"), first=0),)


PROPOSER_SLASHINGS = Endpoint(
    "proposer_slashings",
    route="GET /api/v1/slot/{slot}/proposerslashings",
    table=ProposerSlashings,
    parameters=(SlotItems("slots", ProposerSlashings.block_slot),),
    finality=Finality.AT_FINALITY,
)


@loader(PROPOSER_SLASHINGS)
def load_proposer_slashings(slots: Subjects) -> Values:
    """Load the proposer slashings in blocks, one row per included proof.

    One request per slot. A slot without slashings, or without a block, has no rows.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; ``"latest"`` is the latest processed slot.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_slot``, ``block_root``, ``block_index``.

    Notes
    -----
    ``GET /api/v1/slot/{slot}/proposerslashings``. Final once the epoch of the slot is finalized.

    A gap in the numbers of a block's slashings raises ``IntegrityError``. The response does not
    state how many there are: compare with ``proposer_slashings_count`` of `load_slots`.
    """
    return {"slots": slots}
