"""The execution block record, which two endpoints share."""

from __future__ import annotations

from beaconframes.schema import Count, Epoch, Flag, Hex, Slot, Table, Text, UnixTime, Wei


class ExecutionBlocks(Table):
    """Execution blocks. One row per execution block."""

    block_number = Count("Number of the block.", key=True, wire="blockNumber")
    block_hash = Hex("Its hash.", wire="blockHash")
    time = UnixTime("Timestamp of the block, UTC.", wire="timestamp")
    block_reward_wei = Wei(
        "Priority fees; before the merge with the static and the uncle reward.", wire="blockReward"
    )
    block_mev_reward_wei = Wei(
        "What a builder paid by a relay's own account; 0 when no relay was involved.",
        wire="blockMevReward",
    )
    producer_reward_wei = Wei(
        "What the proposer got: the builder's payment if there was one, else the fees.",
        wire="producerReward",
    )
    fee_recipient = Hex("Address that the fees went to, often a builder's.", wire="feeRecipient")
    gas_limit = Count("Gas limit.", wire="gasLimit")
    gas_used = Count("Gas used.", wire="gasUsed")
    base_fee_per_gas_wei = Wei("Base fee per gas.", wire="baseFee")
    transactions_count = Count("Transactions.", wire="txCount")
    internal_transactions_count = Count("Internal transactions.", wire="internalTxCount")
    uncles_count = Count("Uncles, of which there are none since the merge.", wire="uncleCount")
    parent_hash = Hex("Hash of the parent block.", wire="parentHash")
    uncle_hash = Hex("Hash of the list of uncles.", wire="uncleHash")
    difficulty = Count("Difficulty; 0 since the merge.")
    consensus_algorithm = Text("pos, or pow before the merge.", wire="consensusAlgorithm")
    consensus_block_number = Count(
        "The number that the beacon block gives; null before the merge and off the chain.",
        wire="posConsensus.executionBlockNumber",
    )
    proposer_index = Count(
        "Validator that proposed; null like consensus_block_number.",
        wire="posConsensus.proposerIndex",
    )
    slot = Slot("Slot of the beacon block.", wire="posConsensus.slot")
    epoch = Epoch("Epoch of the beacon block.", wire="posConsensus.epoch")
    finalized = Flag(
        "Whether that epoch is finalized.", wire="posConsensus.finalized", final_when=True
    )
    relay_tag = Text("Relay that brought the block; null when none did.", wire="relay.tag")
    relay_builder_pubkey = Hex("Public key of its builder.", wire="relay.builderPubkey")
    relay_producer_fee_recipient = Hex(
        "Address that the builder paid: the proposer's own.", wire="relay.producerFeeRecipient"
    )
