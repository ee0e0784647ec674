"""What performance consists of, in every endpoint that tells it."""

from __future__ import annotations

from beaconframes.schema import Count, Fraction, Number, Table, Text
from beaconframes.v2._columns import FINALITY


class PerformanceParts(Table):
    """Scores and the duties that they are made of. A score is null where there was no duty."""

    beaconscore = Fraction("BeaconScore of all duties, 0 to 1.", wire="beaconscore.total")
    beaconscore_attestation = Fraction("Of attestations.", wire="beaconscore.attestation")
    beaconscore_proposal = Fraction("Of proposals.", wire="beaconscore.proposal")
    beaconscore_sync_committee = Fraction("Of sync committees.", wire="beaconscore.sync_committee")
    attestations_assigned = Count("Attestations to make.", wire="duties.attestation.assigned")
    attestations_included = Count("Those that a block has.", wire="duties.attestation.included")
    attestations_missed = Count("Those that no block has.", wire="duties.attestation.missed")
    correct_head = Count("Right votes for the head.", wire="duties.attestation.correct_head")
    correct_source = Count("Right votes for the source.", wire="duties.attestation.correct_source")
    correct_target = Count("Right votes for the target.", wire="duties.attestation.correct_target")
    valuable_correct_head = Count(
        "Right votes for the head that were in time to be worth something.",
        wire="duties.attestation.valuable_correct_head",
    )
    valuable_correct_source = Count(
        "The same for the source.", wire="duties.attestation.valuable_correct_source"
    )
    valuable_correct_target = Count(
        "The same for the target.", wire="duties.attestation.valuable_correct_target"
    )
    average_inclusion_delay = Number(
        "Slots from the attested one to the block that has the vote; 1 is best.",
        wire="duties.attestation.avg_inclusion_delay",
    )
    average_inclusion_delay_without_missed_slots = Number(
        "The same without slots that had no block.",
        wire="duties.attestation.avg_inclusion_delay_excluding_missed_slots",
    )
    sync_committee_assigned = Count(
        "Slots to sign as a member of a sync committee.", wire="duties.sync_committee.assigned"
    )
    sync_committee_successful = Count(
        "Those that were signed.", wire="duties.sync_committee.successful"
    )
    sync_committee_missed = Count("Those that were not.", wire="duties.sync_committee.missed")
    sync_committee_scheduled = Count(
        "Those to come; null where the service does not count them.",
        wire="duties.sync_committee.scheduled",
    )
    proposals_assigned = Count("Blocks to propose.", wire="duties.proposal.assigned")
    proposals_successful = Count(
        "Those that became part of the chain.", wire="duties.proposal.successful"
    )
    proposals_missed = Count("Those that did not.", wire="duties.proposal.missed")
    slashings_included = Count(
        "Slashings that proposed blocks reported.", wire="duties.proposal.included_slashings"
    )
    finality = Text(FINALITY, final_when="finalized")
