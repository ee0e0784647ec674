"""Completeness of rows per validator and epoch: present, inactive, not final or missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.active_periods import END_OF_BALANCE, Lifetime, end_epoch
from beaconframes.analysis.aggregation import aggregate
from beaconframes.analysis.engines import (
    find_range,
    move_to_engine,
    open_frame,
    open_frame_like,
    return_lazy,
    sort_rows,
)
from beaconframes.frames import drop_missing, list_column_names, map_rows
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy

_KEYS = ["validator_index", "epoch"]
_ACTIVE_PERIOD = ["validator_index", "activation_epoch", "exit_epoch"]
_LIFETIMES = {"balance_gwei": Lifetime.BALANCE, "attester_slot": Lifetime.DUTIES}
"""The rule of a table, by a column that only this table has; income is the other table."""
_MARKS = ["requested", "present", "active"]


@show_elapsed
def completeness(
    frame: IntoFrameT,
    validators: IntoFrame,
    *,
    since: int | None = None,
    until: int | None = None,
    finalized: int | None = None,
) -> IntoFrameT:
    """Classify every validator and epoch as present or missing. One row per validator and epoch.

    ``state`` is ``present``, or for an absent row ``inactive`` (before the validator's activation
    or after its exit), ``not final`` (after the epoch *finalized*), or else ``missing``. Rows that
    a loader reports as missing are ``missing`` here, and no others: a slashed validator has income
    until it can withdraw, and any validator has a balance until then.

    Parameters
    ----------
    frame
        Rows per validator and epoch: income, balances or attestations.
    validators
        Frame of `load_validators`, of the validators to check. Without its columns ``slashed`` and
        ``withdrawable_epoch``, all rows end with the exit.
    since, until
        First and last epoch to check. Default: those of *frame*, which are read eagerly.
    finalized
        Last final epoch, such as ``current_finalized_epoch`` of `load_latest_state`. Default: all
        epochs are final.

    Returns
    -------
    The same kind of frame
        ``validator_index``, ``epoch``, ``state``. Sorted, except for Dask.
    """
    rows = drop_missing(open_frame(frame, _KEYS, loader="load_income_history"), _KEYS)
    names = list_column_names(validators)
    columns = [*_ACTIVE_PERIOD, *(name for name in END_OF_BALANCE if name in names)]
    active_periods = open_frame_like(validators, columns, loader="load_validators", like=rows)
    has_end = len(columns) == len(_ACTIVE_PERIOD) + len(END_OF_BALANCE)
    own = list_column_names(frame)
    lifetimes = (rule for name, rule in _LIFETIMES.items() if name in own)
    lifetime = next(lifetimes, Lifetime.PENALTIES) if has_end else Lifetime.DUTIES
    if since is None or until is None:
        first, last = find_range(rows, "epoch")
        since, until = first if since is None else since, last if until is None else until
    epochs = pl.DataFrame({"epoch": pl.int_range(since, until + 1, eager=True)})
    requested = map_rows(active_periods, lambda part: _mark_epochs(part, epochs, lifetime))
    present = map_rows(rows, lambda part: _select_marks(part, nw.lit(0), nw.lit(1), nw.lit(0)))
    within = present.filter(nw.col("epoch").is_between(since, until))
    marks = aggregate(nw.concat([requested, within], how="vertical"), _KEYS, _MARKS)
    return return_lazy(
        sort_rows(map_rows(marks, lambda part: _add_state(part, finalized)), _KEYS), frame
    )


def _mark_epochs(active_periods: Lazy, epochs: pl.DataFrame, lifetime: Lifetime) -> Lazy:
    """Return a row per validator and epoch with whether the validator was active."""
    grid = active_periods.join(move_to_engine(epochs, active_periods), how="cross")
    is_activated = nw.col("activation_epoch") <= nw.col("epoch")
    has_exited = end_epoch(lifetime, nw) <= nw.col("epoch")
    is_active = nw.when(
        is_activated.fill_null(value=False) & ~has_exited.fill_null(value=False)
    ).then(1)
    return _select_marks(grid, nw.lit(1), nw.lit(0), is_active.otherwise(0))


def _select_marks(rows: Lazy, *marks: nw.Expr) -> Lazy:
    named = (mark.cast(nw.Int64).alias(name) for name, mark in zip(_MARKS, marks, strict=True))
    return rows.select(*(nw.col(name).cast(nw.Int64) for name in _KEYS), *named)


def _add_state(marks: Lazy, finalized: int | None) -> Lazy:
    missing = nw.lit("missing")
    if finalized is not None:
        missing = nw.when(nw.col("epoch") > finalized).then(nw.lit("not final")).otherwise(missing)
    absent = nw.when(nw.col("active") == 0).then(nw.lit("inactive")).otherwise(missing)
    state = nw.when(nw.col("present") > 0).then(nw.lit("present")).otherwise(absent)
    return marks.filter(nw.col("requested") > 0).select(*_KEYS, state.alias("state"))
