"""Gas fee tiers, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.series import Unit


def gas_fees(
    frame: IntoFrame,
    *,
    unit: Unit = "gwei",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the price of gas for each tier: bars for one reading, lines for several.

    *frame* is the result of ``bf.load_gas_fees()``, or several results concatenated
    (``pl.concat``). Lines stop where the pause between readings is more than three times the usual
    pause.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to ``Axes.bar`` (one reading) or ``Axes.plot`` (several).
    """
    chart = charts.gas_fees(frame, unit=unit)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
