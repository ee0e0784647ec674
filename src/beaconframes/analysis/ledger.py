"""The ledger: what came in on each day, for those who have to declare it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate, get_amount_type
from beaconframes.analysis.engines import (
    add_date,
    move_to_engine,
    open_frame,
    open_frame_like,
    return_lazy,
    sort_rows,
    stack_tables,
)
from beaconframes.analysis.income_columns import AMOUNTS, PARTS, add_layers, group_parts, sum_gwei
from beaconframes.errors import UsageError
from beaconframes.frames import collect, each_row, known, take

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy

_KEYS = ["date", "validator_index"]
_SUMS = [*PARTS, "tx_fee_reward_wei", "withdrawals_gwei"]
_TOTALS = ["time", "consensus_income_gwei", "execution_income_wei", "net_income_wei"]
_WEI_PER_ETH = 1e18


def ledger(
    income: IntoFrameT,
    withdrawals: IntoFrame | None = None,
    prices: IntoFrame | None = None,
    *,
    tz: str = "UTC",
    price: str = "price",
) -> IntoFrameT:
    """Write down what came in and went out. One row per day and validator.

    Parameters
    ----------
    income
        What `load_income_history` gives; it says which engine computes, and of what kind the
        result is.
    withdrawals
        What `load_validator_withdrawals` gives. A day with nothing but a withdrawal is a row too.
    prices
        Prices of 1 ETH: a column ``time`` and one called *price*. Of each day the last price of
        that day counts; a day without one has none, since an older price would be a guess.
    tz
        The time zone whose days these are, such as ``"Europe/Berlin"``, changes of clocks included.
    price
        The column of *prices*, such as ``"eur"``, and of the result.

    Returns
    -------
    The same kind of frame
        ``date``, ``validator_index``; rewards and penalties by kind (positive amounts),
        ``consensus_income_gwei``, ``execution_income_wei``, ``net_income_wei``,
        ``withdrawals_gwei``, exact: each column adds up to that of the raw rows. With prices also
        the price, ``income_value`` and ``withdrawals_value`` in its currency (Float64). Income rows
        with an amount missing are left out. Sorted, but for Dask.
    """
    columns = ["validator_index", "epoch", "time", *AMOUNTS]
    rows = each_row(open_frame(income, columns, loader="load_income_history"), group_parts)
    tables = [_select_sums(add_date(rows, "day", tz), [*PARTS, "tx_fee_reward_wei"])]
    if withdrawals is not None:
        columns = ["validator_index", "time", "amount_gwei"]
        paid = open_frame_like(withdrawals, columns, loader="load_validator_withdrawals", like=rows)
        paid = add_date(known(paid, columns), "day", tz).rename({"amount_gwei": "withdrawals_gwei"})
        tables.append(_select_sums(paid, ["withdrawals_gwei"]))
    result = each_row(aggregate(stack_tables(tables), _KEYS, _SUMS), _add_totals)
    if prices is not None:
        daily = move_to_engine(_find_daily_prices(prices, price, tz), result)
        result = result.join(daily, on="date", how="left")
        result = each_row(result, lambda part: _add_values(part, price))
    return return_lazy(sort_rows(result, _KEYS), income)


def _select_sums(rows: Lazy, amounts: list[str]) -> Lazy:
    """Give rows the columns that both tables have; the amounts of the other are 0."""
    every = [
        (nw.col(name) if name in amounts else nw.lit(0)).cast(get_amount_type(name)).alias(name)
        for name in _SUMS
    ]
    keys = nw.col("date"), nw.col("validator_index").cast(nw.Int64)
    return each_row(rows, lambda part: part.select(*keys, *every))


def _add_totals(sums: Lazy) -> Lazy:
    return sums.with_columns(sum_gwei().alias("consensus_income_gwei")).select(
        *_KEYS,
        *PARTS,
        "consensus_income_gwei",
        nw.col("tx_fee_reward_wei").alias("execution_income_wei"),
        add_layers("consensus_income_gwei", "tx_fee_reward_wei").alias("net_income_wei"),
        "withdrawals_gwei",
    )


def _find_daily_prices(prices: IntoFrame, price: str, tz: str) -> pl.DataFrame:
    """Give the last price of each day."""
    if price in {*_KEYS, *_SUMS, *_TOTALS}:
        raise UsageError(
            f"price={price!r} is a column of the ledger itself",
            hint='Give the column of prices another name, such as "eur".',
        )
    try:
        rows = known(take(prices, ["time", price], loader="ledger"), ["time", price])
    except UsageError as error:
        raise UsageError(
            f"prices: {error.message}",
            hint=f"Pass a frame with a column time, in UTC, and {price}, the price of 1 ETH.",
        ) from None
    if not rows.collect_schema()[price].is_numeric():
        raise UsageError(
            f"the column {price} of prices holds no numbers",
            hint="Give the price of 1 ETH as a number.",
        )
    table = collect(rows).with_columns(pl.col(price).cast(pl.Float64)).sort("time").lazy()
    days = collect(add_date(nw.from_native(table), "day", tz))
    return days.group_by("date", maintain_order=True).agg(pl.col(price).last())


def _add_values(rows: Lazy, price: str) -> Lazy:
    """Add what amounts were worth at the price of their day."""
    eth = {
        "income_value": nw.col("net_income_wei").cast(nw.Float64) / _WEI_PER_ETH,
        "withdrawals_value": nw.col("withdrawals_gwei").cast(nw.Float64) / 1e9,
    }
    values = ((amount * nw.col(price)).alias(name) for name, amount in eth.items())
    return rows.with_columns(*values)
