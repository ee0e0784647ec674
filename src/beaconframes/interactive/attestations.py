"""Attestation duties, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.attestations import Show


def attestations(
    frame: IntoFrame,
    *,
    show: Show = "map",
    late: int = 2,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Draw the outcome of attestation duties: a row per validator, a column per epoch.

    *frame* is the result of ``bf.load_attestations(...)``. An attestation is late if it was
    included *late* or more slots after its own slot. A missed attestation may have had no block
    that could include it. A pending one can still be included; it is grey, and not counted. With
    more than 100 validators or 1,024 epochs, a cell has several of them, as the axis labels state;
    its colour is then the share of duties included in time.

    With *show* ``"distance"``, bars show the number of slots until inclusion, in percent of the
    duties that are not pending.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.attestations(frame, show=show, late=late)
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
