"""Participation in sync committees over time."""

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
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw which share of the sync committee signed, block by block or as means of epochs.

    *blocks* is what ``bf.load_epoch_slots(...)`` gives. Slots without a block in the chain have no
    participation: they are holes, and marked beneath the data as missed or orphaned. Epochs show
    the span from their lowest to their highest block as well. With *committees*, some or all rows
    of ``bf.load_sync_committees(...)``, a second line shows the seats in it alone.

    *kwargs* go to the ``Axes.plot`` of the participation.
    """
    chart = charts.sync_participation(blocks, committees, every=every)
    return canvas.draw_chart(chart, ax, kwargs)
