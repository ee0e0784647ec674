"""The differences between engines, behind one interface for all of analysis.

Frames in memory (polars, pandas, pyarrow) are computed by polars, lazy frames by their own engine:
polars, DuckDB, Dask or PySpark. On every engine, sums of amounts are exact or an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
from narwhals.exceptions import ComputeError, InvalidOperationError

from beaconframes.analysis.aggregation import OVERFLOW, build_overflow_error, get_amount_type
from beaconframes.calendar import (
    MAINNET,
    MICROSECOND,
    check_starts,
    find_chain,
    find_length,
    get_chain,
)
from beaconframes.errors import UsageError
from beaconframes.frames import (
    as_lazy,
    collect,
    drop_missing,
    list_column_names,
    map_rows,
    read_starts,
    return_like,
    select_columns,
    wrap_frame,
)
from beaconframes.time_range import find_time_zone

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT
    from numpy.typing import NDArray

    from beaconframes.calendar import Chain, Unit

    Lazy = nw.LazyFrame[Any]

Calendar = Literal["day", "week", "month", "year"]

_COMPARED_ROWS = 1 << 14
"""Rows compared with their neighbors in one step; larger parts do not fit into the cache."""
_TRUNCATED = {"week": "1w", "month": "1mo", "year": "1y"}
_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
_GROUP_OF_ALL = "all rows alike"
_OVERFLOW_MESSAGES = (
    *(OVERFLOW, "to `decimal[28,0]` failed", "overflow in decimal"),
    "from `u64` to `i64` failed",
)
"""Parts of polars' messages for sums that do not fit."""


def open_frame(frame: IntoFrame, columns: Sequence[str], *, loader: str) -> Lazy:
    """Select *columns* of a frame of any kind, lazily, and check that amounts are exact."""
    lazy = select_columns(frame, list(dict.fromkeys(columns)), loader=loader)
    kind = lazy.implementation
    if not (kind.is_polars() or kind.is_duckdb() or kind.is_dask() or kind.is_pyspark()):
        raise UsageError(
            f"lazy frames of {kind.value} are not supported",
            hint="Pass a frame of polars, pandas, DuckDB, Dask or PySpark; collect this one first.",
        )
    for name, dtype in lazy.collect_schema().items():
        if not name.endswith(("_gwei", "_wei")) or dtype.is_integer():
            continue
        if isinstance(dtype, nw.Decimal) and dtype.scale == 0:
            continue
        if not _is_all_null(frame, name):
            raise UsageError(
                f"the column {name} holds {dtype}: amounts must be whole numbers",
                hint=f"Keep the type of bf.{loader}(...); bf.to_pandas(...) keeps every digit.",
            )
        lazy = lazy.with_columns(nw.col(name).cast(get_amount_type(name)))
    return lazy


def check_indices(rows: Lazy) -> None:
    """Raise UsageError for a validator index that is no whole number, such as not-a-number.

    In pandas, one missing index makes the column a float. Only such columns are computed.
    """
    kind = rows.collect_schema().get("validator_index")
    if kind is None or not kind.is_float():
        return
    index = nw.col("validator_index")
    is_wrong = index.is_null() | ~index.is_finite() | (index != index.round())
    wrong = collect(map_rows(rows, lambda part: part.filter(is_wrong).select(index)))
    if wrong.height:
        value = wrong.item(0, 0)
        raise UsageError(
            f"the column validator_index holds {'null' if value is None else value}, which is not "
            f"an index, in {wrong.height:,} of its rows",
            hint="Remove these rows, and convert the column to integers.",
        )


def check_distinct(
    frame: IntoFrame, keys: Sequence[str], groups: Sequence[str] = (), *, loader: str
) -> None:
    """Raise UsageError if a frame in memory has two rows of one key, as overlapping loads do.

    A row may be in several of the user's *groups*. Lazy frames are not checked: this would compute
    them. A frame without the columns *keys* is not checked either.
    """
    wrapped = wrap_frame(frame, loader=loader)
    if isinstance(wrapped, nw.LazyFrame) or not {*keys} <= {*wrapped.columns}:
        return
    columns = list(dict.fromkeys([*keys, *groups]))
    rows = collect(select_columns(frame, columns, loader=loader))
    # A filter copies the rows, and few frames need one.
    if any(rows[key].null_count() or rows[key].dtype.is_float() for key in keys):
        rows = collect(drop_missing(as_lazy(rows.lazy()), keys))
    # Loaded frames are sorted: to compare neighbors is many times as fast as a hash table.
    if is_increasing(rows, keys) or is_increasing(rows, keys[::-1]):
        return
    repeated = rows.filter(rows.select(columns).is_duplicated())
    if repeated.height:
        first = ", ".join(f"{key} {repeated[key][0]}" for key in keys)
        raise UsageError(
            f"{repeated.height:,} rows of the frame repeat each other: {first} occurs "
            f"{repeated.filter(pl.col(key) == repeated[key][0] for key in keys).height} times",
            hint=f"Loads that overlap have the same rows. Remove them: frame.unique({list(keys)}) "
            f"in polars, frame.drop_duplicates({list(keys)}) in pandas.",
        )


