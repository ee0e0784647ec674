"""Duty scores of a set of validators over a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import (
    ChainName,
    Endpoint,
    Envelope,
    RollingWindow,
    Shape,
    ValidatorSelector,
)
from beaconframes.schema import Epoch, Text, UnixTime
from beaconframes.v2._arguments import SubjectsOrSet
from beaconframes.v2._score_columns import ScoreColumns

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class PerformanceAggregate(ScoreColumns):
    """Duty scores of a set over a window. One row."""

    window = Text("Requested window.", context="request.range.evaluation_window")
    first_epoch = Epoch("First epoch of the window.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the window.", context="range.epoch.end")
    start_time = UnixTime("Start of the window, UTC.", context="range.timestamp.start")
    end_time = UnixTime("Last second of the window, UTC.", context="range.timestamp.end")


PERFORMANCE_AGGREGATE = Endpoint(
    "performance_aggregate",
    route="POST /api/v2/ethereum/validators/performance-aggregate",
    table=PerformanceAggregate,
    parameters=(
        ChainName(),
        ValidatorSelector(batched="refused"),
        RollingWindow(PerformanceAggregate.last_epoch, finalized=True),
    ),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@overload
def load_performance_aggregate(
    validators: SubjectsOrSet, window: str = "30d", **options: Unpack[Eager]
) -> pl.DataFrame: ...
@overload
def load_performance_aggregate(
    validators: SubjectsOrSet, window: str = "30d", **options: Unpack[Lazy]
) -> pl.LazyFrame: ...
@overload
def load_performance_aggregate(
    validators: SubjectsOrSet, window: str = "30d", **options: Unpack[Pandas]
) -> pd.DataFrame: ...
def load_performance_aggregate(
    validators: SubjectsOrSet,
    window: str = "30d",
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the duty scores of a set of validators over a window, one row.

    One request. At most 100 validators (20 on the smallest plans) or a dashboard of any size: the
    score of a set does not follow from those of its parts.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    window
        ``"24h"``, ``"7d"``, ``"30d"``, ``"90d"`` or ``"all_time"``. It ends with the latest
        finalized epoch.
    explorer, strict, lazy, frame, max_requests
        See `beaconframes.load_validators`.

    Returns
    -------
    polars.DataFrame
        One row, with the epochs of the window. The service requires its badge beside every
        BeaconScore that is published.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/performance-aggregate``. Never final: the window moves.
    """
    return load(
        PERFORMANCE_AGGREGATE,
        {"validators": validators, "window": window},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
