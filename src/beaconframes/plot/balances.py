"""Balances over time, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

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
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw balances by epoch, as the difference to the effective balance: per validator, or in sum.

    *frame* is the result of ``bf.load_balance_history(...)``. The difference is what a validator
    has earned since its last withdrawal, or since its effective balance changed. With *show*
    ``"balance"``, balances are drawn; that of a single validator beside its effective balance.

    Up to ten validators have a coloured line each; up to 50 are drawn in grey with their median. Of
    more, the median, the band of 80 % of them, and the extremes are drawn. With *by* ``"total"``,
    balances are summed exactly. Lines stop where epochs are missing.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to the ``Axes.plot`` of the balances (of many validators: of the median).
    """
    chart = charts.balances(frame, unit=unit, by=by, show=show)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
