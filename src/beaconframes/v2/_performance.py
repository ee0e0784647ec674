"""What performance consists of, in every endpoint that tells it."""

from __future__ import annotations

from beaconframes.schema import Count, Fraction, Number, Table, Text
from beaconframes.v2._columns import FINALITY


class PerformanceParts(Table):
    """Scores from 0 to 1, null without such duties, and the duties that they are made of."""

    beaconscore = Fraction("The service's score of all duties together.", wire="beaconscore.total")
    beaconscore_attestation = Fraction("Of attestations.", wire="beaconscore.attestation")
    beaconscore_proposal = Fraction("Of proposals.", wire="beaconscore.proposal")
    beaconscore_sync_committee = Fraction("Of sync committees.", wire="beaconscore.sync_committee")
    attestation_assigned = Count("Attestations on duty.", wire="duties.attestation.assigned")
    attestation_included = Count("Those that were included.", wire="duties.attestation.included")
    attestation_missed = Count("Those that were not.", wire="duties.attestation.missed")
    attestation_correct_head = Count("With the right head.", wire="duties.attestation.correct_head")
    attestation_correct_source = Count(
        "With the right source.", wire="duties.attestation.correct_source"
    )
    attestation_correct_target = Count(
        "With the right target.", wire="duties.attestation.correct_target"
    )
    attestation_valuable_correct_head = Count(
        "With the right head, and of value to the chain.",
        wire="duties.attestation.valuable_correct_head",
    )
    attestation_valuable_correct_source = Count(
        "With the right source, and of value.", wire="duties.attestation.valuable_correct_source"
    )
    attestation_valuable_correct_target = Count(
        "With the right target, and of value.", wire="duties.attestation.valuable_correct_target"
    )
    avg_inclusion_delay = Number(
        "Slots from the duty to its inclusion, on average.",
        wire="duties.attestation.avg_inclusion_delay",
    )
    avg_inclusion_delay_excluding_missed_slots = Number(
        "The same without slots that had no block.",
        wire="duties.attestation.avg_inclusion_delay_excluding_missed_slots",
    )
    sync_committee_assigned = Count(
        "Signatures of sync committees on duty.", wire="duties.sync_committee.assigned"
    )
    sync_committee_successful = Count(
        "Those that were given.", wire="duties.sync_committee.successful"
    )
    sync_committee_missed = Count("Those that were not.", wire="duties.sync_committee.missed")
    sync_committee_scheduled = Count(
        "Those that lie ahead; null in answers without it.",
        wire="duties.sync_committee.scheduled",
    )
    proposal_assigned = Count("Blocks on duty.", wire="duties.proposal.assigned")
    proposal_successful = Count("Those that came.", wire="duties.proposal.successful")
    proposal_missed = Count("Those that did not.", wire="duties.proposal.missed")
    proposal_included_slashings = Count(
        "Slashings that they included.", wire="duties.proposal.included_slashings"
    )
    finality = Text(FINALITY)
