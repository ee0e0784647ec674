"""Rewards of execution blocks and their recipients."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import BlockSelector, ChainName, Endpoint, Envelope, Finality, Shape
from beaconframes.schema import Count, Epoch, Flag, Hex, Slot, SlotInEpoch, Table, Text, Wei
from beaconframes.v2._columns import ABSENT, FINALITY


class BlockRewards(Table):
    """Rewards of execution blocks. One row per execution block."""

    block_number = Count("Number of the block.", key=True, wire="execution_reference.block")
    block_hash = Hex("Hash of the block.", wire="execution_reference.hash")
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
    total_reward_wei = Wei(
        "Reward of the proposer: mev_wei or, without it, priority_fees_wei; never their sum.",
        wire="total_reward.amount",
        text=True,
    )
    total_reward_recipient = Hex(
        "Recipient of that amount.", wire="total_reward.recipient.address", nullable=True
    )
    total_reward_is_contract = Flag(
        "Whether that address is a contract.",
        wire="total_reward.recipient.is_contract",
        nullable=True,
    )
    priority_fees_wei = Wei(
        "Priority fees. With a builder, they belong to the builder.",
        wire="priority_fees.amount",
        text=True,
        minimum=0,
    )
    priority_fees_recipient = Hex(
        "Recipient of the priority fees.", wire="priority_fees.recipient.address", nullable=True
    )
    priority_fees_is_contract = Flag(
        "Whether that address is a contract.",
        wire="priority_fees.recipient.is_contract",
        nullable=True,
    )
    mev_wei = Wei(
        "Payment of the builder to the proposer; null without a builder.",
        wire="mev.amount",
        text=True,
        nullable=True,
        minimum=0,
    )
    mev_recipient = Hex("Recipient of that amount.", wire="mev.recipient.address", nullable=True)
    mev_is_contract = Flag(
        "Whether that address is a contract.", wire="mev.recipient.is_contract", nullable=True
    )
    static_block_reward_wei = Wei(
        "Static mining reward; null since the merge.",
        wire="mining.static_block_reward",
        text=True,
        nullable=True,
        minimum=0,
    )
    uncle_inclusion_reward_wei = Wei(
        "Reward for included uncles; null since the merge.",
        wire="mining.uncle_inclusion_reward",
        text=True,
        nullable=True,
        minimum=0,
    )
    mining_recipient = Hex(
        "Recipient of the mining rewards.", wire="mining.recipient.address", nullable=True
    )
    mining_is_contract = Flag(
        "Whether that address is a contract.", wire="mining.recipient.is_contract", nullable=True
    )
    finality = Text(FINALITY, final_when=("finalized",))

    invariants = (SlotInEpoch(),)


BLOCK_REWARDS = Endpoint(
    "block_rewards",
    route="POST /api/v2/ethereum/block/rewards",
    table=BlockRewards,
    parameters=(ChainName(), BlockSelector(BlockRewards.block_number)),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
    absent=ABSENT,
)


@loader(BLOCK_REWARDS, missing="blocks that do not exist")
def load_block_rewards(blocks: Subjects = "latest") -> Values:
    """Load the rewards of execution blocks and their recipients, one row per block, in wei.

    One request per block. Never add ``mev_wei`` and ``priority_fees_wei``: with a builder, the fees
    belong to the builder, who pays the proposer out of them.

    Parameters
    ----------
    blocks
        Numbers of execution blocks (not slots): one, or a list, range or Series of them; or
        ``"latest"``, ``"finalized"``.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_number``. Addresses in lower case.

    Notes
    -----
    ``POST /api/v2/ethereum/block/rewards``. Final once its epoch is finalized.
    `beaconframes.load_execution_blocks` loads a hundred blocks per request.
    """
    return {"blocks": blocks}
