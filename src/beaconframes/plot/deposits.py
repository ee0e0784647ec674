"""Deposits over time, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Moment
    from beaconframes.charts.series import Unit
    from beaconframes.charts.transfers import Every


def deposits(
    frame: IntoFrame,
    *,
    every: Every = "day",
    unit: Unit = "eth",
    cumulative: bool = False,
    since: Moment | None = None,
    until: Moment | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw deposits: bars for days, weeks or months (UTC).

    *frame* is the result of ``bf.load_deposits(...)`` or ``bf.load_transaction_deposits(...)``;
    amounts are summed exactly. Deposits with an invalid signature, which have no effect, are
    stacked on the others in red, and those with an unknown one in grey. Deposits removed by a
    reorganization are left out.

    Bars that may be incomplete are hatched: the first and the last, because rows do not contain the
    range that was loaded. *since* and *until*, dates or times, are that range: then the bars that
    it does not cover completely are hatched.

    *cumulative* draws the sum since the first row instead.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to ``Axes.bar``, or to ``Axes.plot`` (cumulative).
    """
    chart = charts.deposits(
        frame, every=every, unit=unit, cumulative=cumulative, since=since, until=until
    )
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
