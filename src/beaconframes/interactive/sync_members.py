"""Participation of the members of sync committees, to zoom and to hover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.sync_members import Show


def sync_members(
    blocks: IntoFrame, committees: IntoFrame, *, show: Show = "rates", **kwargs: Any
) -> Figure:
    """Draw how much each member of sync committees signed, best first.

    *blocks* is what ``bf.load_epoch_slots(...)`` gives and *committees* what
    ``bf.load_sync_committees(...)`` gives, or the rows of it that are of interest. A member is
    judged by the proposed blocks of its periods that *blocks* has.

    With *show* ``"matrix"`` there is a row per member and a column per slot instead: signed or not,
    or a slot without a block, which nobody could sign. More than 1,024 slots or members are folded,
    as the axes say: then the colour is the share of blocks signed, and slots without a block are
    marked above.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.sync_members(blocks, committees, show=show)
    return figure.build_figure(chart, kwargs)
