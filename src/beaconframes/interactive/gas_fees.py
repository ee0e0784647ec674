"""Gas fee tiers, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.series import Unit


def gas_fees(
    frame: IntoFrame,
    *,
    unit: Unit = "gwei",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Draw the price of gas for each tier: bars for one reading, lines for several.

    *frame* is the result of ``bf.load_gas_fees()``, or several results concatenated
    (``pl.concat``). Lines stop where the pause between readings is more than three times the usual
    pause.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.gas_fees(frame, unit=unit)
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
