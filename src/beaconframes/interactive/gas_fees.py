"""Gas fee tiers, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.series import Unit


def gas_fees(frame: IntoFrame, *, unit: Unit = "gwei", **kwargs: Any) -> Figure:
    """Draw the price of gas for each tier: bars for one reading, lines for several.

    *frame* is the result of ``bf.load_gas_fees()``, or several results concatenated
    (``pl.concat``). Lines stop where the pause between readings is more than three times the usual
    pause.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.gas_fees(frame, unit=unit)
    return figure.build_figure(chart, kwargs)
