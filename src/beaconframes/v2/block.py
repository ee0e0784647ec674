"""Execution blocks."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import BlockSelector, ChainName, Endpoint, Envelope, Finality, Shape
from beaconframes.schema import (
    Count,
    Epoch,
    Flag,
    Hex,
    Slot,
    SlotInEpoch,
    Table,
    Text,
    UnixTime,
    Wei,
)
from beaconframes.v2._columns import ABSENT, FINALITY


class Block(Table):
    """Execution blocks. One row per execution block."""

    block_number = Count("Number of the block.", key=True, wire="block")
    block_hash = Hex("Hash of the block.", wire="hash")
    time = UnixTime("Timestamp of the block, UTC.", wire="timestamp")
    slot = Slot(
        "Slot of the beacon block; null before the merge.",
        wire="consensus_reference.slot",
        nullable=True,
    )
    epoch = Epoch(
        "Epoch of the beacon block; null before the merge.",
        wire="consensus_reference.epoch",
        nullable=True,
    )
    block_root = Hex(
        "Root of the beacon block; null before the merge.",
        wire="consensus_reference.block_root",
        nullable=True,
    )
    parent_hash = Hex("Hash of the parent block.")
    receipts_root = Hex("Root of the receipts.")
    state_root = Hex("Root of the execution state.")
    gas_used = Count("Gas used.", wire="transaction.gas.used")
    gas_limit = Count("Gas limit.", wire="transaction.gas.limit")
    base_fee_per_gas_wei = Wei(
        "Base fee per gas.", wire="transaction.gas.base_fee", text=True, minimum=0
    )
    fees_burned_wei = Wei(
        "Burned base fees.", wire="transaction.gas.fees_burned", text=True, minimum=0
    )
    transactions_count = Count("Transactions.", wire="transaction.count.normal")
    blob_transactions_count = Count(
        "Transactions with blobs; null before Deneb, and from your own node if there are any.",
        wire="transaction.count.blob",
        nullable=True,
    )
    internal_transactions_count = Count(
        "Internal transactions; null from your own node.",
        wire="transaction.count.internal",
        nullable=True,
    )
    blob_gas_used = Count(
        "Gas used for blobs; null before Deneb.", wire="blob.gas.used", nullable=True
    )
    blob_gas_excess = Count(
        "Excess blob gas, which sets the blob fee; null from your own node.",
        wire="blob.gas.excess",
        nullable=True,
    )
    miner = Hex("Miner; null since the merge.", wire="mining.miner.address", nullable=True)
    miner_is_contract = Flag(
        "Whether that address is a contract.", wire="mining.miner.is_contract", nullable=True
    )
    difficulty = Text(
        "Difficulty, as text; null since the merge.", wire="mining.difficulty", nullable=True
    )
    mix_hash = Hex(
        "Mix hash of the proof of work; null since the merge.",
        wire="mining.mix_hash",
        nullable=True,
    )
    uncles_hash = Hex("Hash of the uncle list.", wire="mining.uncles_sha3", nullable=True)
    uncles_count = Count("Uncles.", wire="mining.uncles_count", nullable=True)
    extra_data = Hex("Extra data of the builder: do not trust it.", nullable=True)
    finality = Text(FINALITY, final_when=("finalized",))

    invariants = (SlotInEpoch(),)


BLOCK = Endpoint(
    "block",
    route="POST /api/v2/ethereum/block",
    table=Block,
    parameters=(ChainName(), BlockSelector(Block.block_number)),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
    absent=ABSENT,
)


@loader(BLOCK, missing="blocks that do not exist")
def load_block(blocks: Subjects = "latest") -> Values:
    """Load execution blocks with gas, burned fees and blobs, one row per block.

    One request per block. `beaconframes.load_execution_blocks` loads a hundred per request, with
    their rewards; `load_block_rewards` loads the recipients of rewards.

    Parameters
    ----------
    blocks
        Numbers of execution blocks (not slots): one, or a list, range or Series of them; or
        ``"latest"``, ``"finalized"``.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_number``. The fee recipient is in `load_block_rewards`.

    Notes
    -----
    ``POST /api/v2/ethereum/block``. Final once its epoch is finalized.
    """
    return {"blocks": blocks}
