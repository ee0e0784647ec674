"""Proposed, missed and orphaned blocks, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.proposals import Show
    from beaconframes.charts.series import Unit


def proposals(
    frame: IntoFrame,
    produced: IntoFrame | None = None,
    *,
    show: Show = "auto",
    unit: Unit = "eth",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw block proposals: a timeline by validator, or their numbers over time.

    *frame* is the result of ``bf.load_proposals(...)``. Proposed, missed, orphaned and scheduled
    blocks have different markers; the legend counts each kind. With *show* ``"counts"``, bars have
    the number of each kind by hour, day, week or month; this is the default for more than 100
    validators. ``"timeline"`` always draws a marker per block.

    With *produced*, the result of ``bf.load_produced_blocks(...)``, the height is the producer's
    reward on the execution layer, in *unit*, on a logarithmic axis. Missed and orphaned blocks, and
    blocks without a reward or missing in *produced*, are drawn in rows below.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to the ``Axes.plot`` of the proposals.
    """
    chart = charts.proposals(frame, produced, show=show, unit=unit)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
