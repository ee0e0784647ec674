"""What engines do differently, so that analysis need not know which one computes.

Frames in memory (polars, pandas, pyarrow) are computed by polars, lazy ones where they are: by
polars, DuckDB, Dask or PySpark. Whatever the engine, sums of money are exact or an error.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, Literal, cast
from zoneinfo import ZoneInfo

import narwhals.stable.v2 as nw
import polars as pl
from narwhals.exceptions import InvalidOperationError

from beaconframes.errors import UsageError
from beaconframes.frames import as_lazy, collect, each_row, give_back, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    Lazy = nw.LazyFrame[Any]

Calendar = Literal["day", "week", "month", "year"]

_TRUNCATED = {"week": "1w", "month": "1mo", "year": "1y"}
# A column of this name stands in the message of the engine, where sums do not fit.
_ABOUT = "the amounts add up to more than a chain has"
_ALL = "all rows alike"
# No chain has that much: 4.6 billion ether. Sums of 64 bits that stay below did not run over.
_MOST_GWEI = 2.0**62


def opened(frame: IntoFrame, columns: Sequence[str], *, loader: str) -> Lazy:
    """Take *columns* out of a frame of any kind, lazily, once each, and see that money is exact."""
    lazy = take(frame, list(dict.fromkeys(columns)), loader=loader)
    kind = lazy.implementation
    if not (kind.is_polars() or kind.is_duckdb() or kind.is_dask() or kind.is_pyspark()):
        raise UsageError(
            f"lazy frames of {kind.value} are not computed here",
            hint="Pass a frame of polars, pandas, DuckDB, Dask or PySpark; collect this one first.",
        )
    for name, dtype in lazy.collect_schema().items():
        if not name.endswith(("_gwei", "_wei")) or dtype.is_integer():
            continue
        if isinstance(dtype, nw.Decimal) and dtype.scale == 0:
            continue
        if not _without_values(frame, name):
            raise UsageError(
                f"the column {name} holds {dtype}: amounts are whole numbers, no float or text",
                hint=f"Keep it as bf.{loader}(...) gives it; bf.to_pandas(...) keeps every digit.",
            )
        lazy = lazy.with_columns(nw.col(name).cast(amount_type(name)))
    return lazy


def amount_type(name: str) -> Any:
    """Say what the amounts of a column are kept in: the end of its name is their unit."""
    return nw.Decimal(28, 0) if name.endswith("_wei") else nw.Int64()


def _without_values(frame: IntoFrame, name: str) -> bool:
    """Tell whether nothing is in a column: then its type in pandas says nothing either."""
    known: Any = nw.from_native(cast("Any", frame))
    return isinstance(known, nw.DataFrame) and bool(known[name].is_null().all())


def beside(frame: IntoFrame, columns: Sequence[str], *, loader: str, like: Lazy) -> Lazy:
    """Open a second frame for the engine of the first; one of another kind is moved there."""
    lazy = opened(frame, columns, loader=loader)
    if lazy.implementation.value == like.implementation.value:
        return lazy
    return moved(collect(lazy), like)


def moved(rows: pl.DataFrame, like: Lazy) -> Lazy:
    """Move rows into the engine of *like*."""
    native: Any = like.to_native()
    kind = like.implementation
    if kind.is_polars():
        result: Any = rows.lazy()
    elif kind.is_duckdb():
        # DuckDB finds the rows by the name of the variable; the query runs on its connection.
        result = native.query("this_relation", "SELECT * FROM rows")
    elif kind.is_dask():
        import dask.dataframe as dd

        frame = rows.to_pandas(use_pyarrow_extension_array=True)
        result = dd.from_pandas(frame, npartitions=1)  # type: ignore[no-untyped-call]
    else:
        result = native.sparkSession.createDataFrame(rows.to_arrow())
    return as_lazy(result)


def finished(lazy: Lazy, like: IntoFrameT) -> IntoFrameT:
    """Give a result back as the kind of frame that *like* is; a lazy one stays lazy."""
    known: Any = nw.from_native(cast("Any", like))
    if isinstance(known, nw.LazyFrame):
        return cast("IntoFrameT", lazy.to_native())
    try:
        return give_back(collect(lazy), like)
    except InvalidOperationError as error:
        raise (too_much() if _ABOUT in str(error) else error) from error


def dated(lazy: Lazy, every: Calendar, tz: str) -> Lazy:
    """Add ``date``: the first day of the row's calendar unit, where clocks show the zone *tz*."""
    try:
        ZoneInfo(tz)
    except (ValueError, OSError, TypeError, KeyError):
        raise UsageError(
            f"tz={tz!r} is no time zone", hint='Give a name such as "UTC" or "Europe/Berlin".'
        ) from None
    if lazy.implementation.is_duckdb() or lazy.implementation.is_pyspark():
        return _dated_by_sql(lazy, every, tz)
    # Without its zone a clock has no gaps, so every midnight exists.
    date = pl.col("time").dt.convert_time_zone(tz).dt.replace_time_zone(None).dt.date()
    if every != "day":
        date = date.dt.truncate(_TRUNCATED[every])
    return each_row(lazy, lambda rows: as_lazy(rows.to_native().with_columns(date=date)))


