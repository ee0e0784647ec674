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
    every: Every = "day",
    unit: Unit = "eth",
    by: By = "total",
    cumulative: bool = False,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw an income history: bars for days, weeks or months (UTC), a line for epochs.

    *frame* is the result of ``bf.load_income_history(...)``. Net income is rewards minus penalties
    on the consensus layer plus the fees of proposed blocks, summed exactly; only the drawn heights
    are floats. With *by* ``"component"``, rewards are stacked, with penalties below zero; with
    ``"validator"``, each validator has a line. Hatched bars and hollow markers mean that epochs of
    their day, week or month are missing in the frame.

    *cumulative* draws the sum since the first row instead, as lines or stacked steps. Where epochs
    are missing, nothing is drawn and nothing is added.

    *kwargs* go to ``Axes.bar`` (bars), ``Axes.plot`` (lines) or ``Axes.fill_between`` (components
    as steps).
    """
    chart = charts.income(frame, every=every, unit=unit, by=by, cumulative=cumulative)
    return canvas.draw_chart(chart, ax, kwargs)
