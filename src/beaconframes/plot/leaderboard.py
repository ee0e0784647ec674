"""The validators with the highest income, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

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
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the validators with the highest consensus-layer income, best at the top.

    *frame* is the result of ``bf.load_leaderboard(...)``, or of ``bf.load_performance(...)`` for
    your own validators. *span* is ``"1d"``, ``"7d"``, ``"31d"``, ``"365d"`` or ``"total"`` (since
    activation); *top* is the number of validators, up to 100.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to ``Axes.barh``.
    """
    chart = charts.leaderboard(frame, span=span, unit=unit, top=top)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
