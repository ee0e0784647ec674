"""The daily yield index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame


def yield_index(
    frame: IntoFrame,
    income: IntoFrame | None = None,
    balances: IntoFrame | None = None,
    *,
    split: bool = False,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the yield index in percent a year: days as dots, averages over 7 and 31 days as lines.

    *frame* is what ``bf.load_yield_index(...)`` gives; the averages are those that it brings. With
    *split* the consensus and the execution layer are drawn apart. Lines stop where days are
    missing.

    With *income* and *balances* of some validators, what ``bf.load_income_history(...)`` and
    ``bf.load_balance_history(...)`` give for the same days, their own daily yield is drawn as well,
    by the same definition. It leaves out days, and validators of a day, whose rows are not all
    there.

    *kwargs* go to the ``Axes.plot`` of the dots.
    """
    chart = charts.yield_index(frame, income, balances, split=split)
    return canvas.draw_chart(chart, ax, kwargs)
