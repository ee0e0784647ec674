"""Row order: sorting by key in little memory, for rows in any order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.schema.table import pack_key

if TYPE_CHECKING:
    from collections.abc import Sequence


def sort_rows(frames: list[pl.DataFrame], key: Sequence[str]) -> pl.DataFrame:
    """Return the rows of *frames* sorted by *key*, nulls last; without a key, in their order.

    Rows with the same key are sorted by their other columns. The list is emptied, and every column
    is freed once it is sorted. Memory therefore never contains all rows twice, unless keys repeat
    or are not integers.
    """
    rows = pl.concat(frames)
    frames.clear()
    order = None
    if key:
        packed = pack_key(rows, key)
        if packed is None:
            return _sort_with_polars(rows, key)
        if not _is_strictly_sorted(packed):
            order = packed.arg_sort()
            if not _is_strictly_sorted(packed.gather(order)):
                return _sort_by_all_columns(rows, key)
        del packed
    waiting = rows.get_columns()
    del rows
    done: list[pl.Series] = []
    while waiting:
        # Gathering from one chunk takes half the time, and the bytes must not depend on chunks.
        column = waiting.pop(0).rechunk()
        done.append(column if order is None else column.gather(order))
    return pl.DataFrame(done)


def _sort_with_polars(rows: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Return *rows* sorted by a key of any types."""
    rows = rows.sort(key, nulls_last=True, maintain_order=True)
    same = (pl.col(name).eq_missing(pl.col(name).shift()) for name in key)
    tied = rows.select(pl.all_horizontal(same).slice(1).any()).item()
    return _sort_by_all_columns(rows, key) if tied else rows


def _sort_by_all_columns(rows: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Return *rows* sorted by *key* and then by all other columns."""
    others = pl.selectors.all() - pl.selectors.by_name(key)
    return rows.sort(*key, others, nulls_last=True)


def _is_strictly_sorted(numbers: pl.Series) -> bool:
    """Return whether each of the *numbers* is larger than the one before."""
    return (numbers.slice(1) > numbers.head(-1)).all()
