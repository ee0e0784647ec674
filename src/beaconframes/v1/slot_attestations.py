"""Attestations in blocks."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality
from beaconframes.schema import (
    Consecutive,
    Count,
    Epoch,
    Hex,
    Indices,
    Slot,
    SlotInEpoch,
    SlotTime,
    Table,
)
from beaconframes.v1._slot_items import SlotItems


class SlotAttestations(Table):
    """Attestations in blocks. One row per included aggregate."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex(
        "Root of the block; null if the service does not report it.",
        key=True,
        none=("0x00", "0x01", "0x"),
        nullable=True,
    )
    block_index = Count("Position among the attestations of the block, from 0.", key=True)
    time = SlotTime("Start of the block's slot, UTC.", of="block_slot")
    slot = Slot("Attested slot.")
    committee_index = Count(
        "Committee; 0 since Electra, where one aggregate spans several committees.",
        wire="committeeindex",
    )
    validators = Indices("Validators that attested, as resolved by the service.", nullable=True)
    aggregation_bits = Hex("Committee members that signed, one bit each.", wire="aggregationbits")
    beacon_block_root = Hex("Block root of the head vote.", wire="beaconblockroot")
    source_epoch = Epoch("Epoch of the source vote.")
    source_root = Hex("Checkpoint of the source vote.")
    target_epoch = Epoch("Epoch of the target vote.")
    target_root = Hex("Checkpoint of the target vote.")
    signature = Hex("Aggregate signature.")

    invariants = (
        Consecutive("block_index", ("block_slot", "block_root"), first=0),
        SlotInEpoch("slot", "target_epoch"),
    )


SLOT_ATTESTATIONS = Endpoint(
    "slot_attestations",
    route="GET /api/v1/slot/{slot}/attestations",
    table=SlotAttestations,
    parameters=(
        SlotItems("slots", SlotAttestations.block_slot, descending=False, validates_slot=True),
    ),
    finality=Finality.AT_FINALITY,
)


@loader(SLOT_ATTESTATIONS)
def load_slot_attestations(slots: Subjects) -> Values:
    """Load the attestations in blocks, one row per included aggregate.

    One request per slot. A slot without attestations, or without a block, has no rows.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; ``"latest"`` is the latest processed slot.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_slot``, ``block_root``, ``block_index``. ``slot`` is the attested slot.
        ``validators`` is a list column: ``frame.explode("validators")`` returns one row per vote.

    Notes
    -----
    ``GET /api/v1/slot/{slot}/attestations``. Final once the epoch of the slot is finalized.

    A gap in the numbers of the attestations raises ``IntegrityError``. The response does not
    state how many there are: compare with ``attestations_count`` of `load_slots`.
    """
    return {"slots": slots}
