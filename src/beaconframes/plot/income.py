"""Income over time, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.income import By, Every
    from beaconframes.charts.series import Unit


def income(
    frame: IntoFrame,
    *,
    blocks: IntoFrame | None = None,
    every: Every = "day",
    unit: Unit = "eth",
    by: By = "total",
    cumulative: bool = False,
    yield_index: IntoFrame | None = None,
    balances: IntoFrame | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw an income history: bars for days, weeks or months (UTC), a line for epochs.

    *frame* is the result of ``bf.load_income_history(...)``. Net income is rewards minus penalties
    on the consensus layer plus execution income, summed exactly; only the drawn heights are floats.
    With *by* ``"component"``, rewards are stacked, and penalties have a panel below with their own
    scale, ``ax.figure.axes[-1]``. With ``"validator"``, each validator has a line; of more than 50,
    the median, the band of 80 % of them, and the extremes are drawn. Bars are hatched and markers
    hollow where the frame does not have a whole day, week or month of epochs, also where the chain
    began or the newest epoch is within it.

    With *blocks*, the result of ``bf.load_produced_blocks(...)``, execution income is what the
    proposers received; without it, priority fees, relay payments not included.

    *cumulative* draws the sum since the first row instead, as lines or stacked steps. Where epochs
    are missing, nothing is drawn and nothing is added.

    With *yield_index*, the result of ``bf.load_yield_index(...)``, a dashed line has the income of
    as many validators at the rate of the index: with the effective *balances* of
    ``bf.load_balance_history(...)``, or 32 ETH each. It stops where the index has no day.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to ``Axes.bar`` (bars), ``Axes.plot`` (lines) or ``Axes.fill_between`` (components
    as steps).
    """
    chart = charts.income(
        frame,
        blocks=blocks,
        every=every,
        unit=unit,
        by=by,
        cumulative=cumulative,
        yield_index=yield_index,
        balances=balances,
    )
    return canvas.draw_chart(chart, kwargs, title=title, figsize=figsize, caption=caption, ax=ax)
