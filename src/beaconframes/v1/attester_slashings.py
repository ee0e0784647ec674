"""Attester slashings in blocks."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality
from beaconframes.schema import Consecutive, Count, Epoch, Hex, Indices, Slot, SlotTime, Table
from beaconframes.v1._slot_items import SlotItems


class AttesterSlashings(Table):
    """Attester slashings in blocks. One row per included proof."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex(
        "Root of the block; null if the service does not report it.",
        key=True,
        none=("0x00", "0x01", "0x"),
        nullable=True,
    )
    block_index = Count("Position among the attester slashings of the block, from 0.", key=True)
    time = SlotTime("Start of the block's slot, UTC.", of="block_slot")
    attestation1_slot = Slot("Slot of the first attestation.")
    attestation1_index = Count("Committee of the attestation; 0 since Electra.")
    attestation1_indices = Indices("Validators that signed it.")
    attestation1_beacon_block_root = Hex(
        "Block root of its head vote.", wire="attestation1_beaconblockroot"
    )
    attestation1_source_epoch = Epoch("Source epoch.")
    attestation1_source_root = Hex("Source checkpoint.")
    attestation1_target_epoch = Epoch("Target epoch.")
    attestation1_target_root = Hex("Target checkpoint.")
    attestation1_signature = Hex("Aggregate signature.")
    attestation2_slot = Slot("Slot of the second attestation.")
    attestation2_index = Count("Committee of the attestation; 0 since Electra.")
    attestation2_indices = Indices("Validators that signed it.")
    attestation2_beacon_block_root = Hex(
        "Block root of its head vote.", wire="attestation2_beaconblockroot"
    )
    attestation2_source_epoch = Epoch("Source epoch.")
    attestation2_source_root = Hex("Source checkpoint.")
    attestation2_target_epoch = Epoch("Target epoch.")
    attestation2_target_root = Hex("Target checkpoint.")
    attestation2_signature = Hex("Aggregate signature.")

    invariants = (Consecutive("block_index", ("block_slot", "block_root"), first=0),)


ATTESTER_SLASHINGS = Endpoint(
    "attester_slashings",
    route="GET /api/v1/slot/{slot}/attesterslashings",
    table=AttesterSlashings,
    parameters=(SlotItems("slots", AttesterSlashings.block_slot),),
    finality=Finality.AT_FINALITY,
)


@loader(ATTESTER_SLASHINGS)
def load_attester_slashings(slots: Subjects) -> Values:
    """Load the attester slashings in blocks, one row per included proof.

    One request per slot. A slot without slashings, or without a block, has no rows.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; ``"latest"`` is the latest processed slot.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_slot``, ``block_root``, ``block_index``. The ``_indices`` are list columns
        of the validators that signed. Slashed are those that signed both:
        ``pl.col("attestation1_indices").list.set_intersection("attestation2_indices")``.

    Notes
    -----
    ``GET /api/v1/slot/{slot}/attesterslashings``. Final once the epoch of the slot is finalized.

    A gap in the numbers of a block's slashings raises ``IntegrityError``. The response does not
    state how many there are: compare with ``attester_slashings_count`` of `load_slots`.
    """
    return {"slots": slots}
