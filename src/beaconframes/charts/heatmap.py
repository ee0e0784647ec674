"""Heatmaps with a row per validator; too many rows or columns are merged into bins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.charts.model import Axis, Chart, Heatmap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_CELLS = 1024
"""Maximum number of rows or columns: a screen has few more pixels."""

_LENGTHS = {"slot": 12, "epoch": 384, "day": 86_400}


def compute_bin_size(count: int, most: int = MAX_CELLS) -> int:
    """Return how many rows or columns are merged into one, so that at most *most* are left."""
    return max(1, -(-count // most))


def find_columns(rows: pl.DataFrame, number: str) -> tuple[int, int, np.datetime64, np.timedelta64]:
    """Return the first *number*, the count of columns, their start and their length.

    The length of an epoch, slot or day is computed from the first and the last row. The length of a
    single one is unknown; it gets that of mainnet.
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
    quantity: str,
    counted: int,
    single_note: str | None,
    whole: bool = False,
    not_due: int | None = None,
    most_rows: int = MAX_CELLS,
) -> Chart:
    """Build the heatmap, with a row per validator and a column per *number*.

    *parts* have ``row`` and ``column`` from 0 and ``kind``, the position in *kinds* from 1; of
    several kinds in a cell, the highest counts. If rows or columns are merged, a cell is the share
    (named *quantity*) of the first kind among the first *counted* kinds. If *whole*, cells that are
    not in *parts* are of the last kind; otherwise they are empty. Cells of the kind *not_due* are
    left out of shares. More than *most_rows* validators share rows.
    """
    count, start, step = columns
    row_bin, column_bin = compute_bin_size(len(validators), most_rows), compute_bin_size(count)
    shape = (-(-len(validators) // row_bin), -(-count // column_bin))
    sums = [
        part.group_by(pl.col("row") // row_bin, pl.col("column") // column_bin).agg(
            pl.col("kind").max(),
            good=(pl.col("kind") == 1).sum(),
            total=(pl.col("kind") <= counted).sum(),
            not_due=(pl.col("kind") == (not_due or 0)).sum(),
        )
        for part in parts
    ]
    cells_by_bin = (
        pl.concat(sums)
        .group_by("row", "column")
        .agg(pl.col("kind").max(), pl.col("good", "total", "not_due").sum())
    )
    at = (cells_by_bin["row"].to_numpy(), cells_by_bin["column"].to_numpy())
    x = Axis(
        f"{number.capitalize()} (UTC{f', {column_bin:,} per column' if column_bin > 1 else ''})",
        number,
        np.array([start, start + (count - 1) * step]),
    )
    y = Axis(rows_label + (f", {row_bin:,} per row" if row_bin > 1 else ""))
    names = [str(index) for index in validators[::row_bin]]
    if row_bin == column_bin == 1:
        cells = np.full(shape, len(kinds) if whole else 0, np.uint8)
        cells[at] = cells_by_bin["kind"].to_numpy()
        layer = Heatmap(start, step, names, cells, kinds)
        kind_counts = np.bincount(cells.ravel(), minlength=len(kinds) + 1)
        legend = tuple(name for i, (name, _) in enumerate(kinds) if kind_counts[i + 1])
        return Chart(x, y, (layer,), single_note=single_note, legend=legend)
    first_kind, counted_cells = np.zeros((2, *shape))
    first_kind[at] = cells_by_bin["good"].to_numpy()
    counted_cells[at] = cells_by_bin["total"].to_numpy()
    if whole:
        # The last row and the last column may have fewer.
        row_counts = np.minimum(row_bin, len(validators) - np.arange(0, len(validators), row_bin))
        column_counts = np.minimum(column_bin, count - np.arange(0, count, column_bin))
        counted_cells[:] = np.outer(row_counts, column_counts)
        counted_cells[at] -= cells_by_bin["not_due"].to_numpy()
    percent = 100 * first_kind / np.where(counted_cells > 0, counted_cells, np.nan)
    layer = Heatmap(
        start,
        column_bin * step,
        names,
        percent.astype(np.float32),
        quantity=quantity,
        validators_per_row=row_bin,
    )
    return Chart(x, y, (layer,), single_note=single_note)
