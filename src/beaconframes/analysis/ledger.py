"""The ledger: income and withdrawals by day, for tax returns and accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw

from beaconframes.analysis.aggregation import aggregate, get_amount_type
from beaconframes.analysis.engines import (
    add_date,
    check_distinct,
    check_indices,
    collect_sums,
    open_frame_like,
    return_lazy,
    return_table,
    sort_rows,
    use_epoch_starts,
)
from beaconframes.analysis.execution_income import BASIS, FEES, build_basis, open_income
from beaconframes.analysis.income_columns import AMOUNTS, PARTS, add_layers, group_parts, sum_gwei
from beaconframes.analysis.valuation import KEYS, PRICE_TIME, VALUES, add_values, find_daily_prices
from beaconframes.errors import UsageError
from beaconframes.frames import drop_missing, list_column_names, map_rows, read_starts
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy

_SUMS = [*PARTS, FEES, "withdrawals_gwei"]
_TOTALS = [
    *("time", "consensus_income_gwei", "execution_income_wei", "net_income_wei", BASIS),
    *(PRICE_TIME, *VALUES),
]


@show_elapsed
def ledger(
    income: IntoFrameT,
    withdrawals: IntoFrame | None = None,
    prices: IntoFrame | None = None,
    *,
    blocks: IntoFrame | None = None,
    tz: str = "UTC",
    price: str = "price",
) -> IntoFrameT:
    """List income and withdrawals. One row per day and validator.

    Parameters
    ----------
    income
        Frame of `load_income_history`. Its engine computes, and the result is of its kind.
    withdrawals
        Frame of `load_validator_withdrawals`, of the validators and days of *income*. A withdrawal
        counts for the day in which its epoch begins, as income does; without a column ``epoch``,
        for the day of its time. A day with only a withdrawal, such as one after the exit, has a row
        with income 0: the ledger cannot distinguish it from a day whose income was not loaded.
    prices
        Prices of 1 ETH: a column ``time`` and one named *price*, numbers with up to eight decimals.
        The last price of each day counts. A day without a price has null, because an older price
        would be a guess. With prices, this computes eagerly.
    blocks
        Blocks of the validators, as in `analysis.income`: execution income is then what the
        proposers received. Without it: priority fees, relay payments not included.
    tz
        Time zone of the days, such as ``"Europe/Berlin"``; clock changes are included.
    price
        Name of the price column in *prices*, such as ``"eur"``, and in the result.

    Returns
    -------
    The same kind of frame
        ``date``, ``validator_index``; rewards and penalties by kind (positive amounts),
        ``consensus_income_gwei``, ``execution_income_wei``, ``net_income_wei``,
        ``withdrawals_gwei``, all exact: each column adds up to that of the raw rows.
        ``execution_income_basis`` states what execution income is. It is null, and net income
        too, on a day with priority fees missing. With prices also the price, its
        ``price_time``, and ``income_value`` and ``withdrawals_value`` in its currency: exact
        products in Decimal, rounded to eight decimals. Income rows with another amount missing are
        left out. Sorted, except for Dask.
    """
    columns = ["validator_index", "epoch", "time", *AMOUNTS]
    rows = map_rows(open_income(income, columns, blocks), group_parts)
    tables = [_select_sums(add_date(rows, "day", tz), [*PARTS, FEES])]
    if withdrawals is not None:
        columns = ["validator_index", "time", "amount_gwei"]
        has_epoch = "epoch" in list_column_names(withdrawals)
        withdrawal_rows = open_frame_like(
            withdrawals,
            [*columns, *(["epoch"] if has_epoch else [])],
            loader="load_validator_withdrawals",
            like=rows,
        )
        if has_epoch:
            withdrawal_rows = use_epoch_starts(withdrawal_rows, read_starts(income, "epoch"))
        check_indices(withdrawal_rows)
        check_distinct(withdrawals, ["withdrawal_index"], loader="load_validator_withdrawals")
        withdrawal_rows = add_date(drop_missing(withdrawal_rows, columns), "day", tz).rename(
            {"amount_gwei": "withdrawals_gwei"}
        )
        tables.append(_select_sums(withdrawal_rows, ["withdrawals_gwei"]))
    basis = build_basis(blocks, FEES)
    sums = aggregate(nw.concat(tables, how="vertical"), KEYS, _SUMS)
    result = map_rows(sums, lambda part: _add_totals(part, basis))
    if prices is None:
        if price != "price":
            raise UsageError(
                f"price={price!r} is a column of prices, and there are no prices",
                hint=f"Pass prices=, a frame with the columns time and {price}.",
            )
        return return_lazy(sort_rows(result, KEYS), income)
    if price in {*KEYS, *_SUMS, *_TOTALS}:
        raise UsageError(
            f"price={price!r} is a column of the ledger itself",
            hint='Rename the column of prices, for example to "eur".',
        )
    daily = find_daily_prices(prices, price, tz)
    table = collect_sums(result).sort(KEYS)
    return return_table(add_values(table, daily, price), rows, income)


def _select_sums(rows: Lazy, amounts: list[str]) -> Lazy:
    """Select the columns that both tables have, with 0 for the amounts of the other."""
    columns = [
        (nw.col(name) if name in amounts else nw.lit(0)).cast(get_amount_type(name)).alias(name)
        for name in _SUMS
    ]
    keys = nw.col("date"), nw.col("validator_index").cast(nw.Int64)
    return map_rows(rows, lambda part: part.select(*keys, *columns))


def _add_totals(sums: Lazy, basis: nw.Expr) -> Lazy:
    return sums.with_columns(sum_gwei().alias("consensus_income_gwei")).select(
        *KEYS,
        *PARTS,
        "consensus_income_gwei",
        nw.col(FEES).alias("execution_income_wei"),
        add_layers("consensus_income_gwei", FEES).alias("net_income_wei"),
        "withdrawals_gwei",
        basis,
    )
