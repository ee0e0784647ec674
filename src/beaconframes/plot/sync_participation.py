"""Participation in sync committees over time, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.analysis.sync_committees import Step


def sync_participation(
    blocks: IntoFrame,
    committees: IntoFrame | None = None,
    *,
    every: Step = "slot",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the share of the sync committee that signed, by block or as means of epochs.

    *blocks* is the result of ``bf.load_epoch_slots(...)``. Slots without a block in the chain have
    no participation: the line stops there, and a marker below the data says whether the block was
    missed or orphaned. For epochs, a band spans the lowest to the highest block. With *committees*,
    some or all rows of ``bf.load_sync_committees(...)``, a second line shows these seats alone.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to the ``Axes.plot`` of the participation.
    """
    chart = charts.sync_participation(blocks, committees, every=every)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
