"""What execution blocks paid, and to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, Subjects, load
from beaconframes.endpoint import BlockIn, Endpoint, Envelope, Final, OnChain, Shape
from beaconframes.schema import Count, Epoch, Flag, Hex, Slot, Table, Text, Wei
from beaconframes.v2._columns import ABSENT, FINALITY

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class BlockRewards(Table):
    """Rewards of execution blocks. One row per execution block."""

    block_number = Count("Number of the block.", key=True, wire="execution_reference.block")
    block_hash = Hex("Its hash.", wire="execution_reference.hash")
    slot = Slot("Slot of the beacon block; null before the merge.", wire="consensus_reference.slot")
    epoch = Epoch("Its epoch; null before the merge.", wire="consensus_reference.epoch")
    block_root = Hex("Its root; null before the merge.", wire="consensus_reference.block_root")
    total_reward_wei = Wei(
        "What the proposer got: mev_wei if there is any, or else priority_fees_wei. No sum.",
        wire="total_reward.amount",
        text=True,
    )
    total_reward_recipient = Hex("Who got it.", wire="total_reward.recipient.address")
    total_reward_is_contract = Flag(
        "Whether that is a contract.", wire="total_reward.recipient.is_contract"
    )
    priority_fees_wei = Wei(
        "Priority fees. With a builder they are the builder's.",
        wire="priority_fees.amount",
        text=True,
    )
    priority_fees_recipient = Hex("Who got them.", wire="priority_fees.recipient.address")
    priority_fees_is_contract = Flag(
        "Whether that is a contract.", wire="priority_fees.recipient.is_contract"
    )
    mev_wei = Wei(
        "What a builder paid to the proposer; null without one.", wire="mev.amount", text=True
    )
    mev_recipient = Hex("Who got it.", wire="mev.recipient.address")
    mev_is_contract = Flag("Whether that is a contract.", wire="mev.recipient.is_contract")
    static_block_reward_wei = Wei(
        "Reward for mining it; null since the merge.", wire="mining.static_block_reward", text=True
    )
    uncle_inclusion_reward_wei = Wei(
        "Reward for its uncles; null since the merge.",
        wire="mining.uncle_inclusion_reward",
        text=True,
    )
    mining_recipient = Hex("Who got these.", wire="mining.recipient.address")
    mining_is_contract = Flag("Whether that is a contract.", wire="mining.recipient.is_contract")
    finality = Text(FINALITY, final_when="finalized")


BLOCK_REWARDS = Endpoint(
    "block_rewards",
    route="POST /api/v2/ethereum/block/rewards",
    table=BlockRewards,
    parameters=(OnChain(), BlockIn(BlockRewards.block_number)),
    finality=Final.AT_FINALITY,
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
    absent=ABSENT,
)


@overload
def load_block_rewards(blocks: Subjects = "latest", **options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_block_rewards(blocks: Subjects = "latest", **options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_block_rewards(blocks: Subjects = "latest", **options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_block_rewards(
    blocks: Subjects = "latest",
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the rewards of execution blocks and their recipients, one row per block, in wei.

    One request per block. Never add ``mev_wei`` and ``priority_fees_wei``: with a builder, the fees
    belong to the builder, who pays the proposer out of them.

    Parameters
    ----------
    blocks
        Numbers of execution blocks (not slots): one, or a list, range or Series of them; or
        ``"latest"``, ``"finalized"``.
    explorer, strict, lazy, frame, max_requests
        See `beaconframes.load_validators`. With ``strict=True``, blocks that do not exist raise
        `MissingRows` instead of a warning.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_number``. Addresses in lower case.

    Notes
    -----
    ``POST /api/v2/ethereum/block/rewards``. Final once its epoch is finalized.
    `beaconframes.load_execution_blocks` loads a hundred blocks per request.
    """
    return load(
        BLOCK_REWARDS,
        {"blocks": blocks},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
