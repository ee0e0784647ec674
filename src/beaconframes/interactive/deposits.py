"""Deposits over time, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.series import Unit
    from beaconframes.charts.transfers import Every


def deposits(
    frame: IntoFrame,
    *,
    every: Every = "day",
    unit: Unit = "eth",
    cumulative: bool = False,
    **kwargs: Any,
) -> Figure:
    """Draw deposits: bars for days, weeks or months (UTC).

    *frame* is the result of ``bf.load_deposits(...)`` or ``bf.load_transaction_deposits(...)``;
    amounts are summed exactly. Deposits with an invalid signature, which have no effect, are
    stacked on the others in red. Deposits removed by a reorganisation are left out.

    *cumulative* draws the sum since the first row instead.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.deposits(frame, every=every, unit=unit, cumulative=cumulative)
    return figure.build_figure(chart, kwargs)
