"""Proposed, missed and orphaned blocks, to zoom and to hover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.charts.series import Unit


def proposals(
    frame: IntoFrame, produced: IntoFrame | None = None, *, unit: Unit = "eth", **kwargs: Any
) -> Figure:
    """Draw the blocks that validators were to propose: a timeline by validator.

    *frame* is what ``bf.load_proposals(...)`` gives. Missed, orphaned and scheduled proposals have
    marks of their own; the legend counts each kind.

    With *produced*, what ``bf.load_produced_blocks(...)`` gives, the height is what a block brought
    its producer on the execution layer, in *unit*; missed and orphaned blocks, and those that
    *produced* does not have, stand in rows beneath.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.proposals(frame, produced, unit=unit)
    return figure.build_figure(chart, kwargs)
