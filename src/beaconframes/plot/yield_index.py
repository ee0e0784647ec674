"""The daily yield index, in matplotlib."""

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
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the yield index in percent per year: days as dots, averages over 7 and 31 days as lines.

    *frame* is the result of ``bf.load_yield_index(...)``; the averages are columns of it. With
    *split*, the consensus and the execution layer have a panel each; the second is
    ``ax.figure.axes[-1]``. Lines stop where days are missing. Averages begin with the 7th and the
    31st day of a chain.

    With *income* and *balances* of some validators, the results of ``bf.load_income_history(...)``
    and ``bf.load_balance_history(...)`` for the same days, their daily yield is drawn as well, by
    the same definition. Validators with missing rows on a day are left out of it.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to the ``Axes.plot`` of the dots.
    """
    chart = charts.yield_index(frame, income, balances, split=split)
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
