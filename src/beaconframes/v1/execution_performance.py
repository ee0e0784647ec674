"""What proposing earned validators on the execution layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, Subjects, load
from beaconframes.endpoint import UNRESOLVED, Endpoint, Identifiers
from beaconframes.schema import Count, Table, Wei

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class ExecutionPerformance(Table):
    """Execution-layer income. One row per validator."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    performance_1d_wei = Wei("Income of the last 24 hours.", wire="performance1d")
    performance_7d_wei = Wei("Income of the last 7 days.", wire="performance7d")
    performance_31d_wei = Wei("Income of the last 31 days.", wire="performance31d")
    performance_365d_wei = Wei("Income of the last 365 days.", wire="performance365d")
    performance_total_wei = Wei(
        "Income since genesis.", wire=("performanceTotal", "performancetotal")
    )


EXECUTION_PERFORMANCE = Endpoint(
    "execution_performance",
    route="GET /api/v1/validator/{validators}/execution/performance",
    table=ExecutionPerformance,
    parameters=(Identifiers("validators", ExecutionPerformance.validator_index),),
    absent=UNRESOLVED,
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
    """Load what proposing earned on the execution layer, one row per validator, in wei.

    100 validators a request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.
    options
        ``strict=True`` raises `MissingRows` for validators without a row, instead of warning.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``. Of each block counts what its relay paid or, if none did,
        the priority fees. The days are periods of 24 hours that end now. The service has no row of
        a validator of which it has no figures yet, and no long periods from older versions: null.

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
