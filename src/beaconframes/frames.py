"""Frames of any kind in, frames of the same kind out: shared by analysis, charts and the wall."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, cast

import narwhals.stable.v2 as nw
import polars as pl
from narwhals.exceptions import DuplicateError

from beaconframes.calendar import find_known_chain
from beaconframes.errors import UsageError, build_column_error
from beaconframes.pandas_frames import to_pandas
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Unit

# Any character except printable ASCII.
_UNSAFE = r"[^\x20-\x7e]"
_TIME = pl.Datetime("us", "UTC")
# Errors of pandas, Arrow and polars for types that another of them does not support.
UNREADABLE = (
    *(TypeError, ValueError, OverflowError, NotImplementedError),
    *(pl.exceptions.PolarsError, pl.exceptions.PanicException),
)


_SIGNED = (nw.Int64(), nw.Int128())
"""Types of integers that are added and subtracted; others are widened."""
_NEVER = 2**53
"""An epoch or slot that is never reached. Services write 2^64 - 1, which Int64 does not have."""


def wrap_frame(frame: IntoFrame, *, loader: str) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """Wrap a frame of any kind in narwhals; anything else is a `UsageError` with the *loader*."""
    try:
        return nw.from_native(frame)
    except TypeError:
        raise UsageError(
            f"expected a frame, not {type(frame).__name__}",
            hint=f"Pass the result of bf.{loader}(...), in polars or pandas.",
        ) from None


def select_columns(frame: IntoFrame, columns: Sequence[str], *, loader: str) -> nw.LazyFrame[Any]:
    """Select *columns* of a frame of any kind, lazily, with times in UTC.

    A missing column is a `UsageError` with the column, similar names, and the loader that fits.
    """
    wrapped_frame = wrap_frame(frame, loader=loader)
    names = wrapped_frame.collect_schema().names()
    if missing := [column for column in columns if column not in names]:
        native: Any = frame
        index = native.index.names if wrapped_frame.implementation.is_pandas() else ()
        if in_index := [column for column in missing if column in index]:
            raise UsageError(
                f"{' and '.join(in_index)} is in the index of the frame, not a column",
                hint="Pass frame.reset_index().",
            )
        raise build_column_error(missing, names, loader=loader)
    lazy = _make_lazy(wrapped_frame.select(*columns))
    schema = lazy.collect_schema()
    _check_dates(schema, loader)
    lazy = _convert_types(lazy, schema)
    if lazy.implementation.is_duckdb() or lazy.implementation.is_spark_like():
        # These engines store instants without a zone; the connection chooses the zone for display.
        kind = schema.get("time")
        if kind is not None and not (isinstance(kind, nw.Datetime) and kind.time_zone):
            raise UsageError(
                "the column time has no time zone",
                hint="Convert it to UTC; in DuckDB: timezone('UTC', time) AS time.",
            )
        return lazy
    # pandas supports other zones, and times finer than a microsecond.
    others = [
        nw.col(name).dt.convert_time_zone("UTC").cast(nw.Datetime("us", "UTC"))
        for name, kind in schema.items()
        if isinstance(kind, nw.Datetime) and kind != nw.Datetime("us", "UTC")
    ]
    return map_rows(lazy, lambda rows: rows.with_columns(*others)) if others else lazy


def _convert_types(lazy: nw.LazyFrame[Any], schema: Mapping[str, Any]) -> nw.LazyFrame[Any]:
    """Return all integers in 64 bits with a sign, and categories as texts.

    Sums of 32 bits, and differences of unsigned numbers, would wrap without an error.
    """
    exprs = []
    for name, dtype in schema.items():
        if isinstance(dtype, nw.Categorical | nw.Enum):
            exprs.append(nw.col(name).cast(nw.String()))
        elif dtype.is_integer() and dtype not in _SIGNED:
            is_amount = name.endswith(("_gwei", "_wei"))
            column = nw.col(name)
            if dtype == nw.UInt64() and not is_amount:
                column = column.clip(upper_bound=_NEVER)
            exprs.append(column.cast(nw.Int64()))
    return lazy.with_columns(*exprs) if exprs else lazy


def _check_dates(schema: Mapping[str, Any], loader: str) -> None:
    """Raise a `UsageError` for dates and times of another type, such as those of a CSV file."""
    if schema.get("date") == nw.String:
        raise UsageError(
            "the column date holds String, not dates",
            hint='Parse it: pd.to_datetime(frame["date"]) in pandas, '
            'pl.col("date").str.to_date() in polars.',
        )
    for name in ("time", "since", "until"):
        kind = schema.get(name, nw.Datetime)
        if kind == nw.Datetime:
            continue
        epoch = f'pl.from_epoch("{name}", "ms").dt.replace_time_zone("UTC")'
        from_number = f"Convert it, such as {epoch} in polars for milliseconds since 1970."
        hints = {
            nw.Int64: from_number,
            nw.Float64: from_number,
            nw.String: f'Parse it: pd.to_datetime(frame["{name}"], utc=True) in pandas, '
            f'pl.col("{name}").str.to_datetime(time_zone="UTC") in polars.',
            nw.Date: f'Convert it: pl.col("{name}").cast(pl.Datetime("us", "UTC")) in polars is '
            "the beginning of each day.",
        }
        unchanged = f"Keep it as bf.{loader}(...) returns it: a UTC datetime."
        hint = next((text for each, text in hints.items() if kind == each), unchanged)
        raise UsageError(f"the column {name} holds {kind}, not times", hint=hint)


def _make_lazy(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return a frame as lazy. Frames in memory move into polars, which adds decimals exactly."""
    if isinstance(frame, nw.LazyFrame):
        return frame
    try:
        return nw.from_native(frame.to_polars()).lazy()
    except UNREADABLE as error:
        column = next(
            (name for name in frame.columns if not _is_readable(frame.select(name))), None
        )
        which = "frame" if column is None else f"column {column}"
        raise UsageError(
            f"the {which} cannot be read: {first_line(error)}",
            hint="bf.to_pandas(...) returns pandas frames that keep every digit.",
        ) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message: polars appends the query plan."""
    return str(error).strip().partition("\n")[0]


def _is_readable(frame: nw.DataFrame[Any]) -> bool:
    """Return whether polars has types for all columns of a frame."""
    try:
        frame.to_polars()
    except UNREADABLE:
        return False
    return True


def collect(lazy: nw.LazyFrame[Any]) -> pl.DataFrame:
    """Compute *lazy* in its own engine and convert the result to polars, with times in UTC."""
    return _convert_times(_collect(lazy))


def _convert_times(table: pl.DataFrame) -> pl.DataFrame:
    other_times = [
        pl.col(name).dt.convert_time_zone("UTC").dt.cast_time_unit("us")
        for name, kind in table.schema.items()
        if isinstance(kind, pl.Datetime) and kind.time_zone and kind != _TIME
    ]
    return table.with_columns(other_times) if other_times else table


def _collect(lazy: nw.LazyFrame[Any]) -> pl.DataFrame:
    return cast("pl.DataFrame", lazy.collect("polars").to_native())


def to_polars(frame: IntoFrame) -> pl.DataFrame:
    """Convert a frame of any kind to polars, with times in UTC."""
    if isinstance(frame, pl.DataFrame):
        return _convert_times(frame)
    return collect(_read_frame(frame))


def to_polars_as_is(frame: IntoFrame) -> pl.DataFrame:
    """Convert a frame of any kind to polars; times keep their resolution and time zone."""
    lazy = _read_frame(frame)
    try:
        return _collect(lazy)
    except UNREADABLE as error:
        raise UsageError(f"the frame cannot be read: {first_line(error)}") from error


def _read_frame(frame: IntoFrame) -> nw.LazyFrame[Any]:
    """Read a frame of any kind; columns with the same name are a `UsageError`."""
    try:
        return _make_lazy(nw.from_native(frame))
    except DuplicateError:
        native: Any = frame
        names = [str(name) for name in getattr(native, "column_names", native.columns)]
        twice = next((name for name in names if names.count(name) > 1), "")
        raise UsageError(
            f"several columns of the frame are named {twice!r}",
            hint="Give each column a unique name.",
        ) from None


def return_like(result: pl.DataFrame, like: IntoFrameT) -> IntoFrameT:
    """Convert *result* to the kind of frame that *like* is; to polars for any other kind."""
    kind: Any = nw.from_native(cast("Any", like))
    native: Any = result
    if isinstance(kind, nw.LazyFrame):
        native = result.lazy()
    elif kind.implementation.is_pandas():
        native = to_pandas(result)
    elif kind.implementation.is_pyarrow():
        native = result.to_arrow()
    return cast("IntoFrameT", native)


def printable(frame: IntoFrameT) -> IntoFrameT:
    r"""Escape control and non-ASCII characters in all text columns, for safe printing.

    Graffiti and names may contain any text, and frames keep them unchanged. Tables in a notebook
    are safe, but ``print`` sends the text to the terminal unchanged, including terminal commands.
    ``print(bf.printable(frame))`` shows ``\x1b``, ``\n`` or ``\u202e`` instead. The result is the
    same kind of frame.
    """
    table = to_polars(frame)
    columns = []
    for name, kind in table.schema.items():
        if kind == pl.String:
            texts = table[name].unique().drop_nulls()
            unsafe = texts.filter(texts.str.contains(_UNSAFE)).to_list()
            columns.append(pl.col(name).replace({text: visible(text) for text in unsafe}))
    return return_like(table.with_columns(columns), frame)


def drop_missing(lazy: nw.LazyFrame[Any], columns: Sequence[str]) -> nw.LazyFrame[Any]:
    """Drop the rows with a null or not-a-number in one of *columns*."""
    schema = lazy.collect_schema()
    for column in columns:
        is_known = ~nw.col(column).is_null()
        if schema[column].is_float():
            is_known = is_known & nw.col(column).is_finite()
        lazy = lazy.filter(is_known)
    return lazy


def read_rows(
    frame: IntoFrame, columns: Sequence[str], *, loader: str, required: Sequence[str] | None = None
) -> pl.DataFrame:
    """Read *columns* into polars, without rows that miss one of *required*; default: of all."""
    selected = select_columns(frame, columns, loader=loader)
    return collect(drop_missing(selected, columns if required is None else required))


def map_rows(
    lazy: nw.LazyFrame[Any], change: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]]
) -> nw.LazyFrame[Any]:
    """Apply *change*, which may use nothing but the row itself, to each row.

    Dask supports neither decimals nor time zones well, so polars changes each partition.
    """
    if not lazy.implementation.is_dask():
        return change(lazy)
    import dask.dataframe.dispatch as dask

    def in_polars(part: Any) -> Any:
        rows = pl.from_pandas(part, rechunk=False).lazy()
        changed = collect(change(nw.from_native(rows)))
        return changed.to_pandas(use_pyarrow_extension_array=True)

    native: Any = lazy.to_native()
    meta = in_polars(dask.make_meta(native))  # type: ignore[no-untyped-call]
    return as_lazy(native.map_partitions(in_polars, meta=meta, clear_divisions=True))


def as_lazy(native: Any) -> nw.LazyFrame[Any]:
    """Wrap an engine's lazy frame in narwhals."""
    return cast("nw.LazyFrame[Any]", nw.from_native(native))


