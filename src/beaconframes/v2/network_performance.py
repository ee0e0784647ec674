"""Duty scores of all validators together over a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import ChainName, Endpoint, Envelope, RollingWindow, Shape
from beaconframes.v2._columns import WindowColumns
from beaconframes.v2._score_columns import ScoreColumns

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class NetworkPerformance(WindowColumns, ScoreColumns):
    """Duty scores of all validators together over a window. One row."""


NETWORK_PERFORMANCE = Endpoint(
    "network_performance",
    route="POST /api/v2/ethereum/performance-aggregate",
    table=NetworkPerformance,
    parameters=(ChainName(), RollingWindow(NetworkPerformance.last_epoch, finalized=True)),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@overload
def load_network_performance(window: str = "30d", **options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_network_performance(window: str = "30d", **options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_network_performance(window: str = "30d", **options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_network_performance(
    window: str = "30d",
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the duty scores of all validators together over a window, one row.

    One request. Use it as a benchmark for your own validators: `load_performance_aggregate` has
    their scores.

    Parameters
    ----------
    window
        ``"24h"``, ``"7d"``, ``"30d"``, ``"90d"`` or ``"all_time"``. It ends with the latest
        finalized epoch.
    explorer, strict, lazy, frame, max_requests
        See `beaconframes.load_validators`.

    Returns
    -------
    polars.DataFrame
        One row, with the epochs of the window. Scores are fractions. Do not average the scores of
        several windows: add up the counts. The service requires its badge beside every BeaconScore
        that is published.

    Notes
    -----
    ``POST /api/v2/ethereum/performance-aggregate``. Never final: the window moves.
    """
    return load(
        NETWORK_PERFORMANCE,
        {"window": window},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
