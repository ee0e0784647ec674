"""Chart of the indexed epochs, and whether their income explains their balances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import heatmap, series
from beaconframes.charts.model import Axis, Chart, Heatmap
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

MAX_COLUMNS = 300
"""Maximum number of columns: each has more than a pixel, so that one epoch of a year is visible."""

_NOT_INDEXED = "not indexed"
_STATUSES = {
    "explained": colours.BLUE,
    "unexplained": colours.RED,
    "unverified": colours.AMBER,
    _NOT_INDEXED: colours.GREY,
}


def index_coverage(coverage: IntoFrame, *, epochs: range | None = None) -> Chart:
    """Draw the epochs of an index of a beacon node: a row per status, a column per epoch.

    *coverage* is the result of ``bf.index(...)``.

    The income of an epoch is *explained* if it agrees with the balances of all validators to the
    gwei, and *unexplained* if it does not. It is *unverified* if the balances that follow are not
    final yet. Missing epochs between them are not indexed. Labels have the number of epochs. With
    more than 300 epochs, a column has several of them, and is filled in the row of each status that
    occurs.

    *epochs* are those to draw, such as ``range(0, 1000)``; by default from the first to the last
    indexed one.

    *kwargs* go to ``Axes.imshow``.
    """
    rows = series.read_rows(coverage, ["epoch", "time", "status"], loader="index").unique("epoch")
    if unknown := set(rows["status"].unique()) - _STATUSES.keys():
        raise UsageError(
            f"{shorten(min(unknown, key=str))} is not the status of an epoch",
            hint="Pass the frame that bf.index(...) returns.",
        )
    x, y = Axis("Epoch (UTC)", "epoch"), Axis("Balance changes (epochs)")
    if rows.is_empty():
        reason = series.explain_empty(coverage, "no row with an epoch, a time and a status")
        return Chart(x, y, empty_note=f"No epochs to draw: {reason}")
    first, count, start, step = heatmap.find_columns(rows, "epoch")
    if epochs is not None:
        if len(epochs) == 0 or epochs.step != 1:
            raise UsageError(
                f"epochs={epochs!r} has no consecutive epochs", hint="Write epochs=range(0, 100)"
            )
        start, first, count = start + (epochs[0] - first) * step, epochs[0], len(epochs)
    present = rows.filter(pl.col("epoch").is_between(first, first + count - 1))
    ranks = np.full(count, list(_STATUSES).index(_NOT_INDEXED))
    ranks[present["epoch"].to_numpy() - first] = (
        present["status"].replace_strict(list(_STATUSES), range(len(_STATUSES))).to_numpy()
    )
    size = -(-count // MAX_COLUMNS)
    cells = np.zeros((len(_STATUSES), -(-count // size)), np.uint8)
    cells[ranks, np.arange(count) // size] = ranks + 1
    counts = np.bincount(ranks, minlength=len(_STATUSES))
    names = [f"{name} ({number:,})" for name, number in zip(_STATUSES, counts, strict=True)]
    label = "Epoch (UTC)" if size == 1 else f"Epoch (UTC, {size:,} per column)"
    layer = Heatmap(
        start, size * step, names, cells, tuple(_STATUSES.items()), has_validators=False
    )
    return Chart(
        Axis(label, "epoch", np.array([start, start + (count - 1) * step])),
        y,
        (layer,),
        single_note="One epoch only" if count == 1 else None,
    )
