"""Income of validators or of groups of them: by epoch, by calendar or by beacon day."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Literal, get_args
from zoneinfo import ZoneInfo

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate
from beaconframes.analysis.engines import (
    add_date,
    collect_sums,
    list_columns,
    resolve_chain,
    return_lazy,
    return_table,
    sort_rows,
)
from beaconframes.analysis.execution_income import BASIS, FEES, build_basis, open_income
from beaconframes.analysis.income_columns import (
    AMOUNTS,
    PARTS,
    add_layers,
    group_parts,
    sum_gwei,
)
from beaconframes.calendar import find_length
from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, map_rows, read_starts
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.aggregation import Aggregate
    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

Every = Literal["epoch", "day", "week", "month", "year", "all"]
Day = Literal["utc", "beacon"]

_COLUMNS = ["epoch", "time", "proposals_missed", *AMOUNTS]
_TOTALS = ["consensus_income_gwei", "execution_income_wei", "net_income_wei"]
_UNIT_COLUMNS = ["date", "day", "week", "first_epoch", "last_epoch", "epochs", "complete"]
RESULT = {"validator_epochs", *_UNIT_COLUMNS, *_COLUMNS, *PARTS, *_TOTALS, BASIS}
"""Columns of the result that a group column cannot be named like."""
_NEXT = {"day": "1d", "week": "1w", "month": "1mo", "year": "1y"}


@show_elapsed
def income(
    frame: IntoFrameT,
    *,
    blocks: IntoFrame | None = None,
    every: Every = "day",
    by: str | Sequence[str] = (),
    tz: str = "UTC",
    day: Day = "utc",
    coverage: bool = False,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Add up an income history, exactly. One row per epoch, day, week, month or year, and group.

    Parameters
    ----------
    frame
        Frame of `load_income_history`, in polars, pandas, DuckDB, Dask or PySpark. The result is
        a frame of the same engine; a lazy frame stays lazy.
    blocks
        Blocks of the validators: the frame of `load_produced_blocks` or `v2.load_block_rewards`, or
        proposals joined with one of them. With it, execution income is what the proposers received:
        the payment of the relay's builder or, without a relay, the priority fees. Without it,
        execution income is the priority fees alone; relay payments are not included. A proposal
        that is not in *blocks* is an error. Lazy frames compute the rows of proposers eagerly.
    every
        ``"epoch"``, ``"day"``, ``"week"`` (from Monday), ``"month"``, ``"year"``, or ``"all"`` for
        one row over the whole range.
    by
        Group columns, such as ``"validator_index"`` or a label of your own that you joined to
        *frame*. Default: all validators together.
    tz
        Time zone of the calendar, such as ``"Europe/Berlin"``. An epoch counts for the day in
        which it begins there; that day may have 23, 24 or 25 hours.
    day
        ``"beacon"`` counts days, and weeks of seven days, from the genesis of the chain, as the
        yield index does. Such a day begins at the hour of genesis, not at midnight.
    coverage
        Add ``epochs``, the number of different epochs in the row, and ``complete``, whether these
        are all epochs of a whole unit (for ``"all"``: all epochs of the range). A unit in which the
        chain began, or which has not ended, is not complete. This computes eagerly, also for lazy
        frames.
    chain
        Chain of the epochs; it sets the number of epochs in a beacon day. Default: that of *frame*,
        from ``time``. For beacon days, this reads up to two rows eagerly.

    Returns
    -------
    The same kind of frame
        ``date``, the first day of the calendar unit (beacon: ``day`` or ``week``, a number; epochs:
        ``epoch`` and its ``time``), then the columns of *by*. ``validator_epochs`` is the number of
        rows added up, from ``first_epoch`` to ``last_epoch``. Rewards and penalties by kind are
        positive amounts; ``consensus_income_gwei`` is rewards minus penalties,
        ``execution_income_wei`` what the proposers received for their blocks (without *blocks*:
        priority fees, relay payments not included), and ``net_income_wei`` the sum of both.
        ``execution_income_basis`` states which of them it is. If the priority fees of one row are
        null, as in an index without an execution node, execution and net income are null too.
        ``proposals_missed`` is a count and never part of an amount. Rows without a time or with
        another amount missing are left out: unknown is not zero. Sorted by unit and group, except
        for Dask, whose partitions have no order.

    Raises
    ------
    UsageError
        For sums that do not fit their type, and for negative amounts in polars and Dask, where an
        overflow would be silent. A lazy frame raises when it is computed. Also for missing or
        fractional validator indices in a float column, which pandas makes of a missing one, and for
        rows that a frame in memory has twice, such as those of loads that overlap.
    """
    check_choice("every", every, get_args(Every))
    check_choice("day", day, get_args(Day))
    groups = list_columns(by, RESULT)
    lazy = open_income(frame, [*_COLUMNS, *groups], blocks, groups)
    # Only beacon days depend on the chain.
    clock = resolve_chain(chain, (frame if day == "beacon" else None, "epoch"))
    unit = {"all": [], "epoch": ["epoch"]}.get(every, ["date" if day == "utc" else every])
    keys = [*unit, *groups]
    others: dict[str, tuple[Aggregate, str]] = {
        "validator_epochs": ("count", "epoch"),
        "first_epoch": ("min", "epoch"),
        "last_epoch": ("max", "epoch"),
    }
    if every == "epoch":
        others["time"] = ("min", "time")
    if coverage and every != "epoch":
        others["epochs"] = ("distinct", "epoch")
    sums = aggregate(
        lazy,
        keys,
        [*PARTS, "proposals_missed", FEES],
        lambda part: _add_unit(group_parts(part, checks_rows=False), every, tz, day, clock),
        **others,
    )
    basis = build_basis(blocks, FEES)
    result = map_rows(sums, lambda part: _add_totals(part, unit, groups, others, basis))
    if not coverage:
        return return_lazy(sort_rows(result, keys), frame)
    table = collect_sums(result)
    table = table.sort(keys) if keys else table
    place = table.get_column_index("validator_epochs") + 1
    if every == "epoch":
        table.insert_column(place, pl.Series("epochs", [1] * table.height, pl.Int64))
    starts = read_starts(frame, "epoch")
    complete = _find_complete(table, every, tz, clock if day == "beacon" else None, starts)
    table.insert_column(place + 1, pl.Series("complete", complete, pl.Boolean))
    return return_table(table, lazy, frame)


