"""Heatmaps with a row per validator; rows and columns are folded where there are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.charts.model import Axis, Chart, Heatmap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

MAX_CELLS = 1024
"""Maximum number of rows or columns: a screen has few more pixels."""

_LENGTHS = {"slot": 12, "epoch": 384, "day": 86_400}


def compute_fold(count: int) -> int:
    """Return how many rows or columns are folded into one."""
    return max(1, -(-count // MAX_CELLS))


def find_columns(rows: pl.DataFrame, number: str) -> tuple[int, int, np.datetime64, np.timedelta64]:
    """Return the first *number*, the count of columns, their start and their length.

    The length of an epoch, slot or day is computed from the first and the last row. A single one
    has no known length; it gets that of mainnet.
    """
    first = rows.row(rows[number].arg_min() or 0, named=True)
    last = rows.row(rows[number].arg_max() or 0, named=True)
    span = last[number] - first[number]
    begin = np.datetime64(first["time"].replace(tzinfo=None), "us")
    step = np.timedelta64(_LENGTHS[number], "s").astype("timedelta64[us]")
    if span:
        step = (np.datetime64(last["time"].replace(tzinfo=None), "us") - begin) // span
    return first[number], span + 1, begin, step


def build_heatmap(
    parts: Iterable[pl.DataFrame],
    validators: Sequence[int],
    columns: tuple[int, np.datetime64, np.timedelta64],
    *,
    number: str,
    rows_label: str,
    kinds: tuple[tuple[str, str], ...],
    shares: str,
    counted: int,
    single_note: str | None,
    whole: bool = False,
) -> Chart:
    """Build the heatmap, with a row per validator and a column per *number*.

    *parts* have ``row`` and ``column`` from 0 and ``kind``, the position in *kinds* from 1; of
    several kinds in a cell, the highest counts. Where there are too many cells, a cell is the share
    (named *shares*) of the first kind among the first *counted* kinds. If *whole*, cells that are
    not in *parts* are of the last kind; otherwise they are empty.
    """
    count, start, step = columns
    down, across = compute_fold(len(validators)), compute_fold(count)
    shape = (-(-len(validators) // down), -(-count // across))
    sums = [
        part.group_by(pl.col("row") // down, pl.col("column") // across).agg(
            pl.col("kind").max(),
            good=(pl.col("kind") == 1).sum(),
            known=(pl.col("kind") <= counted).sum(),
        )
        for part in parts
    ]
    found = (
        pl.concat(sums)
        .group_by("row", "column")
        .agg(pl.col("kind").max(), pl.col("good", "known").sum())
    )
    at = (found["row"].to_numpy(), found["column"].to_numpy())
    x = Axis(
        f"{number.capitalize()} (UTC{_describe_fold(across, number, 'column')})",
        number,
        _find_ends(columns),
    )
    y = Axis(rows_label + _describe_fold(down, "validator", "row"))
    names = [str(index) for index in validators[::down]]
    if down == across == 1:
        cells = np.full(shape, len(kinds) if whole else 0, np.uint8)
        cells[at] = found["kind"].to_numpy()
        layer = Heatmap(start, step, names, cells, kinds)
        occur = np.bincount(cells.ravel(), minlength=len(kinds) + 1)
        legend = tuple(name for i, (name, _) in enumerate(kinds) if occur[i + 1])
        return Chart(x, y, (layer,), single_note=single_note, legend=legend)
    first_kind, counted_cells = np.zeros((2, *shape))
    first_kind[at], counted_cells[at] = found["good"].to_numpy(), found["known"].to_numpy()
    if whole:
        counted_cells[:] = np.outer(
            _compute_fold_sizes(len(validators), down), _compute_fold_sizes(count, across)
        )
    percent = 100 * first_kind / np.where(counted_cells > 0, counted_cells, np.nan)
    layer = Heatmap(start, across * step, names, percent.astype(np.float32), (), shares)
    return Chart(x, y, (layer,), single_note=single_note)


def _compute_fold_sizes(count: int, times: int) -> NDArray[np.int64]:
    """Return the number of rows or columns in each fold; the last may have fewer."""
    return np.diff(np.append(np.arange(0, count, times), count))


def _describe_fold(times: int, what: str, into: str) -> str:
    """Return the part of the axis label for folded rows or columns."""
    return f", {times:,} {what}s per {into}" if times > 1 else ""


def _find_ends(columns: tuple[int, np.datetime64, np.timedelta64]) -> NDArray[np.datetime64]:
    """Return the times of the first and the last column, the range of the ticks."""
    count, start, step = columns
    return np.array([start, start + (count - 1) * step])
