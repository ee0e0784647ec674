"""Which rows per validator and epoch are there, and why others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.adding import added
from beaconframes.analysis.engines import (
    beside,
    ends,
    finished,
    in_order,
    moved,
    opened,
    stacked,
)
from beaconframes.frames import each_row, known

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy

_KEYS = ["validator_index", "epoch"]
_LIFE = ["validator_index", "activation_epoch", "exit_epoch"]
_MARKS = ["asked", "there", "awake"]


def completeness(
    frame: IntoFrameT,
    validators: IntoFrame,
    *,
    since: int | None = None,
    until: int | None = None,
    finalized: int | None = None,
) -> IntoFrameT:
    """Tell of every validator and epoch whether there is a row. One row per validator and epoch.

    ``state`` is ``present``; or, without a row, ``inactive`` before the validator's activation or
    after its exit, ``not final`` after the epoch *finalized*, and else ``missing``.

    Parameters
    ----------
    frame
        Rows per validator and epoch: income, balances, attestations.
    validators
        What `load_validators` gives, of those that are asked about.
    since, until
        First and last epoch that are asked about. Left out: those of *frame*, which are looked up
        at once.
    finalized
        The last epoch that is final, such as ``current_finalized_epoch`` of `load_latest_state`.
        Left out: all of them are.

    Returns
    -------
    The same kind of frame
        ``validator_index``, ``epoch``, ``state``. Sorted, but for Dask.
    """
    rows = known(opened(frame, _KEYS, loader="load_income_history"), _KEYS)
    lives = beside(validators, _LIFE, loader="load_validators", like=rows)
    if since is None or until is None:
        first, last = ends(rows, "epoch")
        since, until = first if since is None else since, last if until is None else until
    epochs = pl.DataFrame({"epoch": pl.int_range(since, until + 1, eager=True)})
    asked = each_row(lives, lambda part: _marked_lives(part, epochs))
    there = each_row(rows, lambda part: _marked(part, nw.lit(0), nw.lit(1), nw.lit(0)))
    within = there.filter(nw.col("epoch").is_between(since, until))
    marks = added(stacked([asked, within]), _KEYS, _MARKS)
    return finished(in_order(each_row(marks, lambda part: _judged(part, finalized)), _KEYS), frame)


def _marked_lives(lives: Lazy, epochs: pl.DataFrame) -> Lazy:
    """Give a row per validator and epoch that says whether the validator was active."""
    grid = lives.join(moved(epochs, lives), how="cross")
    began = nw.col("activation_epoch") <= nw.col("epoch")
    ended = nw.col("exit_epoch") <= nw.col("epoch")
    awake = nw.when(began.fill_null(value=False) & ~ended.fill_null(value=False)).then(1)
    return _marked(grid, nw.lit(1), nw.lit(0), awake.otherwise(0))


def _marked(rows: Lazy, *marks: nw.Expr) -> Lazy:
    named = (mark.cast(nw.Int64).alias(name) for name, mark in zip(_MARKS, marks, strict=True))
    return rows.select(*(nw.col(name).cast(nw.Int64) for name in _KEYS), *named)


def _judged(marks: Lazy, finalized: int | None) -> Lazy:
    missing = nw.lit("missing")
    if finalized is not None:
        missing = nw.when(nw.col("epoch") > finalized).then(nw.lit("not final")).otherwise(missing)
    asleep = nw.when(nw.col("awake") == 0).then(nw.lit("inactive")).otherwise(missing)
    state = nw.when(nw.col("there") > 0).then(nw.lit("present")).otherwise(asleep)
    return marks.filter(nw.col("asked") > 0).select(*_KEYS, state.alias("state"))
