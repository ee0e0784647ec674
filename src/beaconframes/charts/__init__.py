"""The content of each chart, for ``plot`` and ``interactive``: frame in, chart out."""

from beaconframes.charts.attestations import attestations
from beaconframes.charts.balances import balances
from beaconframes.charts.coverage import coverage
from beaconframes.charts.gas_fees import gas_fees
from beaconframes.charts.income import income
from beaconframes.charts.index_coverage import index_coverage
from beaconframes.charts.leaderboard import leaderboard
from beaconframes.charts.luck import luck
from beaconframes.charts.proposals import proposals
from beaconframes.charts.sync_members import sync_members
from beaconframes.charts.sync_participation import sync_participation
from beaconframes.charts.transfers import deposits, withdrawals
from beaconframes.charts.yield_index import yield_index

__all__ = [
    "attestations",
    "balances",
    "coverage",
    "deposits",
    "gas_fees",
    "income",
    "index_coverage",
    "leaderboard",
    "luck",
    "proposals",
    "sync_members",
    "sync_participation",
    "withdrawals",
    "yield_index",
]
