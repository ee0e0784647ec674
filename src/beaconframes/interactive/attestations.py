"""Attestation duties, to zoom and to hover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.attestations import Show


def attestations(frame: IntoFrame, *, show: Show = "map", late: int = 2, **kwargs: Any) -> Figure:
    """Draw what became of attestation duties: a row per validator, a column per epoch.

    *frame* is what ``bf.load_attestations(...)`` gives. An attestation is late when it was included
    *late* or more slots after its own; one that is missed may also be one that nobody could include
    yet. More than 1,024 validators or epochs are folded, as the axes say: then the colour is the
    share of duties that were included in time.

    With *show* ``"distance"`` bars count how many slots after their own attestations were included,
    in percent of all duties.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.attestations(frame, show=show, late=late)
    return figure.build_figure(chart, kwargs)
