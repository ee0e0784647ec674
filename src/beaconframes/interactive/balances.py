"""Balances over time, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.balances import By, Show
    from beaconframes.charts.series import Unit


def balances(
    frame: IntoFrame,
    *,
    unit: Unit = "eth",
    by: By = "validator",
    show: Show = "difference",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Draw balances by epoch, as the difference to the effective balance: per validator, or in sum.

    *frame* is the result of ``bf.load_balance_history(...)``. The difference is what a validator
    has earned since its last withdrawal, or since its effective balance changed. With *show*
    ``"balance"``, balances are drawn; that of a single validator beside its effective balance.

    Up to ten validators have a coloured line each; up to 50 are drawn in grey with their median. Of
    more, the median, the band of 80 % of them, and the extremes are drawn. With *by* ``"total"``,
    balances are summed exactly. Lines stop where epochs are missing.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.balances(frame, unit=unit, by=by, show=show)
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
