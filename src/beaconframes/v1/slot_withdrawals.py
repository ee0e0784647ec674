"""Withdrawals in blocks."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality
from beaconframes.schema import Consecutive, Count, Gwei, Hex, Slot, SlotTime, Table
from beaconframes.v1._slot_items import SlotItems


class SlotWithdrawals(Table):
    """Withdrawals in blocks. One row per withdrawal."""

    block_slot = Slot("Slot of the block.", key=True)
    withdrawal_index = Count(
        "Number of the withdrawal, counted over the whole chain.", key=True, wire="withdrawalindex"
    )
    time = SlotTime("Start of the block's slot, UTC.", of="block_slot")
    validator_index = Count("Validator of the withdrawal.", wire="validatorindex")
    address = Hex("Recipient of the withdrawal.")
    amount_gwei = Gwei("Withdrawn amount.", wire="amount", minimum=0)

    invariants = (Consecutive("withdrawal_index", ("block_slot",)),)


SLOT_WITHDRAWALS = Endpoint(
    "slot_withdrawals",
    route="GET /api/v1/slot/{slot}/withdrawals",
    table=SlotWithdrawals,
    parameters=(
        SlotItems("slots", SlotWithdrawals.block_slot, order="withdrawal_index", descending=False),
    ),
    finality=Finality.AT_FINALITY,
)


@loader(SLOT_WITHDRAWALS)
def load_slot_withdrawals(slots: Subjects) -> Values:
    """Load the withdrawals in blocks, one row per withdrawal, in gwei.

    One request per slot. A slot without withdrawals, or without a block, has no rows.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; ``"latest"`` is the latest processed slot.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_slot``, ``withdrawal_index``. A block has at most 16 withdrawals.

    Notes
    -----
    ``GET /api/v1/slot/{slot}/withdrawals``. Final once the epoch of the slot is finalized.

    A gap in the numbers of the withdrawals raises ``IntegrityError``. The response does not
    state how many there are: compare with ``withdrawals_count`` of `load_slots`.
    """
    return {"slots": slots}
