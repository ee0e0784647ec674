"""Columns of duty scores and duty counts, shared by several endpoints."""

from __future__ import annotations

from beaconframes.schema import Count, Fraction, Number, Table, Text
from beaconframes.v2._columns import FINALITY


class ScoreColumns(Table):
    """Duty scores and the counts behind them. A score is null without a duty."""

    filled_objects = ("beaconscore",)

    beaconscore = Fraction(
        "BeaconScore of all duties, 0 to 1.", wire="beaconscore.total", nullable=True
    )
    beaconscore_attestation = Fraction(
        "BeaconScore of attestations.", wire="beaconscore.attestation", nullable=True
    )
    beaconscore_proposal = Fraction(
        "BeaconScore of proposals.", wire="beaconscore.proposal", nullable=True
    )
    beaconscore_sync_committee = Fraction(
        "BeaconScore of sync committees.", wire="beaconscore.sync_committee", nullable=True
    )
    attestations_assigned = Count("Assigned attestations.", wire="duties.attestation.assigned")
    attestations_included = Count(
        "Attestations included in a block.", wire="duties.attestation.included"
    )
    attestations_missed = Count(
        "Attestations not included in any block.", wire="duties.attestation.missed"
    )
    correct_head = Count(
        "Correct head votes.", wire="duties.attestation.correct_head", nullable=True
    )
    correct_source = Count(
        "Correct source votes.", wire="duties.attestation.correct_source", nullable=True
    )
    correct_target = Count(
        "Correct target votes.", wire="duties.attestation.correct_target", nullable=True
    )
    valuable_correct_head = Count(
        "Correct head votes that were early enough for a reward.",
        wire="duties.attestation.valuable_correct_head",
        nullable=True,
    )
    valuable_correct_source = Count(
        "Correct source votes that were early enough for a reward.",
        wire="duties.attestation.valuable_correct_source",
        nullable=True,
    )
    valuable_correct_target = Count(
        "Correct target votes that were early enough for a reward.",
        wire="duties.attestation.valuable_correct_target",
        nullable=True,
    )
    average_inclusion_delay = Number(
        "Mean number of slots after the first possible one until the inclusion; 0 is best.",
        wire="duties.attestation.avg_inclusion_delay",
        nullable=True,
    )
    average_inclusion_delay_without_missed_slots = Number(
        "That number without slots that have no block.",
        wire="duties.attestation.avg_inclusion_delay_excluding_missed_slots",
        nullable=True,
    )
    sync_committee_assigned = Count(
        "Assigned slots as a sync-committee member.",
        wire="duties.sync_committee.assigned",
        nullable=True,
    )
    sync_committee_successful = Count(
        "Sync-committee slots that were signed.",
        wire="duties.sync_committee.successful",
        nullable=True,
    )
    sync_committee_missed = Count(
        "Sync-committee slots that were not signed.",
        wire="duties.sync_committee.missed",
        nullable=True,
    )
    sync_committee_scheduled = Count(
        "Future sync-committee slots; null if the service does not count them.",
        wire="duties.sync_committee.scheduled",
        optional=True,
    )
    proposals_assigned = Count(
        "Assigned proposals.", wire="duties.proposal.assigned", nullable=True
    )
    proposals_successful = Count(
        "Proposals that became canonical.", wire="duties.proposal.successful", nullable=True
    )
    proposals_missed = Count(
        "Proposals that did not become canonical.", wire="duties.proposal.missed", nullable=True
    )
    slashings_included = Count(
        "Slashings included in proposed blocks.",
        wire="duties.proposal.included_slashings",
        nullable=True,
    )
    finality = Text(FINALITY, final_when=("finalized",))
