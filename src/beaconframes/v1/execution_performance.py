"""Execution-layer rewards of validators, by period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.active_periods import Lifetime
from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, Subjects, load
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers
from beaconframes.schema import Count, Table, Wei

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class ExecutionPerformance(Table):
    """Execution-layer rewards by period. One row per validator."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    performance_1d_wei = Wei(
        "Rewards of the last 24 hours; null if a dataset does not have all of it.",
        wire="performance1d",
        nullable=True,
    )
    performance_7d_wei = Wei(
        "Income of the last 7 days; null if a dataset does not have all of it.",
        wire="performance7d",
        nullable=True,
    )
    performance_31d_wei = Wei(
        "Income of the last 31 days; null if a dataset does not have all of it.",
        wire="performance31d",
        nullable=True,
    )
    performance_365d_wei = Wei(
        "Income of the last 365 days.", wire="performance365d", optional=True
    )
    performance_total_wei = Wei(
        "Income since genesis.", wire=("performanceTotal", "performancetotal"), optional=True
    )


EXECUTION_PERFORMANCE = Endpoint(
    "execution_performance",
    route="GET /api/v1/validator/{validators}/execution/performance",
    table=ExecutionPerformance,
    parameters=(Identifiers("validators", ExecutionPerformance.validator_index),),
    absent=UNRESOLVED,
    lifetime=Lifetime.DUTIES,
)


@overload
def load_execution_performance(validators: Subjects, **options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_execution_performance(validators: Subjects, **options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_execution_performance(validators: Subjects, **options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_execution_performance(
    validators: Subjects,
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the execution-layer rewards of validators in total and over 1 to 365 days, one row per
    validator, in wei.

    100 validators per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    explorer, strict, lazy, frame, max_requests
        See `load_validators`. With ``strict=True``, validators without a row raise `MissingRows`
        instead of a warning.

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
    return load(
        EXECUTION_PERFORMANCE,
        {"validators": validators},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
