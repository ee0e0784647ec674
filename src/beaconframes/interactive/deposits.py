"""Deposits over time, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

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
    **kwargs: Any,
) -> Figure:
    """Draw deposits: bars for days, weeks or months (UTC).

    *frame* is the result of ``bf.load_deposits(...)`` or ``bf.load_transaction_deposits(...)``;
    amounts are summed exactly. Deposits with an invalid signature, which have no effect, are
    stacked on the others in red, and those with an unknown one in grey. Deposits removed by a
    reorganization are left out.

    Bars that may be incomplete are hatched: the first and the last, because rows do not contain the
    range that was loaded. *since* and *until*, dates or times, are that range: then the bars that
    it does not cover completely are hatched.

    *cumulative* draws the sum since the first row instead.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.deposits(
        frame, every=every, unit=unit, cumulative=cumulative, since=since, until=until
    )
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
