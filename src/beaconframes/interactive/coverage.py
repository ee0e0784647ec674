"""Rows present in a frame, by validator and epoch, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure


def coverage(frame: IntoFrame, **kwargs: Any) -> Figure:
    """Draw which epochs a frame has: a row per validator, a column per epoch.

    *frame* has one row per validator and epoch, such as the results of
    ``bf.load_income_history(...)``, ``bf.load_balance_history(...)`` and
    ``bf.load_attestations(...)``. The map spans the first to the last epoch of the frame. More than
    1,024 validators or epochs are folded, as the axes say; the colour is then the share of rows
    that are present.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.coverage(frame)
    return figure.build_figure(chart, kwargs)
