"""What charts and reports are made of: frames in (polars, pandas, ...), the same kind out."""

from beaconframes.analysis.attesting import attestation_effectiveness, attestation_faults
from beaconframes.analysis.completeness import completeness
from beaconframes.analysis.earnings import income
from beaconframes.analysis.income import PENALTIES, REWARDS, net_income
from beaconframes.analysis.ledger import ledger
from beaconframes.analysis.own_yield import own_yield
from beaconframes.analysis.rates import apr
from beaconframes.analysis.reconcile import reconcile
from beaconframes.analysis.sync import sync_members, sync_participation

__all__ = [
    "PENALTIES",
    "REWARDS",
    "apr",
    "attestation_effectiveness",
    "attestation_faults",
    "completeness",
    "income",
    "ledger",
    "net_income",
    "own_yield",
    "reconcile",
    "sync_members",
    "sync_participation",
]
