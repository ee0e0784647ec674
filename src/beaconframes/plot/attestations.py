"""Attestation duties, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.attestations import Show


def attestations(
    frame: IntoFrame,
    *,
    show: Show = "map",
    late: int = 2,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the outcome of attestation duties: a row per validator, a column per epoch.

    *frame* is the result of ``bf.load_attestations(...)``. An attestation is late if it was
    included *late* or more slots after its own slot. A missed attestation may have had no block
    that could include it. A pending one can still be included; it is grey, and not counted. With
    more than 100 validators or 1,024 epochs, a cell has several of them, as the axis labels state;
    its colour is then the share of duties included in time.

    With *show* ``"distance"``, bars show the number of slots until inclusion, in percent of the
    duties that are not pending.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to ``Axes.imshow``, or to ``Axes.bar``.
    """
    chart = charts.attestations(frame, show=show, late=late)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
