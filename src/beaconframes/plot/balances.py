"""Balances over time, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.balances import By
    from beaconframes.charts.series import Unit


def balances(
    frame: IntoFrame,
    *,
    unit: Unit = "eth",
    by: By = "validator",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw balances by epoch: a line per validator, or their sum.

    *frame* is the result of ``bf.load_balance_history(...)``. A single validator is drawn with its
    effective balance. Several validators have a line each; more than ten are drawn in grey with
    their median. With *by* ``"total"``, balances are summed exactly; the legend has the number of
    validators, because a validator that joins or leaves also changes the sum. Lines stop where
    epochs are missing.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to the ``Axes.plot`` of the balances (of many validators: of the median).
    """
    chart = charts.balances(frame, unit=unit, by=by)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