def is_increasing(rows: pl.DataFrame, keys: Sequence[str]) -> bool:
    """Return whether each row is after the one before, by *keys*."""
    columns = [rows[key].to_numpy() for key in reversed(keys)]
    # The last row of a part is the first one of the next.
    parts = (slice(n, n + _COMPARED_ROWS + 1) for n in range(0, rows.height, _COMPARED_ROWS))
    return all(_is_part_increasing([numbers[part] for numbers in columns]) for part in parts)


def _is_part_increasing(columns: Sequence[NDArray[Any]]) -> bool:
    """Return whether each row is after the one before, by *columns*, the most important last."""
    increases = None
    for numbers in columns:
        before, after = numbers[:-1], numbers[1:]
        is_after = after > before
        increases = is_after if increases is None else is_after | ((after == before) & increases)
    return bool(np.all(increases))


def _is_all_null(frame: IntoFrame, name: str) -> bool:
    """Return whether a column has no value; its type in pandas is then arbitrary."""
    wrapped: Any = nw.from_native(cast("Any", frame))
    return isinstance(wrapped, nw.DataFrame) and bool(wrapped[name].is_null().all())


def open_frame_like(frame: IntoFrame, columns: Sequence[str], *, loader: str, like: Lazy) -> Lazy:
    """Open a second frame in the engine of the first; move it there if it is of another kind."""
    lazy = open_frame(frame, columns, loader=loader)
    if lazy.implementation.value == like.implementation.value:
        return lazy
    return move_to_engine(collect(lazy), like)


def resolve_chain(chain: Chain | str | None, *frames: tuple[IntoFrame | None, Unit]) -> Chain:
    """Return *chain*, or the chain of the first of the *frames* that has times.

    Each frame has the unit that its ``time`` is the start of. Without times: *chain*, or mainnet. A
    frame of another chain, by its times or the epochs of its slots, is a `UsageError`.
    """
    found = None if chain is None else get_chain(chain)
    for frame, unit in frames:
        if frame is None or not (starts := read_starts(frame, unit)):
            continue
        if found is None:
            found = find_chain(unit, starts)
        else:
            check_starts(found, unit, starts, is_given=chain is not None)
    found = found or MAINNET
    for frame, unit in frames:
        if frame is not None and unit == "slot":
            _check_epochs(frame, found.slots_per_epoch)
    return found


def _check_epochs(frame: IntoFrame, slots_per_epoch: int) -> None:
    """Raise UsageError if a slot of the frame is in another epoch than this number shows."""
    columns = ["slot", "epoch"]
    if not {*columns} <= {*list_column_names(frame)}:
        return
    rows = drop_missing(select_columns(frame, columns, loader="load_epoch_slots"), columns)
    is_other = nw.col("slot") // slots_per_epoch != nw.col("epoch")
    others = collect(map_rows(rows, lambda part: part.filter(is_other)).head(1))
    for slot, epoch in others.iter_rows():
        raise UsageError(
            f"the frame is of no chain with {slots_per_epoch} slots in an epoch: "
            f"its slot {slot:,} is in epoch {epoch:,}",
            hint="Pass the chain of the frame, chain=Chain(...).",
        )


def move_to_engine(rows: pl.DataFrame, like: Lazy) -> Lazy:
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


def return_lazy(lazy: Lazy, like: IntoFrameT) -> IntoFrameT:
    """Return a result as the kind of frame that *like* is; a lazy frame stays lazy."""
    wrapped: Any = nw.from_native(cast("Any", like))
    if isinstance(wrapped, nw.LazyFrame):
        return cast("IntoFrameT", lazy.to_native())
    return return_like(collect_sums(lazy), like)


def collect_sums(sums: Lazy) -> pl.DataFrame:
    """Compute the sums eagerly; an overflow in polars becomes a `UsageError`."""
    try:
        return collect(sums)
    except (ComputeError, InvalidOperationError) as error:
        is_overflow = any(text in str(error) for text in _OVERFLOW_MESSAGES)
        raise (build_overflow_error() if is_overflow else error) from error


def compute_once(rows: Lazy) -> Lazy:
    """Compute rows that several results need eagerly, in polars.

    Other engines compute them for each result: their rows may not fit into memory.
    """
    return as_lazy(collect_sums(rows).lazy()) if rows.implementation.is_polars() else rows


