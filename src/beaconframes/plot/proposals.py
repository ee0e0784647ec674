"""Proposed, missed and orphaned blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.series import Unit


def proposals(
    frame: IntoFrame,
    produced: IntoFrame | None = None,
    *,
    unit: Unit = "eth",
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the blocks that validators were to propose: a timeline by validator.

    *frame* is what ``bf.load_proposals(...)`` gives. Missed, orphaned and scheduled proposals have
    marks of their own; the legend counts each kind.

    With *produced*, what ``bf.load_produced_blocks(...)`` gives, the height is what a block brought
    its producer on the execution layer, in *unit*; missed and orphaned blocks, and those that
    *produced* does not have, stand in rows beneath.

    *kwargs* go to the ``Axes.plot`` of the proposals.
    """
    chart = charts.proposals(frame, produced, unit=unit)
    return canvas.draw_chart(chart, ax, kwargs)