def _dated_by_sql(lazy: Lazy, every: Calendar, tz: str) -> Lazy:
    native: Any = lazy.to_native()
    if lazy.implementation.is_duckdb():
        # Zones are told by a library of calendars, which is slow; UTC is what times are kept in.
        utc = tz == "UTC"
        clock = "make_timestamp(epoch_us(time))" if utc else f"timezone('{tz}', time)"
        day = clock if every == "day" else f"date_trunc('{every}', {clock})"
        return as_lazy(native.project(f"*, CAST({day} AS DATE) AS date"))
    from pyspark.sql import functions as sql

    clock = sql.convert_timezone(
        sql.current_timezone(), sql.lit(tz), sql.col("time").cast("timestamp_ntz")
    )
    return as_lazy(native.withColumn("date", sql.date_trunc(every, clock).cast("date")))


def give_moved(table: pl.DataFrame, opened_frame: Lazy, like: IntoFrameT) -> IntoFrameT:
    """Give back a result that was computed here as the kind of frame that *like* is."""
    known: Any = nw.from_native(cast("Any", like))
    if isinstance(known, nw.LazyFrame):
        return cast("IntoFrameT", moved(table, opened_frame).to_native())
    return give_back(table, like)


def stacked(tables: Sequence[Lazy]) -> Lazy:
    """Put tables of the same columns one below the other."""
    return nw.concat(tables, how="vertical")


def ends(lazy: Lazy, name: str) -> tuple[int, int]:
    """Look up the smallest and the largest number of a column, at once; 0 and -1 of no rows."""
    alike = lazy.select(name).with_columns(nw.lit(1).alias(_ALL)).group_by(_ALL)
    table = collect(alike.agg(nw.col(name).min().alias("first"), nw.col(name).max().alias("last")))
    if table.is_empty() or table["first"][0] is None:
        return 0, -1
    return table["first"][0], table["last"][0]


def listed(by: str | Sequence[str]) -> list[str]:
    """Give the columns that tell groups apart as a list."""
    return [by] if isinstance(by, str) else list(by)


def in_order(rows: Lazy, keys: Sequence[str]) -> Lazy:
    """Sort by *keys*, where the engine has an order."""
    return rows.sort(*keys) if keys and not rows.implementation.is_dask() else rows


def added(rows: Lazy, keys: Sequence[str], amounts: Sequence[str], *others: nw.Expr) -> Lazy:
    """Add up whole *amounts* by *keys*, beside *others*; what does not fit is an error.

    Every row has all amounts: null is none.

    Sums of gwei and counts come out as Int64, sums of wei as Decimal(28, 0).
    """
    kind = rows.implementation
    sums = [nw.col(name).sum() for name in amounts]
    gwei = [name for name in amounts if not name.endswith("_wei")]
    # polars and Arrow run over 64 bits without a word; the others say so.
    silent = (kind.is_polars() or kind.is_dask()) and gwei
    if silent:
        rows = each_row(rows, lambda part: part.with_columns(_about(gwei).alias(_ABOUT)))
        sums.append(nw.col(_ABOUT).sum())
    if keys:
        result = rows.group_by(*keys).agg(*others, *sums)
    else:
        alike = rows.with_columns(nw.lit(1).alias(_ALL))
        result = alike.group_by(_ALL).agg(*others, *sums).drop(_ALL)
    if silent:
        result = _checked(result)
    types = [nw.col(name).cast(amount_type(name)) for name in amounts]
    return each_row(result, lambda part: part.with_columns(types))


def _about(names: Sequence[str]) -> nw.Expr:
    """Give a number that no amount of a row exceeds, for the price of some bits.

    The bits of all amounts together are as much as the largest, and less than twice as much.
    """
    bits = functools.reduce(operator.or_, (nw.col(name).abs() for name in names))
    return bits.cast(nw.Float64)


def _checked(result: Lazy) -> Lazy:
    """Raise where sums might have run over, at the time that they are computed."""
    native: Any = result.to_native()
    if isinstance(native, pl.LazyFrame):
        # An expression keeps the engine streaming; twice too much is no Int64 any more.
        fits = (pl.col(_ABOUT) * 2).cast(pl.Int64).is_not_null()
        return as_lazy(native.filter(fits).drop(_ABOUT))

    def check(part: Any) -> Any:
        if len(part) and float(part[_ABOUT].max()) >= _MOST_GWEI:
            raise too_much()
        return part

    return as_lazy(native.map_partitions(check)).drop(_ABOUT)


def too_much() -> UsageError:
    """Say that sums do not fit."""
    return UsageError(
        _ABOUT,
        hint="Check that they are gwei and wei, as the loaders give them.",
    )
