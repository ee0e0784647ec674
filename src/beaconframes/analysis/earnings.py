"""Income of validators or of groups of them, by calendar or by the days of the chain."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

import narwhals.stable.v2 as nw

from beaconframes.analysis.adding import added
from beaconframes.analysis.engines import (
    dated,
    finished,
    in_order,
    listed,
    opened,
)
from beaconframes.analysis.income import AMOUNTS, PARTS, PENALTIES, REWARDS, known_in_parts
from beaconframes.calendar import MAINNET, get_chain
from beaconframes.errors import UsageError
from beaconframes.frames import choose, each_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

Every = Literal["day", "week", "month", "year", "all"]
Day = Literal["utc", "beacon"]

GWEI_PER_WEI = 10**9


def income(
    frame: IntoFrameT,
    *,
    every: Every = "day",
    by: str | Sequence[str] = (),
    tz: str = "UTC",
    day: Day = "utc",
    chain: Chain | str = MAINNET,
) -> IntoFrameT:
    """Add up an income history, exactly. One row per day, week, month or year, and group.

    Parameters
    ----------
    frame
        What `load_income_history` gives, in polars, pandas, DuckDB, Dask or PySpark. What is lazy
        stays lazy, and the engine's own frame comes back.
    every
        ``"day"``, ``"week"`` (from Monday), ``"month"``, ``"year"``, or ``"all"``: one row for
        everything.
    by
        Columns that tell groups apart, such as ``"validator_index"`` or a label of your own that
        you joined to *frame*. Left out: all validators together.
    tz
        The time zone of the calendar, such as ``"Europe/Berlin"``: an epoch counts for the day in
        which it begins there, be that day of 23, 24 or 25 hours.
    day
        ``"beacon"`` counts days (and weeks of seven of them) from the genesis of the chain instead,
        as the yield index does: they begin at its hour, not at midnight.
    chain
        Whose epochs they are; it says how many make a beacon day.

    Returns
    -------
    The same kind of frame
        ``date`` is the first day of the calendar unit (beacon: ``day`` or ``week``, a number), then
        the columns of *by*. ``validator_epochs`` counts the rows that were added up, from
        ``first_epoch`` to ``last_epoch``. Rewards and penalties by kind are positive amounts;
        ``consensus_income_gwei`` is rewards less penalties, ``execution_income_wei`` the fees of
        proposed blocks, ``net_income_wei`` both. ``proposals_missed`` is a count and never added to
        an amount. Rows without a time or with an amount missing are left out: unknown is not zero.
        What does not fit is an error, never a wrong number; so is a negative amount in polars and
        Dask, which would run over in silence (a lazy frame says so when it is computed).
        Sorted by the unit and the groups, but for Dask, whose partitions have no order.
    """
    choose("every", every, get_args(Every))
    choose("day", day, get_args(Day))
    groups = listed(by)
    columns = ["epoch", "time", "proposals_missed", *AMOUNTS]
    if taken := {"date", "day", "week", *columns, *PARTS} & set(groups):
        raise UsageError(
            f"by={min(taken)!r} is a column of the result itself",
            hint="Give that column of the frame another name first.",
        )
    lazy = opened(frame, [*columns, *groups], loader="load_income_history")
    clock = get_chain(chain)
    unit = [] if every == "all" else ["date" if day == "utc" else every]
    keys = [*unit, *groups]
    sums = added(
        lazy,
        keys,
        [*PARTS, "proposals_missed", "tx_fee_reward_wei"],
        lambda part: _in_units(known_in_parts(part), every, tz, day, clock),
        validator_epochs=("count", "epoch"),
        first_epoch=("min", "epoch"),
        last_epoch=("max", "epoch"),
    )
    result = each_row(sums, lambda part: with_totals(part, keys))
    return finished(in_order(result, keys), frame)


def _in_units(rows: Lazy, every: Every, tz: str, day: Day, chain: Chain) -> Lazy:
    """Add the calendar unit of each row."""
    if every == "all":
        return rows
    if day == "utc":
        return dated(rows, every, tz)
    length = {"day": chain.epochs_per_day, "week": chain.epochs_per_week}.get(every)
    if length is None or tz != "UTC":
        raise UsageError(
            f"beacon days make no {every}" if length is None else f"beacon days know no tz={tz!r}",
            hint='Use every="day" or "week", or day="utc".',
        )
    return rows.with_columns((nw.col("epoch") // length).alias(every))


def with_totals(rows: Lazy, keys: Sequence[str]) -> Lazy:
    """Add income of the two layers up, and put the columns in order."""
    return (
        rows.with_columns(total_gwei().alias("consensus_income_gwei"))
        .with_columns(
            nw.col("validator_epochs", "first_epoch", "last_epoch").cast(nw.Int64),
            net_wei("consensus_income_gwei", "tx_fee_reward_wei").alias("net_income_wei"),
        )
        .select(
            *keys,
            "validator_epochs",
            "first_epoch",
            "last_epoch",
            *PARTS,
            "consensus_income_gwei",
            nw.col("tx_fee_reward_wei").alias("execution_income_wei"),
            "net_income_wei",
            "proposals_missed",
        )
    )


def total_gwei() -> nw.Expr:
    """Give rewards less penalties."""
    total: nw.Expr = nw.sum_horizontal(*REWARDS) - nw.sum_horizontal(*PENALTIES)
    return total


def net_wei(gwei: str, wei: str) -> nw.Expr:
    """Give gwei and wei together, in wei."""
    in_wei: Any = nw.col(gwei).cast(nw.Decimal(19, 0)) * nw.lit(Decimal(GWEI_PER_WEI))
    both: nw.Expr = (in_wei + nw.col(wei)).cast(nw.Decimal(28, 0))
    return both
