"""Slots with the contents of their blocks."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import ChainName, Endpoint, Envelope, Finality, Shape, SlotSelector
from beaconframes.schema import (
    Count,
    Epoch,
    Hex,
    Period,
    Slot,
    SlotInEpoch,
    Table,
    Text,
    UnixTime,
    Wei,
)
from beaconframes.v2._columns import ABSENT, FINALITY


class SlotOverview(Table):
    """Slots. One row per slot, or per block requested by its root."""

    slot = Slot("Slot.", key=True)
    block_root = Hex("Root of the block; null for a slot without one.", key=True, nullable=True)
    epoch = Epoch("Epoch of the slot.")
    time = UnixTime("Start of the slot, UTC.", wire="timestamp")
    status = Text("success, or why the slot has no block; the service may add values.")
    sync_committee_period = Period("Period of the sync committee on duty.", optional=True)
    proposer_index = Count("Validator that had to propose.", wire="proposer.index", optional=True)
    proposer_pubkey = Hex(
        "Public key of that validator.", wire="proposer.public_key", optional=True, size=48
    )
    exec_block_number = Count(
        "Number of the execution block.", wire="execution_reference.block", optional=True
    )
    exec_block_hash = Hex(
        "Hash of the execution block.", wire="execution_reference.hash", optional=True
    )
    parent_root = Hex("Root of the parent block.", optional=True)
    state_root = Hex("Root of the state after the block.", optional=True)
    graffiti = Text(
        "Graffiti of the proposer, as the service writes it: do not trust it.", optional=True
    )
    randao_reveal = Hex("RANDAO reveal of the proposer.", optional=True)
    signature = Hex("Signature of the proposer.", optional=True)
    sync_successful = Count(
        "Seats of the sync committee that signed.",
        wire="sync_participation.successful",
        optional=True,
    )
    sync_missed = Count("Seats that did not sign.", wire="sync_participation.missed", optional=True)
    sync_assigned = Count("Seats on duty.", wire="sync_participation.assigned", optional=True)
    attestation_successful = Count(
        "Validators whose vote for this slot was included.",
        wire="attestation_participation.successful",
        optional=True,
    )
    attestation_missed = Count(
        "Validators whose vote for this slot was not included.",
        wire="attestation_participation.missed",
        optional=True,
    )
    attestation_assigned = Count(
        "Validators that had to vote in this slot.",
        wire="attestation_participation.assigned",
        optional=True,
    )
    queued_deposits_count = Count(
        "Deposits added to the queue.", wire="queue_events.queued.deposit.count", optional=True
    )
    queued_deposits_wei = Wei(
        "Sum of these deposits.",
        wire="queue_events.queued.deposit.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    queued_manual_withdrawals_count = Count(
        "Requested withdrawals added to the queue.",
        wire="queue_events.queued.withdrawal_manual.count",
        optional=True,
    )
    queued_manual_withdrawals_wei = Wei(
        "Sum of these withdrawals.",
        wire="queue_events.queued.withdrawal_manual.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    queued_consolidations_count = Count(
        "Consolidations added to the queue.",
        wire="queue_events.queued.consolidation.count",
        optional=True,
    )
    queued_consolidations_wei = Wei(
        "Sum of these consolidations.",
        wire="queue_events.queued.consolidation.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    processed_deposits_count = Count(
        "Credited deposits.", wire="queue_events.processed.deposit.count", optional=True
    )
    processed_deposits_wei = Wei(
        "Sum of the credited deposits.",
        wire="queue_events.processed.deposit.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    processed_sweeps_count = Count(
        "Withdrawals paid by the sweep.",
        wire="queue_events.processed.withdrawal_sweep.count",
        optional=True,
    )
    processed_sweeps_wei = Wei(
        "Sum of these withdrawals.",
        wire="queue_events.processed.withdrawal_sweep.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    processed_manual_withdrawals_count = Count(
        "Requested withdrawals that were paid.",
        wire="queue_events.processed.withdrawal_manual.count",
        optional=True,
    )
    processed_manual_withdrawals_wei = Wei(
        "Sum of these withdrawals.",
        wire="queue_events.processed.withdrawal_manual.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    processed_consolidations_count = Count(
        "Processed consolidations.",
        wire="queue_events.processed.consolidation.count",
        optional=True,
    )
    processed_consolidations_wei = Wei(
        "Sum of the processed consolidations.",
        wire="queue_events.processed.consolidation.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    voluntary_exits_count = Count(
        "Voluntary exits included.",
        wire="queue_events.processed.voluntary_exit_count",
        optional=True,
    )
    bls_changes_count = Count(
        "Changes of withdrawal credentials included.",
        wire="bls_credential_changes_count",
        optional=True,
    )
    proposer_slashings_count = Count(
        "Proposer slashings included.", wire="included_slashing_count.proposer", optional=True
    )
    attester_slashings_count = Count(
        "Attester slashings included.", wire="included_slashing_count.attestation", optional=True
    )
    blob_commitments_count = Count(
        "Blob commitments included.", wire="included_blob_commitment_count", optional=True
    )
    finality = Text(FINALITY, final_when=("finalized",))

    invariants = (SlotInEpoch(),)


SLOT = Endpoint(
    "slot",
    route="POST /api/v2/ethereum/slot",
    table=SlotOverview,
    parameters=(
        ChainName(),
        SlotSelector(SlotOverview.slot, root=SlotOverview.block_root, required=True),
    ),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
    absent=ABSENT,
)


@loader(SLOT, missing="slots and roots that do not exist")
def load_slot(slots: Subjects = "latest") -> Values:
    """Load slots with the contents of their blocks, one row per slot.

    One request per slot. `beaconframes.load_epoch_slots` loads the blocks of a whole epoch in one
    request.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; or block roots. ``"latest"`` and
        ``"finalized"`` are resolved to a number first.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``, ``block_root``. A slot without a block has a row too: ``status`` says
        so, and the columns of the block are null.

    Notes
    -----
    ``POST /api/v2/ethereum/slot``. Final once the epoch of the slot is finalized.
    """
    return {"slots": slots}