def list_column_names(frame: IntoFrame) -> list[str]:
    """Return the names of the columns of a frame of any kind; none if it is not a frame."""
    try:
        return nw.from_native(frame).collect_schema().names()
    except TypeError:
        return []


def read_starts(frame: IntoFrame, unit: Unit) -> list[tuple[int, datetime]]:
    """Return the number and ``time`` of one row, and of a second one where one does not suffice.

    Empty without rows or without these columns. One row shows which known chain this is; the
    second, of another number, shows the length of an epoch of any other chain. Looking up two rows
    is cheap for lazy frames, unlike an aggregation.
    """
    try:
        wrapped_frame = nw.from_native(frame)
    except (TypeError, DuplicateError):
        return []
    schema = wrapped_frame.collect_schema()
    if unit not in schema or not schema[unit].is_numeric() or schema.get("time") != nw.Datetime:
        return []
    selected = wrapped_frame.select(unit, "time")
    native: Any = selected.to_native()
    if isinstance(native, pl.DataFrame) and schema[unit].is_integer():
        # Its first rows mostly suffice, and reading them needs no query.
        starts = _find_starts(native.head(2))
        if _is_enough(unit, starts[:1]):
            return starts[:1]
        if len(starts) == 2:
            return starts
    rows = drop_missing(_make_lazy(selected), [unit, "time"]).filter(nw.col(unit) >= 0)
    starts = _read_start(rows)
    if not starts or _is_enough(unit, starts):
        return starts
    return starts + _read_start(rows.filter(nw.col(unit) != starts[0][0]))


