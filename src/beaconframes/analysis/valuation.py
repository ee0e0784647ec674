"""The value of a ledger at receipt: daily prices, and files of tax tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import sum_known
from beaconframes.analysis.engines import add_date, check_distinct, open_frame, return_table
from beaconframes.calendar import MICROSECOND, get_length
from beaconframes.errors import UsageError
from beaconframes.frames import (
    check_choice,
    collect,
    drop_missing,
    list_column_names,
    select_columns,
)
from beaconframes.progress import show_elapsed
from beaconframes.time_range import find_time_zone

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

TaxTool = Literal["koinly", "rotki"]

KEYS = ["date", "validator_index"]
"""The columns that identify a row of a ledger."""
VALUES = {
    "income_value": ("net_income_wei", 10**18),
    "withdrawals_value": ("withdrawals_gwei", 10**9),
}
"""The value columns of a ledger, each with its amount and the units of 1 ETH."""
PRICE_TIME = "price_time"
_PLACES = 8
PRICE = pl.Decimal(38, _PLACES)
_STEP = pl.lit("0.00000001").cast(PRICE)
_WHOLE = pl.Decimal(38, 0)
_LARGEST = 10**38


def find_daily_prices(prices: IntoFrame, price: str, days: str | Chain) -> pl.DataFrame:
    """Return the last price of each day of a time zone or of a chain, with its time.

    The ``date`` of a day of a chain is that on which it begins (UTC), as in `daily_income`.
    """
    columns = ["time", price]
    try:
        rows = drop_missing(select_columns(prices, columns, loader="analysis.ledger"), columns)
    except UsageError as error:
        names = list_column_names(prices)
        hint = (
            "Prices have a column time, in UTC, and one with the price of 1 ETH, named by "
            f"price=. Their columns: {', '.join(names) or 'none'}."
        )
        has_columns = set(columns) <= set(names)
        raise UsageError(
            f"prices: {error.message}", hint=error.hint if has_columns else hint
        ) from None
    if not rows.collect_schema()[price].is_numeric():
        raise UsageError(
            f"the column {price} of prices is not numeric",
            hint="Pass the price of 1 ETH as a number.",
        )
    table = collect(rows).with_columns(pl.col(price).cast(PRICE)).unique().sort("time")
    _check_prices(table, price)
    if isinstance(days, str):
        dated = collect(add_date(nw.from_native(table.lazy()), "day", days))
    else:
        dated = table.with_columns(date=_find_date(days))
    last = pl.col(price).last(), pl.col("time").last().alias(PRICE_TIME)
    return dated.group_by("date", maintain_order=True).agg(*last)


def _find_date(chain: Chain) -> pl.Expr:
    """Return the date (UTC) on which the day of the chain begins that contains a ``time``."""
    genesis = chain.time_expr("day", pl.lit(0)).dt.epoch("us")
    length = get_length(chain, "day") // MICROSECOND
    day = (pl.col("time").dt.epoch("us") - genesis) // length
    return chain.time_expr("day", day).dt.date()


def _check_prices(table: pl.DataFrame, price: str) -> None:
    """Raise for a negative price, and for several different prices at one time."""
    problems = {
        "a negative price": pl.col(price) < 0,
        "several prices": pl.col("time").is_duplicated(),
    }
    for problem, is_wrong in problems.items():
        wrong = table.filter(is_wrong)
        if wrong.height:
            time = wrong["time"][0]
            found = wrong.filter(pl.col("time") == time)[price].sort()
            raise UsageError(
                f"prices has {problem} at {time:%Y-%m-%d %H:%M:%S} UTC: "
                f"{', '.join(f'{number.normalize():f}' for number in found)}",
                hint=f"Pass one number of 0 or more in {price} for each time.",
            )


def add_values(rows: pl.DataFrame, daily: pl.DataFrame, price: str) -> pl.DataFrame:
    """Add the price of each day, its time, and the value of the amounts, rounded to 8 decimals."""
    joined = rows.join(daily, on="date", how="left", maintain_order="left")
    _check_size(joined, price)
    values = (
        _multiply(pl.col(amount), pl.col(price), unit).alias(name)
        for name, (amount, unit) in VALUES.items()
    )
    return joined.with_columns(values)


def _check_size(rows: pl.DataFrame, price: str) -> None:
    """Raise for amounts whose value does not fit into 128 bits, which would be a wrong number."""
    highest = rows.select(pl.col(price).abs().max()).item()
    for amount, _ in VALUES.values():
        largest = rows.select(pl.col(amount).cast(_WHOLE).abs().max()).item()
        if highest and largest and int(largest) * int(highest * 10**_PLACES) >= _LARGEST:
            raise UsageError(
                f"{largest} in {amount} at a price of {highest} has too many digits",
                hint="Pass prices of 1 ETH in a common currency.",
            )


def _multiply(amount: pl.Expr, price: pl.Expr, unit: int) -> pl.Expr:
    """Return the value of an amount, exact, then rounded half up at eight decimals."""
    steps = (price * pl.lit(10**_PLACES)).cast(pl.Int128)
    product = amount.cast(_WHOLE).cast(pl.Int128) * steps
    half = pl.lit(unit // 2, pl.Int128)
    rounded = (product.abs() + half) // pl.lit(unit, pl.Int128) * product.sign()
    return (rounded.cast(_WHOLE) * _STEP).cast(PRICE)


@show_elapsed
def tax_rows(
    ledger: IntoFrameT, tool: TaxTool, *, price: str | None = None, tz: str = "UTC"
) -> IntoFrameT:
    """Convert the income of a ledger into the rows that a tax tool imports. One row per day.

    ``tax_rows(book, "koinly", price="eur").write_csv("koinly.csv")`` writes the file. Withdrawals
    are not in it: they move what was income before.

    Parameters
    ----------
    ledger
        Frame of `ledger`.
    tool
        ``"koinly"``, for the custom file of Koinly: positive days are rewards, negative ones
        costs. ``"rotki"``, for the generic events of rotki: staking rewards and losses.
    price
        The price column of the ledger, named like the currency, such as ``"eur"``: the value at
        receipt is then the net worth in Koinly. rotki uses its own prices.
    tz
        Time zone of the ledger. The time of a row is noon of its day there, stated in UTC.

    Returns
    -------
    The same kind of frame
        The columns are the header of the file; amounts are ETH with all digits. Days without income
        are left out, and days on which that of a validator is unknown. This computes eagerly.
    """
    check_choice("tool", tool, get_args(TaxTool))
    find_time_zone(tz)
    has_values = price is not None and tool == "koinly"
    columns = ["date", "net_income_wei"]
    needed = [*columns, "income_value", price] if price is not None and has_values else columns
    source = open_frame(ledger, needed, loader="analysis.ledger")
    check_distinct(ledger, KEYS, loader="analysis.ledger")
    rows = collect(drop_missing(source, ["date"]))
    value = (
        pl.col("income_value").cast(PRICE).sum()
        if has_values
        else pl.lit(None, PRICE).alias("income_value")
    )
    is_unknown = pl.col("income_value").is_null().any() if has_values else pl.lit(value=False)
    income = sum_known(pl.col("net_income_wei").cast(_WHOLE).cast(pl.Int128))
    days = (
        rows.group_by("date")
        .agg(income.alias("net_income_wei"), value, unknown=is_unknown)
        .filter(pl.col("net_income_wei") != 0)
        .sort("date")
    )
    noon = pl.col("date").cast(pl.Datetime("us")) + pl.duration(hours=12)
    time = noon.dt.replace_time_zone(tz).dt.convert_time_zone("UTC")
    build = {"koinly": _build_koinly, "rotki": _build_rotki}[tool]
    return return_table(build(days.with_columns(time=time), price), source, ledger)


def _show_eth(amount: pl.Expr) -> pl.Expr:
    """Return wei as the text of an amount in ETH, with all of its digits."""
    step = pl.lit("0.000000000000000001").cast(pl.Decimal(38, 18))
    return (amount.cast(_WHOLE) * step).cast(pl.Decimal(38, 18)).cast(pl.String)


def _build_koinly(days: pl.DataFrame, price: str | None) -> pl.DataFrame:
    amount = pl.col("net_income_wei")
    value = pl.when(~pl.col("unknown")).then(pl.col("income_value").cast(PRICE).abs())
    currency = pl.lit(price.upper() if price else None, pl.String)
    columns: dict[str, Any] = {
        "Koinly Date": pl.col("time").dt.strftime("%Y-%m-%d %H:%M UTC"),
        "Amount": _show_eth(amount),
        "Currency": pl.lit("ETH"),
        "Label": pl.when(amount > 0).then(pl.lit("Reward")).otherwise(pl.lit("Cost")),
        "Net Worth Amount": value.cast(pl.String),
        "Net Worth Currency": pl.when(value.is_not_null()).then(currency),
        "Description": pl.lit("Staking income of validators"),
        "TxHash": pl.lit(None, pl.String),
    }
    return days.select(**columns)


def _build_rotki(days: pl.DataFrame, _price: str | None) -> pl.DataFrame:
    amount = pl.col("net_income_wei")
    columns: dict[str, Any] = {
        "Type": pl.when(amount > 0).then(pl.lit("Staking")).otherwise(pl.lit("Loss")),
        "Location": pl.lit("external"),
        "Currency": pl.lit("ETH"),
        "Amount": _show_eth(amount.abs()),
        "Fee": pl.lit(None, pl.String),
        "Fee Currency": pl.lit(None, pl.String),
        "Description": pl.lit("Staking income of validators"),
        "Timestamp": pl.col("time").dt.epoch("ms"),
    }
    return days.select(**columns)
