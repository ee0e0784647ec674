"""Indexed epochs by status, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure


def index_coverage(
    coverage: IntoFrame,
    *,
    epochs: range | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Draw the epochs of an index of a beacon node: a row per status, a column per epoch.

    *coverage* is the result of ``bf.index(...)``.

    The income of an epoch is *explained* if it agrees with the balances of all validators to the
    gwei, and *unexplained* if it does not. It is *unverified* if the balances that follow are not
    final yet. Missing epochs between them are not indexed. Labels have the number of epochs. With
    more than 300 epochs, a column has several of them, and is filled in the row of each status that
    occurs.

    *epochs*, such as ``range(0, 1000)``, are the epochs to draw. Default: from the first to the
    last indexed one.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.index_coverage(coverage, epochs=epochs)
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
