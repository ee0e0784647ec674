"""Attestation duties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.attestations import Show


def attestations(
    frame: IntoFrame, *, show: Show = "map", late: int = 2, ax: Axes | None = None, **kwargs: Any
) -> Axes:
    """Draw what became of attestation duties: a row per validator, a column per epoch.

    *frame* is what ``bf.load_attestations(...)`` gives. An attestation is late when it was included
    *late* or more slots after its own; one that is missed may also be one that nobody could include
    yet. More than 1,024 validators or epochs are folded, as the axes say: then the colour is the
    share of duties that were included in time.

    With *show* ``"distance"`` bars count how many slots after their own attestations were included,
    in percent of all duties.

    *kwargs* go to ``Axes.imshow``, or to ``Axes.bar``.
    """
    chart = charts.attestations(frame, show=show, late=late)
    return canvas.draw_chart(chart, ax, kwargs)
