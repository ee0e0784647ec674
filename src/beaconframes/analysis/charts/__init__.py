"""What each chart shows, prepared once for ``plot`` and ``interactive``: frame in, Drawing out."""

from beaconframes.analysis.charts.attestations import attestations
from beaconframes.analysis.charts.balances import balances
from beaconframes.analysis.charts.coverage import coverage
from beaconframes.analysis.charts.flows import deposits, withdrawals
from beaconframes.analysis.charts.gas_fees import gas_fees
from beaconframes.analysis.charts.income import income
from beaconframes.analysis.charts.leaderboard import leaderboard
from beaconframes.analysis.charts.members import sync_members
from beaconframes.analysis.charts.participation import sync_participation
from beaconframes.analysis.charts.proposals import proposals
from beaconframes.analysis.charts.yields import yield_index

__all__ = [
    "attestations",
    "balances",
    "coverage",
    "deposits",
    "gas_fees",
    "income",
    "leaderboard",
    "proposals",
    "sync_members",
    "sync_participation",
    "withdrawals",
    "yield_index",
]