def _add_unit(rows: Lazy, every: Every, tz: str, day: Day, chain: Chain) -> Lazy:
    """Add the calendar unit, or the beacon day or week, of each row."""
    if every == "all":
        return rows
    if day == "utc":
        return rows if every == "epoch" else add_date(rows, every, tz)
    length = {"day": chain.epochs_per_day, "week": chain.epochs_per_week}.get(every)
    if length is None or tz != "UTC":
        raise UsageError(
            f"every={every!r} does not exist for beacon days"
            if length is None
            else f"beacon days have no time zone: tz={tz!r}",
            hint='Use every="day" or "week" without tz, or day="utc".',
        )
    return rows.with_columns((nw.col("epoch") // length).alias(every))


def _add_totals(
    rows: Lazy,
    unit: list[str],
    groups: list[str],
    others: dict[str, tuple[Aggregate, str]],
    basis: nw.Expr,
) -> Lazy:
    """Add the totals of both layers, and order the columns."""
    counts = ["validator_epochs", "first_epoch", "last_epoch"]
    if "epochs" in others:
        counts.insert(1, "epochs")
    totals = rows.with_columns(sum_gwei().alias("consensus_income_gwei")).with_columns(
        nw.col(*counts).cast(nw.Int64),
        nw.col(FEES).alias("execution_income_wei"),
        add_layers("consensus_income_gwei", FEES).alias("net_income_wei"),
        basis,
    )
    return totals.select(
        *unit,
        *(["time"] if "time" in others else []),
        *groups,
        *counts,
        *PARTS,
        *_TOTALS,
        "proposals_missed",
        BASIS,
    )


def _find_complete(
    rows: pl.DataFrame,
    every: Every,
    tz: str,
    chain: Chain | None,
    starts: Sequence[tuple[int, datetime]],
) -> list[bool]:
    """Return for each row whether it has every epoch of its unit: with *chain*, a beacon day.

    *starts* has the start of an epoch or two.
    """
    epoch_counts = rows["epochs"].to_list()
    if every == "epoch":
        return [True] * len(epoch_counts)
    if every == "all":
        spans = rows.select(pl.col("last_epoch") - pl.col("first_epoch") + 1).to_series()
        return [count == span for count, span in zip(epoch_counts, spans, strict=True)]
    if chain is not None:
        length = chain.epochs_per_day if every == "day" else chain.epochs_per_week
        return [count == length for count in epoch_counts]
    expected = _count_epochs(rows["date"].unique(), every, tz, starts)
    return [
        count == expected.get(start)
        for start, count in zip(rows["date"], epoch_counts, strict=True)
    ]


def _count_epochs(
    dates: pl.Series, every: Every, tz: str, starts: Sequence[tuple[int, datetime]]
) -> dict[date, int]:
    """Return how many epochs a whole calendar unit has; empty where that is unknown."""
    length = find_length("epoch", starts)
    if length is None:
        return {}
    epoch, start = starts[0]

    def count_before(midnight: date) -> int:
        """Return how many epochs begin before a day; negative before genesis."""
        # Python takes a midnight that the clocks skip as the moment of the change.
        moment = datetime.combine(midnight, time(), ZoneInfo(tz)).astimezone(UTC)
        return epoch - (start - moment) // length

    ends = dates.dt.offset_by(_NEXT[every])
    return {
        first: count_before(end) - count_before(first)
        for first, end in zip(dates, ends, strict=True)
    }
