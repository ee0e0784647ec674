"""Incidents: problems of many validators that begin at the same time, in one row."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.engines import check_distinct, open_frame, return_table
from beaconframes.analysis.state_problems import ADVICE, PROBLEM_KEYS
from beaconframes.errors import UsageError
from beaconframes.frames import collect
from beaconframes.intervals import format_numbers
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

_LATEST_BEGIN = 2
"""Epochs after the first problem of an incident in which others of it may begin."""
_WITHOUT_BEGINNING = ["missed votes", "late votes", "exiting", "low balance", *ADVICE]
"""Kinds with one row for all epochs of a validator, and kinds that are states."""
_NUMBERS = ["validator_index", "validators", "first_epoch", "last_epoch", "count", "cost_gwei"]
_COLUMNS = [*_NUMBERS, "kind", "since", "until", "count_unit", "cost_basis", "avoidable"]
_GROUPS = {"validator_index": pl.Int64, "group": pl.String}


@show_elapsed
def incidents(problems: IntoFrameT, *, groups: IntoFrame | None = None) -> IntoFrameT:
    """Combine problems that begin at the same time. One row per incident, most costly first.

    Problems of one kind that begin within 2 epochs of each other are one incident, however long
    each lasts, so a validator that returns later than the others is in it. No incident grows
    through validators that overlap by chance. Where several incidents are possible, the 3 epochs
    in which most problems begin are one, then those with most of the others. Avoidable
    problems are never in one incident with others.

    Late votes, single missed votes, exits, low balances and advice have no common beginning: they
    are one row per kind. Each problem is in exactly one incident, so the costs add up to the same.

    Parameters
    ----------
    problems
        Frame of `problems`.
    groups
        Frame with the columns ``validator_index`` and ``group``, such as the machine of each
        validator.

    Returns
    -------
    The same kind of frame as *problems*
        ``kind``, the number of ``validators``, ``since`` to ``until``, ``cost_gwei`` and
        ``avoidable``. ``count`` is in ``count_unit``: votes, duties, slots, penalties or
        validators. ``group`` is the group of all its validators; null if they are of several, or if
        one is of none. ``validator_indices`` is a text such as ``"7, 11, 130-168"``, which loaders
        and ``--validators`` take; it is null where `problems` names no validator. Then
        ``first_epoch`` to ``last_epoch``, and the number of ``problems``. ``cost_unknown`` of them
        have no cost: ``cost_gwei`` is then the least, null if no cost is known. Advice never has
        one. ``cost_basis`` is what the cost is estimated from. This computes eagerly.
    """
    source = open_frame(problems, _COLUMNS, loader="analysis.problems")
    check_distinct(problems, PROBLEM_KEYS, loader="analysis.problems")
    # In pandas, one missing number may make a column of integers a float.
    rows = collect(source).with_columns(pl.col(_NUMBERS).cast(pl.Int64))
    rows = rows.join(_read_groups(groups), on="validator_index", how="left")
    parts = rows.partition_by("kind", "avoidable") or [rows]
    found = _add_up(pl.concat(map(_add_start, parts)))
    order = ["cost_gwei", "kind", "start", "avoidable"]
    found = found.sort(order, descending=[True, False, False, False], nulls_last=True)
    return return_table(found.drop("start"), source, problems)


def _read_groups(groups: IntoFrame | None) -> pl.DataFrame:
    """Return the group of each validator; no rows without *groups*."""
    if groups is None:
        return pl.DataFrame(schema=_GROUPS)
    rows = collect(open_frame(groups, list(_GROUPS), loader="validators")).drop_nulls().unique()
    if rows.height and not rows["validator_index"].dtype.is_integer():
        raise UsageError(
            f"validator_index of groups holds {rows['validator_index'].dtype}, not integers",
            hint="Convert the column to integers.",
        )
    rows = rows.select(pl.col(name).cast(kind) for name, kind in _GROUPS.items())
    twice = rows.filter(pl.col("validator_index").is_duplicated())
    if twice.height:
        raise UsageError(
            f"validator {twice['validator_index'][0]} is in several groups",
            hint="Each validator belongs to one group at most.",
        )
    return rows


def _add_start(part: pl.DataFrame) -> pl.DataFrame:
    """Add the first epoch in which problems of the incident may begin, to rows of one kind."""
    starts: dict[int, int] = {}
    if part.height and part["kind"][0] not in _WITHOUT_BEGINNING:
        starts = _find_starts(dict(part["first_epoch"].drop_nulls().value_counts().iter_rows()))
    begin = pl.col("first_epoch")
    return part.with_columns(
        start=begin.replace_strict(starts, default=None, return_dtype=pl.Int64)
    )


def _find_starts(counts: Mapping[int, int]) -> dict[int, int]:
    """Return the first epoch of the incident of each epoch, from the number that begin in each."""
    left = dict(counts)

    def count_window(first: int) -> int:
        return sum(left.get(epoch, 0) for epoch in range(first, first + _LATEST_BEGIN + 1))

    largest = [(-count_window(epoch), epoch) for epoch in left]
    heapify(largest)
    starts: dict[int, int] = {}
    while largest:
        number, first = heappop(largest)
        if first not in left:
            continue
        if count_window(first) < -number:
            # Another incident has some of its epochs.
            heappush(largest, (-count_window(first), first))
            continue
        for epoch in range(first, first + _LATEST_BEGIN + 1):
            if left.pop(epoch, 0):
                starts[epoch] = first
    return starts


def _add_up(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the totals of each incident."""
    index, cost, count = (pl.col(name) for name in ("validator_index", "cost_gwei", "count"))
    several = pl.col("validators").filter(index.is_null())
    found = rows.group_by("kind", "avoidable", "start").agg(
        validators=index.drop_nulls().n_unique().cast(pl.Int64) + several.sum(),
        since=pl.min("since"),
        until=pl.max("until"),
        cost_gwei=_sum_any_known(cost),
        count=_sum_any_known(count),
        count_unit=pl.col("count_unit").drop_nulls().first(),
        group=pl.when(pl.col("group").n_unique() == 1).then(pl.col("group").first()),
        indices=index.drop_nulls().unique().sort(),
        first_epoch=pl.min("first_epoch"),
        last_epoch=pl.max("last_epoch"),
        problems=pl.len().cast(pl.Int64),
        cost_unknown=(cost.is_null() & ~pl.col("kind").is_in(ADVICE)).sum().cast(pl.Int64),
        cost_basis=pl.col("cost_basis").drop_nulls().unique().sort().str.join(", or "),
    )
    texts = [format_numbers(indices) or None for indices in found["indices"]]
    return found.select(
        *("kind", "validators", "since", "until", "cost_gwei", "avoidable", "count", "count_unit"),
        "group",
        pl.Series("validator_indices", texts, pl.String),
        *("first_epoch", "last_epoch", "problems", "cost_unknown", "cost_basis", "start"),
    )


def _sum_any_known(amount: pl.Expr) -> pl.Expr:
    """Return the sum of the known amounts; null if there is none."""
    return pl.when(amount.is_not_null().any()).then(amount.sum())
