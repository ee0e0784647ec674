"""Consensus-layer income of validators by period, and their rank."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers
from beaconframes.schema import Count, Gwei, Table


class Performance(Table):
    """Consensus-layer income by period. One row per validator."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    rank_7d = Count("Rank by the income of the last 7 days, from 1.", wire="rank7d", optional=True)
    balance_gwei = Gwei("Current balance.", wire="balance", optional=True, minimum=0)
    performance_today_gwei = Gwei(
        "Income of the current day; may be negative.", wire="performancetoday", optional=True
    )
    performance_1d_gwei = Gwei(
        "Income of the last day; may be negative.", wire="performance1d", optional=True
    )
    performance_7d_gwei = Gwei("Income of the last 7 days.", wire="performance7d", optional=True)
    performance_31d_gwei = Gwei("Income of the last 31 days.", wire="performance31d", optional=True)
    performance_365d_gwei = Gwei(
        "Income of the last 365 days.", wire="performance365d", optional=True
    )
    performance_total_gwei = Gwei(
        "Income since activation.", wire=("performancetotal", "performanceTotal"), optional=True
    )


PERFORMANCE = Endpoint(
    "performance",
    route="GET /api/v1/validator/{validators}/performance",
    table=Performance,
    parameters=(Identifiers("validators", Performance.validator_index),),
    absent=UNRESOLVED,
    lifetime=Lifetime.DUTIES,
)


@loader(PERFORMANCE, missing="validators without a row")
def load_performance(validators: Subjects) -> Values:
    """Load the consensus-layer income of validators in total and over 1 to 365 days, one row per
    validator, in gwei.

    100 validators per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``. Income is rewards less penalties, so it may be negative.
        Periods and rank are null for a validator that was activated today.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/performance``. Never final.
    """
    return {"validators": validators}
