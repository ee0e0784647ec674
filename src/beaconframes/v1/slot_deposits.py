"""Deposits in blocks."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality, Pages
from beaconframes.schema import Consecutive, Count, Gwei, Hex, Slot, SlotTime, Table, Text
from beaconframes.v1._slot_items import SlotItems


class SlotDeposits(Table):
    """Deposits in blocks. One row per included deposit."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex(
        "Root of the block; null if the service does not report it.",
        key=True,
        none=("0x00", "0x01", "0x"),
        nullable=True,
    )
    block_index = Count("Position among the deposits of the block, from 0.", key=True)
    time = SlotTime("Start of the block's slot, UTC.", of="block_slot")
    pubkey = Hex("BLS public key of the validator.", wire=("publickey", "public_key"), size=48)
    withdrawal_credentials = Hex(
        "Withdrawal credentials of the deposit, 32 bytes.", wire="withdrawalcredentials"
    )
    amount_gwei = Gwei("Deposited amount.", wire="amount", minimum=0)
    signature = Hex("Signature of the deposit.")
    proof = Text("Merkle proof as the service writes it; null if it leaves it out.", nullable=True)

    invariants = (Consecutive("block_index", ("block_slot", "block_root"), first=0),)


SLOT_DEPOSITS = Endpoint(
    "slot_deposits",
    route="GET /api/v1/slot/{slot}/deposits",
    table=SlotDeposits,
    parameters=(SlotItems("slots", SlotDeposits.block_slot),),
    pagination=Pages(at_most=100, default=100),
    finality=Finality.AT_FINALITY,
)


@loader(SLOT_DEPOSITS)
def load_slot_deposits(slots: Subjects) -> Values:
    """Load the deposits in blocks, one row per included deposit, in gwei.

    One request per slot. A slot without deposits, or without a block, has no rows.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; ``"latest"`` is the latest processed slot.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_slot``, ``block_root``, ``block_index``. Blocks since Electra have none:
        deposits are now execution requests (`load_deposits`).

    Notes
    -----
    ``GET /api/v1/slot/{slot}/deposits``. Final once the epoch of the slot is finalized.

    A gap in the numbers of a block's deposits raises ``IntegrityError``. The response does not
    state how many there are: compare with ``deposits_count`` of `load_slots`.
    """
    return {"slots": slots}
