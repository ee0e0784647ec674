"""What of a dataset is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame


def coverage(frame: IntoFrame, *, ax: Axes | None = None, **kwargs: Any) -> Axes:
    """Draw which epochs of which validators a frame has: a row per validator, a column per epoch.

    *frame* has one row per validator and epoch, as ``bf.load_income_history(...)``,
    ``bf.load_balance_history(...)`` and ``bf.load_attestations(...)`` give it. The map spans what
    lies between the first and the last epoch of the frame. More than 1,024 validators or epochs are
    folded, as the axes say: then the colour is the share of rows that is there.

    *kwargs* go to ``Axes.imshow``.
    """
    chart = charts.coverage(frame)
    return canvas.draw_chart(chart, ax, kwargs)
