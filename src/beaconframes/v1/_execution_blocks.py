"""The columns of an execution block, shared by two endpoints."""

from __future__ import annotations

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


class ExecutionBlocks(Table):
    """Execution blocks. One row per execution block."""

    block_number = Count("Number of the block.", key=True, wire="blockNumber")
    block_hash = Hex("Hash of the block.", wire="blockHash")
    time = UnixTime("Timestamp of the block, UTC.", wire="timestamp")
    block_reward_wei = Wei(
        "Priority fees; before the merge, plus the static and the uncle reward.", wire="blockReward"
    )
    block_mev_reward_wei = Wei(
        "Payment of the builder, as the relay reports it, or from your own node as the block has"
        " it; 0 without one.",
        wire="blockMevReward",
    )
    producer_reward_wei = Wei(
        "Reward of the proposer: the payment of the builder or, without one, the fees.",
        wire="producerReward",
    )
    fee_recipient = Hex("Recipient of the priority fees, often a builder.", wire="feeRecipient")
    gas_limit = Count("Gas limit.", wire="gasLimit")
    gas_used = Count("Gas used.", wire="gasUsed")
    base_fee_per_gas_wei = Wei("Base fee per gas.", wire="baseFee", minimum=0)
    transactions_count = Count("Transactions.", wire="txCount")
    internal_transactions_count = Count(
        "Internal transactions; null from your own node.", wire="internalTxCount", nullable=True
    )
    uncles_count = Count("Uncles; always 0 since the merge.", wire="uncleCount")
    parent_hash = Hex("Hash of the parent block.", wire="parentHash")
    uncle_hash = Hex("Hash of the uncle list.", wire="uncleHash")
    difficulty = Count("Difficulty; 0 since the merge.")
    consensus_algorithm = Text("pos, or pow before the merge.", wire="consensusAlgorithm")
    consensus_block_number = Count(
        "Block number in the beacon block; null before the merge and for orphaned blocks.",
        wire="posConsensus.executionBlockNumber",
        nullable=True,
    )
    proposer_index = Count(
        "Validator that proposed; null where consensus_block_number is.",
        wire="posConsensus.proposerIndex",
        nullable=True,
    )
    slot = Slot("Slot of the beacon block.", wire="posConsensus.slot", nullable=True)
    epoch = Epoch("Epoch of the beacon block.", wire="posConsensus.epoch", nullable=True)
    finalized = Flag(
        "Whether the epoch is finalized.",
        wire="posConsensus.finalized",
        final_when=(True,),
        nullable=True,
    )
    relay_tag = Text(
        "Relay that delivered the block; null without a relay.", wire="relay.tag", nullable=True
    )
    relay_builder_pubkey = Hex(
        "Public key of the builder.", wire="relay.builderPubkey", nullable=True
    )
    relay_producer_fee_recipient = Hex(
        "Address that the builder paid: that of the proposer.",
        wire="relay.producerFeeRecipient",
        nullable=True,
    )

    invariants = (SlotInEpoch(),)
