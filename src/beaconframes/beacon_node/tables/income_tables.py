"""Tables of an index that no endpoint serves: what moves balances, and requests in blocks."""

from __future__ import annotations

from beaconframes.schema import Count, Epoch, EpochTime, Gwei, Hex, Slot, SlotTime, Table, Text


class SlotIncome(Table):
    """Amounts inside blocks. One row per slot, validator and kind; penalties are negative."""

    slot = Slot("Slot of the block.", key=True)
    validator_index = Count("Validator.", key=True)
    kind = Text(
        "attestation_inclusion, sync_inclusion, proposer_slashing_inclusion or "
        "attester_slashing_inclusion (to the proposer), sync_committee (to a member), "
        "slashing_penalty, withdrawal, deposit, or switch_to_compounding.",
        key=True,
    )
    time = SlotTime("Start of the slot, UTC.")
    amount_gwei = Gwei("Change of the balance; negative if the validator loses it.")


class EpochMoves(Table):
    """Amounts at the end of an epoch, without attestations. One row per validator and kind."""

    epoch = Epoch("Epoch at whose end the balance moves.", key=True)
    validator_index = Count("Validator.", key=True)
    kind = Text(
        "slashing_correlation, pending_deposit, pending_consolidation or fork_upgrade.", key=True
    )
    time = EpochTime("Start of the epoch, UTC.")
    amount_gwei = Gwei("Change of the balance; negative if the validator loses it.")


class UnexplainedChanges(Table):
    """Changes of balance that income and transfers do not explain. One row per validator, epoch.

    A validator and epoch that the index covers, and that has no row here, is explained to the gwei.
    """

    validator_index = Count("Validator.", key=True)
    epoch = Epoch(
        "Epoch of the change: it contains the blocks of this epoch, and the attestation rewards of "
        "two epochs before.",
        key=True,
    )
    time = EpochTime("Start of the epoch, UTC.")
    change_gwei = Gwei("Change of the balance.")
    explained_gwei = Gwei("Income, deposits, withdrawals and other moves of that time.")
    unexplained_gwei = Gwei("Change of the balance without its explained part.")


class DepositEvents(Table):
    """Deposits that reached a balance. One row per deposit.

    Before Electra: in a block. Since then: at the end of an epoch, which has its last slot here.
    """

    slot = Slot("Slot in which, or after which, the balance grew.", key=True)
    validator_index = Count("Validator.", key=True)
    deposit_index = Count("Position among its deposits of the slot, from 0.", key=True)
    amount_gwei = Gwei("Amount.")


class TransferEvents(Table):
    """Other moves of balances, signed. One row per slot and validator.

    Consolidations, and balances that became deposits in the queue: at the fork to Electra, and by
    a switch to compounding credentials.
    """

    slot = Slot("Slot in which, or after which, the balance changed.", key=True)
    validator_index = Count("Validator.", key=True)
    amount_gwei = Gwei("Change of the balance.")


class SwitchEvents(Table):
    """Switches to compounding credentials that moved a balance. One row per slot and validator."""

    slot = Slot("Slot of the block.", key=True)
    validator_index = Count("Validator.", key=True)
    amount_gwei = Gwei("Balance above 32 ETH, which became a pending deposit.")


class MissedRewardEvents(Table):
    """Rewards that votes missed. One row per validator and epoch with any.

    A vote that is wrong, late or missing would have earned the amount. In an inactivity leak, and
    for slashed validators, no vote earns anything.
    """

    validator_index = Count("Validator.", key=True)
    epoch = Epoch("Epoch of the duty.", key=True)
    attestation_head_missed_gwei = Gwei(
        "Missed reward of the head vote; null if the node does not state it.", nullable=True
    )
    attestation_source_missed_gwei = Gwei(
        "Missed reward of the source vote; null if the node does not state it.", nullable=True
    )
    attestation_target_missed_gwei = Gwei(
        "Missed reward of the target vote; null if the node does not state it.", nullable=True
    )


class BlobCommitments(Table):
    """Blob commitments of blocks. One row per block."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex("Root of the block.", key=True, nullable=True)
    commitments_count = Count("Blob commitments included; 0 before Deneb.")


class ExecutionRequests(Table):
    """Requests for withdrawals and consolidations in blocks, valid or not. One row per request."""

    block_slot = Slot("Slot of the block.", key=True)
    kind = Text("withdrawal or consolidation.", key=True)
    request_index = Count("Position among the requests of the kind in the block.", key=True)
    source_address = Hex("Sender of the request.")
    pubkey = Hex("BLS public key of the validator.")
    target_pubkey = Hex("Public key of the target of a consolidation.", nullable=True)
    amount_gwei = Gwei("Requested amount; 0 is an exit. Null for a consolidation.", nullable=True)
