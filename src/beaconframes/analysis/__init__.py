"""What charts and reports are made of: frames in (polars, pandas, ...), the same kind out."""

from beaconframes.analysis.income import PENALTIES, REWARDS, net_income
from beaconframes.analysis.sync import sync_members, sync_participation

__all__ = [
    "PENALTIES",
    "REWARDS",
    "net_income",
    "sync_members",
    "sync_participation",
]
