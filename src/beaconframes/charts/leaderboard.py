"""Chart of the validators with the highest income."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from beaconframes.charts import series
from beaconframes.charts.model import Axis, Bars, Chart
from beaconframes.charts.series import Unit
from beaconframes.frames import check_choice, check_count

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

Span = Literal["1d", "7d", "31d", "365d", "total"]

_SPANS = {
    "1d": "of the last day",
    "7d": "of the last 7 days",
    "31d": "of the last 31 days",
    "365d": "of the last 365 days",
    "total": "since activation",
}
_MAX_VALIDATORS = 100  # The length of a leaderboard.


def leaderboard(frame: IntoFrame, *, span: Span = "7d", unit: Unit = "eth", top: int = 20) -> Chart:
    """Draw the validators with the highest consensus-layer income, best at the top.

    *frame* is the result of ``bf.load_leaderboard(...)``, or of ``bf.load_performance(...)`` for
    your own validators. *span* is ``"1d"``, ``"7d"``, ``"31d"``, ``"365d"`` or ``"total"`` (since
    activation); *top* is the number of validators, up to 100.

    *kwargs* go to ``Axes.barh``.
    """
    check_choice("span", span, get_args(Span))
    check_choice("unit", unit, get_args(Unit))
    check_count("top", top, _MAX_VALIDATORS)
    column = f"performance_{span}_gwei"
    columns = ["validator_index", column]
    rows = series.read_rows(frame, columns, loader="load_leaderboard").unique()
    rows = rows.sort(column, "validator_index", descending=[True, False]).head(top)
    amount = f"Consensus income {_SPANS[span]} ({series.UNIT_NAMES[unit]})"
    names = tuple(str(index) for index in rows["validator_index"])
    reason = series.explain_empty(frame, "no row with a validator and its income")
    empty_note = f"No leaderboard to draw: {reason}" if rows.is_empty() else None
    height = series.convert_amounts(rows[column], unit)
    bars = Bars(np.arange(rows.height), height, horizontal=True)
    return Chart(
        Axis(amount, thousands=unit == "gwei", zero_line=bool((rows[column] < 0).any())),
        Axis("Validator, best at the top", tick_labels=names, reverse=True),
        () if empty_note else (bars,),
        empty_note,
        "One validator only" if rows.height == 1 else None,
        validators=rows.height,
    )
