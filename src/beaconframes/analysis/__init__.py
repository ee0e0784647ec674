"""What charts and reports are made of: frames in (polars, pandas, ...), the same kind out."""

from beaconframes.analysis.attesting import attestation_effectiveness, attestation_faults
from beaconframes.analysis.completeness import completeness
from beaconframes.analysis.earnings import income
from beaconframes.analysis.income import PENALTIES, REWARDS, net_income
from beaconframes.analysis.ledger import ledger
from beaconframes.analysis.own_yield import own_yield
from beaconframes.analysis.proposing import missed_proposals, proposal_luck
from beaconframes.analysis.rates import apr
from beaconframes.analysis.reconcile import reconcile
from beaconframes.analysis.summary import performance
from beaconframes.analysis.sync import sync_members, sync_participation
from beaconframes.analysis.sync_duties import sync_against_committee, sync_duties

__all__ = [
    "PENALTIES",
    "REWARDS",
    "apr",
    "attestation_effectiveness",
    "attestation_faults",
    "completeness",
    "income",
    "ledger",
    "missed_proposals",
    "net_income",
    "own_yield",
    "performance",
    "proposal_luck",
    "reconcile",
    "sync_against_committee",
    "sync_duties",
    "sync_members",
    "sync_participation",
]
