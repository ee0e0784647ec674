"""The validators with the highest income, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.leaderboard import Span
    from beaconframes.charts.series import Unit


def leaderboard(
    frame: IntoFrame,
    *,
    span: Span = "7d",
    unit: Unit = "eth",
    top: int = 20,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Draw the validators with the highest consensus-layer income, best at the top.

    *frame* is the result of ``bf.load_leaderboard(...)``, or of ``bf.load_performance(...)`` for
    your own validators. *span* is ``"1d"``, ``"7d"``, ``"31d"``, ``"365d"`` or ``"total"`` (since
    activation); *top* is the number of validators, up to 100.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.leaderboard(frame, span=span, unit=unit, top=top)
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
