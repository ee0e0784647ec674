"""Execution-layer rewards of validators, by period."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers
from beaconframes.schema import Count, Table, Wei


class ExecutionPerformance(Table):
    """Execution-layer rewards by period. One row per validator."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    performance_1d_wei = Wei(
        "Rewards of the last 24 hours; null if a dataset does not have all of it.",
        wire="performance1d",
        nullable=True,
    )
    performance_7d_wei = Wei(
        "Rewards of the last 7 days; null if a dataset does not have all of it.",
        wire="performance7d",
        nullable=True,
    )
    performance_31d_wei = Wei(
        "Rewards of the last 31 days; null if a dataset does not have all of it.",
        wire="performance31d",
        nullable=True,
    )
    performance_365d_wei = Wei(
        "Rewards of the last 365 days.", wire="performance365d", optional=True
    )
    performance_total_wei = Wei(
        "Rewards since genesis.", wire=("performanceTotal", "performancetotal"), optional=True
    )


EXECUTION_PERFORMANCE = Endpoint(
    "execution_performance",
    route="GET /api/v1/validator/{validators}/execution/performance",
    table=ExecutionPerformance,
    parameters=(Identifiers("validators", ExecutionPerformance.validator_index),),
    absent=UNRESOLVED,
    lifetime=Lifetime.DUTIES,
)


@loader(EXECUTION_PERFORMANCE, missing="validators without a row")
def load_execution_performance(validators: Subjects) -> Values:
    """Load the execution-layer rewards of validators in total and over 1 to 365 days, one row per
    validator, in wei.

    100 validators per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``. The reward of a block is the payment of its relay or, without
        one, its priority fees. The periods are multiples of 24 hours that end now. The service has
        no row for a validator before its first figures; older versions of the service omit the long
        periods, which are then null.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/execution/performance``. Never final.
    """
    return {"validators": validators}