def _is_enough(unit: Unit, starts: list[tuple[int, datetime]]) -> bool:
    """Return whether one start shows the chain: unit 0 does not show the length of a unit."""
    return bool(starts and starts[0][0] and find_known_chain(unit, starts))


def _read_start(rows: nw.LazyFrame[Any]) -> list[tuple[int, datetime]]:
    """Read the first row: a number and its time, in UTC."""
    native: Any = rows.to_native()
    # Dask would compute all partitions for the first row.
    parts = map(as_lazy, native.partitions) if rows.implementation.is_dask() else [rows]
    return next(filter(None, (_find_starts(collect(part.head(1))) for part in parts)), [])


def _find_starts(rows: pl.DataFrame) -> list[tuple[int, datetime]]:
    """Return the number and the time, in UTC, of the first rows of different numbers."""
    starts: dict[int, datetime] = {}
    for number, start in rows.iter_rows():
        if number is not None and number >= 0 and start is not None:
            starts.setdefault(int(number), start if start.tzinfo else start.replace(tzinfo=UTC))
    return list(starts.items())


def is_empty(frame: IntoFrame) -> bool:
    """Return whether a frame of any kind has no rows, without computing all of it."""
    wrapped_frame = nw.from_native(frame)
    if isinstance(wrapped_frame, nw.LazyFrame):
        return collect(wrapped_frame.head(1)).is_empty()
    return wrapped_frame.is_empty()


def is_simulated(frame: object) -> bool:
    """Return whether a loader marked a frame as simulated; frames computed from it lose the mark.

    pandas frames keep it longer than polars frames, which have no attributes of their own.
    """
    attributes = getattr(frame, "attrs", None)
    return isinstance(attributes, dict) and bool(attributes.get("simulated"))


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise a `UsageError` unless *value* of the argument *name* is one of *choices*."""
    if not isinstance(value, str) or value not in choices:
        options = ", ".join(f'"{choice}"' for choice in choices)
        raise UsageError(f"{name}={value!r} is not valid", hint=f"Choose one of {options}.")


def check_count(name: str, value: object, most: int | None = None, hint: str = "") -> None:
    """Raise a `UsageError` unless *value* of the argument *name* is an integer from 1 to *most*."""
    if type(value) is not int or value < 1 or (most is not None and value > most):
        bounds = "from 1" if most is None else f"from 1 to {most}"
        raise UsageError(
            f"{name}={value!r} is not a whole number in range",
            hint=hint or f"Pass a whole number {bounds}.",
        )
