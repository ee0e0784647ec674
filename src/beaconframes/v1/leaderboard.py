"""The validators with the highest income."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beaconframes.client import Values, loader
from beaconframes.endpoint import Batch, Endpoint, Parameter, Role
from beaconframes.schema import Count, Gwei, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead


class Leaderboard(Table):
    """The leaderboard. One row per validator."""

    rank_7d = Count("Rank by the income of the last 7 days, from 1.", key=True, wire="rank7d")
    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    balance_gwei = Gwei("Balance at the end of the last day.", wire="balance", minimum=0)
    performance_1d_gwei = Gwei("Income of the last day; may be negative.", wire="performance1d")
    performance_7d_gwei = Gwei("Income of the last 7 days.", wire="performance7d")
    performance_31d_gwei = Gwei(
        "Income of the last 31 days; null if a dataset does not have all of it.",
        wire="performance31d",
        nullable=True,
    )
    performance_365d_gwei = Gwei(
        "Income of the last 365 days; null if a dataset does not have all of it.",
        wire="performance365d",
        nullable=True,
    )
    performance_total_gwei = Gwei(
        "Income since activation.", wire=("performancetotal", "performanceTotal"), optional=True
    )


@dataclass(frozen=True)
class TopRows(Parameter):
    """The first ``length`` rows of a ranking; the service has no other pages."""

    length: int

    role = Role.FILTER

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one request without fields."""
        return [Batch()]


LEADERBOARD = Endpoint(
    "leaderboard",
    route="GET /api/v1/validator/leaderboard",
    table=Leaderboard,
    parameters=(TopRows(100),),
)


@loader(LEADERBOARD)
def load_leaderboard() -> Values:
    """Load the 100 validators with the highest income of 7 days, one row per validator, in gwei.

    One request.

    Returns
    -------
    polars.DataFrame
        Sorted by ``rank_7d``. Consensus-layer income: rewards less penalties, which may be
        negative.

    Notes
    -----
    ``GET /api/v1/validator/leaderboard``. Updated every day, so never final.
    """
    return {}
