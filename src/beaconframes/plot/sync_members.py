"""Participation of the members of sync committees, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.sync_members import Show


def sync_members(
    blocks: IntoFrame,
    committees: IntoFrame,
    *,
    show: Show = "rates",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the share of blocks that each member of sync committees signed, best first.

    *blocks* is the result of ``bf.load_epoch_slots(...)``, and *committees* the result of
    ``bf.load_sync_committees(...)`` or some of its rows. The share counts the proposed blocks of
    the member's periods that are in *blocks*. Members without a signature are named.

    With *show* ``"matrix"``, there is a row per member and a column per slot instead: signed or not
    signed. Slots without a block, which no member could sign, are empty, and marked above. With
    more than 1,024 slots or members, a cell has several of them, as the axis labels state; its
    colour is then the share of blocks signed.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to the ``Axes.plot`` of the members, or to ``Axes.imshow``.
    """
    chart = charts.sync_members(blocks, committees, show=show)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
