"""Rows present in a frame, by validator and epoch, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure


def coverage(
    frame: IntoFrame,
    validators: IntoFrame | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Draw which rows are loaded and which are missing: a row per validator, a column per epoch.

    *frame* has one row per validator and epoch, such as the results of
    ``bf.load_income_history(...)``, ``bf.load_balance_history(...)`` and
    ``bf.load_attestations(...)``. The map spans the first to the last epoch of the frame. With
    *validators*, the result of ``bf.load_validators(...)``, epochs in which a validator was not
    active are separate from missing ones, and validators without any row are drawn, too.

    With more than 1,024 validators or epochs, a cell has several of them, as the axis labels state;
    its colour is then the share of rows that are loaded.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.coverage(frame, validators)
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
