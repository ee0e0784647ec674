"""Participation of the members of sync committees, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.sync_members import Show


def sync_members(
    blocks: IntoFrame,
    committees: IntoFrame,
    *,
    show: Show = "rates",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Draw the share of blocks that each member of sync committees signed, best first.

    *blocks* is the result of ``bf.load_epoch_slots(...)``, and *committees* the result of
    ``bf.load_sync_committees(...)`` or some of its rows. The share counts the proposed blocks of
    the member's periods that are in *blocks*. Members without a signature are named.

    With *show* ``"matrix"``, there is a row per member and a column per slot instead: signed or not
    signed. Slots without a block, which no member could sign, are empty, and marked above. With
    more than 1,024 slots or members, a cell has several of them, as the axis labels state; its
    colour is then the share of blocks signed.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.sync_members(blocks, committees, show=show)
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
