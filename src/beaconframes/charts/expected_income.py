"""Chart of income so far, against what the yield index would have paid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from beaconframes.charts.income import Every, income
from beaconframes.charts.model import Chart, Line
from beaconframes.charts.series import Unit  # noqa: TC001 - the command line reads its values

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame


def expected_income(
    frame: IntoFrame,
    yield_index: IntoFrame,
    balances: IntoFrame | None = None,
    *,
    blocks: IntoFrame | None = None,
    every: Every = "epoch",
    unit: Unit | None = None,
) -> Chart:
    """Draw the income since the first row, and what the yield index would have paid.

    *frame* is the result of ``bf.load_income_history(...)``, *yield_index* that of
    ``bf.load_yield_index(...)``. The dashed line has the income of as many validators at the rate
    of the index: with the effective *balances* of ``bf.load_balance_history(...)``, or 32 ETH each.
    It stops where the index has no day. ``title="auto"`` states the difference at its end.

    With *blocks*, the result of ``bf.load_produced_blocks(...)``, execution income is what the
    proposers received; without it, priority fees, relay payments not included. *unit* is that of
    the axis; by default ETH, or gwei for amounts below 0.001 ETH.

    *kwargs* go to the ``Axes.plot`` of the income.
    """
    chart = income(
        frame,
        blocks=blocks,
        every=every,
        unit=unit,
        cumulative=True,
        yield_index=yield_index,
        balances=balances,
    )
    if chart.empty_note:
        return chart
    own, expected = (layer for layer in chart.layers if isinstance(layer, Line))
    known = np.flatnonzero(np.isfinite(own.y) & np.isfinite(expected.y))
    if not len(known) or not expected.y[known[-1]]:
        return chart
    return replace(chart, finding=_compare(own, expected, known[-1], chart.note))


def _compare(own: Line, expected: Line, last: int, note: str) -> str:
    difference = 100 * (own.y[last] / expected.y[last] - 1)
    word = "less" if difference < 0 else "more"
    day = own.x[last].astype("datetime64[s]").item()
    # The year is in the caption.
    text = f"earned {abs(difference):.1f} % {word} than at the yield index by {day:%b} {day.day}"
    return f"{text} ({note})" if note else text