def add_date(lazy: Lazy, every: Calendar, tz: str) -> Lazy:
    """Add ``date``, the first day of the row's calendar unit in the time zone *tz*."""
    find_time_zone(tz)
    if lazy.implementation.is_duckdb() or lazy.implementation.is_pyspark():
        return _add_date_in_sql(lazy, every, tz)
    date = pl.col("time").dt.convert_time_zone(tz).dt.date()
    if every != "day":
        date = date.dt.truncate(_TRUNCATED[every])
    return map_rows(lazy, lambda rows: as_lazy(rows.to_native().with_columns(date=date)))


def _add_date_in_sql(lazy: Lazy, every: Calendar, tz: str) -> Lazy:
    native: Any = lazy.to_native()
    if lazy.implementation.is_duckdb():
        # Zone conversion is slow in DuckDB; times are stored in UTC, which needs none.
        utc = tz == "UTC"
        clock = "make_timestamp(epoch_us(time))" if utc else f"timezone('{tz}', time)"
        day = clock if every == "day" else f"date_trunc('{every}', {clock})"
        return as_lazy(native.project(f"*, CAST({day} AS DATE) AS date"))
    from pyspark.sql import functions as sql

    clock = sql.convert_timezone(
        sql.current_timezone(), sql.lit(tz), sql.col("time").cast("timestamp_ntz")
    )
    return as_lazy(native.withColumn("date", sql.date_trunc(every, clock).cast("date")))


def use_epoch_starts(lazy: Lazy, starts: list[tuple[int, datetime]]) -> Lazy:
    """Replace the ``time`` of rows by the start of their ``epoch``, as *starts* state it."""
    length = find_length("epoch", starts)
    if length is None:
        return lazy
    number, start = starts[0]
    first, step = (start - _UNIX - number * length) // MICROSECOND, length // MICROSECOND
    native: Any = lazy.to_native()
    if lazy.implementation.is_duckdb():
        shifted = f"coalesce(make_timestamptz({first} + epoch * {step}), time)"
        return as_lazy(native.project(f"* REPLACE ({shifted} AS time)"))
    if lazy.implementation.is_pyspark():
        from pyspark.sql import functions as sql

        shifted = sql.timestamp_micros(sql.lit(first) + sql.col("epoch") * step)
        return as_lazy(native.withColumn("time", sql.coalesce(shifted, sql.col("time"))))
    epoch_start = pl.from_epoch(first + pl.col("epoch") * step, "us").dt.replace_time_zone("UTC")
    time = pl.coalesce(epoch_start, "time")
    return map_rows(lazy, lambda rows: as_lazy(rows.to_native().with_columns(time=time)))


def return_table(table: pl.DataFrame, source: Lazy, like: IntoFrameT) -> IntoFrameT:
    """Return a result computed in polars as the kind of frame that *like* is."""
    wrapped: Any = nw.from_native(cast("Any", like))
    if isinstance(wrapped, nw.LazyFrame):
        return cast("IntoFrameT", move_to_engine(table, source).to_native())
    return return_like(table, like)


def find_range(lazy: Lazy, name: str) -> tuple[int, int]:
    """Return the smallest and the largest number of a column, eagerly; 0 and -1 for no rows."""
    grouped = lazy.select(name).with_columns(nw.lit(1).alias(_GROUP_OF_ALL)).group_by(_GROUP_OF_ALL)
    table = collect_sums(
        grouped.agg(nw.col(name).min().alias("first"), nw.col(name).max().alias("last"))
    )
    if table.is_empty() or table["first"][0] is None:
        return 0, -1
    return table["first"][0], table["last"][0]


def check_level(level: Any) -> None:
    """Raise a `UsageError` for a confidence level that is not between 0 and 1."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise UsageError(f"level={level!r} is not between 0 and 1", hint="Try level=0.95.")


def list_columns(by: str | Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return the group columns as a list.

    Raise a `UsageError` for one of *taken*, the columns that the function computes.
    """
    groups: Any = [by] if isinstance(by, str) else by
    if not (isinstance(groups, Iterable) and all(isinstance(name, str) for name in groups)):
        raise UsageError(
            f"by={by!r} is not a column, or a list of columns",
            hint="Pass names of columns of the frame; by=() is all rows together.",
        )
    if twice := set(taken) & set(groups):
        raise UsageError(
            f"by={min(twice)!r} is a column that the function computes itself",
            hint="Group by another column, or rename that column of the frame first.",
        )
    return [*groups]


def sum_by(
    rows: pl.DataFrame, groups: Sequence[str], *sums: pl.Expr, **named_sums: pl.Expr
) -> pl.DataFrame:
    """Return sums by group, sorted; one row for no groups."""
    if not groups:
        return rows.select(*sums, **named_sums)
    return rows.group_by(groups).agg(*sums, **named_sums).sort(groups)


def sort_rows(rows: Lazy, keys: Sequence[str]) -> Lazy:
    """Sort by *keys*; Dask has no order, so its rows stay as they are."""
    return rows.sort(*keys) if keys and not rows.implementation.is_dask() else rows
