"""Sources of rows to export: frames and lazy frames."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl
from narwhals.exceptions import DuplicateError

from beaconframes.calendar import find_known_chain
from beaconframes.errors import BeaconframesError, DatasetError, UsageError
from beaconframes.exports.table_descriptions import TableDescription, describe_rows
from beaconframes.frames import first_line, is_simulated, read_starts, to_polars_as_is
from beaconframes.v1 import ENDPOINTS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beaconframes.calendar import Chain, Unit
    from beaconframes.exports.partitions import Partitioning

BATCH_ROWS = 65_536
"""Rows that are written at a time."""
POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass
class TableSource:
    """The rows of one table, and their origin.

    ``provenance`` and ``request`` go into the manifest. ``gaps`` lists missing rows, and is
    complete once all rows were read.
    """

    table: TableDescription
    frames: Callable[[], Iterator[pl.DataFrame]]
    chain: Chain | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    gaps: list[dict[str, Any]] = field(default_factory=list)
    only_new_rows: bool = False
    """Whether the frames leave out the rows that were already published."""
    is_ordered: bool = True
    """Whether the frames may be in the order of partitions; otherwise, they are read once more."""
    extend: Callable[[dict[str, Any], Partitioning], None] | None = None
    """Continue after the published table; None if its rows cannot be continued."""
    unit_column: str = ""
    """The column of which gaps are intervals, such as ``epoch``."""

    def merge_gaps(self) -> list[dict[str, Any]]:
        """Return the gaps in order, with equal and adjacent gaps merged."""
        first, last = f"first_{self.unit_column}", f"last_{self.unit_column}"
        merged: list[dict[str, Any]] = []

        def sort_key(gap: dict[str, Any]) -> tuple[list[tuple[str, str]], int]:
            subject = [
                (name, str(value).zfill(20))
                for name, value in gap.items()
                if name not in (first, last)
            ]
            return sorted(subject), gap.get(first, -1)

        for gap in sorted(self.gaps, key=sort_key):
            previous = merged[-1] if merged else {}
            same_subject = {**previous, first: 0, last: 0} == {**gap, first: 0, last: 0}
            touches = first in gap and first in previous and gap[first] <= previous[last] + 1
            if same_subject and touches:
                previous[last] = max(previous[last], gap[last])
            elif gap != previous:
                merged.append({**gap})
        return merged


def create_frame_source(frame: Any, name: str | None) -> TableSource:
    """Return a source for a frame: polars, pandas or another one that narwhals supports."""
    provenance = {"simulated": True} if is_simulated(frame) else {}
    if isinstance(frame, pl.LazyFrame):
        with translate_read_errors():
            schema = frame.collect_schema()
        table = describe_rows(schema, name)
        batches = partial(read_batches, frame)
        return TableSource(table, batches, detect_chain(frame), provenance)
    if not isinstance(frame, pl.DataFrame):
        try:
            frame = to_polars_as_is(include_index(frame))
        except TypeError:
            raise UsageError(
                f"a {type(frame).__name__} cannot be exported",
                hint="Give a frame, a loader and its arguments, a Dataset or bf.store()",
            ) from None
        frame = restore_loader_types(restore_days(frame), name)
    rows: pl.DataFrame = frame
    table = describe_rows(rows.schema, name)
    slices = partial(rows.iter_slices, BATCH_ROWS)
    return TableSource(table, slices, detect_chain(rows), provenance)


def restore_days(rows: pl.DataFrame) -> pl.DataFrame:
    """Convert times without a zone to days where all are midnights: pandas has no type for days."""
    times = rows.select(pl.selectors.datetime(time_zone=None))
    days = [
        name
        for name, column in zip(times.columns, times, strict=True)
        if column.count() and (column == column.dt.truncate("1d")).all()
    ]
    return rows.with_columns(pl.col(days).cast(pl.Date))


def include_index(frame: Any) -> Any:
    """Return a frame of pandas or Dask with the named levels of its index as columns."""
    index = getattr(frame, "index", None)
    names = getattr(index, "names", None) or [getattr(index, "name", None)]
    named = [name for name in names if name is not None]
    if not named:
        return frame
    if duplicates := [name for name in named if name in frame.columns]:
        raise UsageError(
            f"{duplicates[0]!r} is the name of a column and of the index",
            hint="Rename one of them, or drop the index: frame.reset_index(drop=True)",
        )
    return frame.reset_index()


def is_frame(value: object) -> bool:
    """Return whether a value is a frame of a supported library."""
    try:
        nw.from_native(value)  # type: ignore[call-overload]
    except DuplicateError:
        return True  # reading it raises the error
    except TypeError:
        return False
    return True


def read_batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of a lazy frame in batches."""
    with translate_read_errors():
        for batch in rows.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, lazy=True):
            yield from batch.iter_slices(BATCH_ROWS)


@contextmanager
def translate_read_errors() -> Iterator[None]:
    """Turn the errors of a lazy frame into a DatasetError."""
    try:
        yield
    except (OSError, *POLARS_ERRORS) as error:
        raise DatasetError(
            f"the rows cannot be read: {first_line(error)}",
            hint="Collect the lazy frame to see the whole error",
        ) from error


def restore_loader_types(frame: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """Return a frame from another library with the types of the loader that has its columns.

    Pandas has 64-bit times of several precisions, and its own text, lists and decimals. If a value
    would change, the frame keeps all its types.
    """
    frame = frame.with_columns(
        exact
        for column in frame.select(pl.selectors.datetime(time_zone="*"))
        if (exact := cast_exactly(column, pl.Datetime("us", "UTC"))) is not None
    )
    if describe_rows(frame.schema, name).route or not frame.columns:
        return frame
    for endpoint in (*ENDPOINTS, *ENDPOINTS_V2):
        schema = endpoint.table.schema()
        if schema.names() == frame.columns:
            columns = [cast_exactly(frame[column], dtype) for column, dtype in schema.items()]
            if all(column is not None for column in columns):
                return pl.DataFrame(columns)
    return frame


def cast_exactly(column: pl.Series, dtype: pl.DataType) -> pl.Series | None:
    """Return *column* with the type *dtype*, NaN as null; None if another value would change."""
    if column.dtype == dtype:
        return column
    if column.dtype.is_float() and not dtype.is_float():
        column = column.fill_nan(None)
    try:
        converted = column.cast(dtype)
        restored = converted.cast(column.dtype)
    except POLARS_ERRORS:
        return None
    return converted if restored.equals(column) else None


def detect_chain(frame: Any) -> Chain | None:
    """Return the public chain of a frame, by the times of its slots or epochs; None if unknown.

    Errors in the rows are ignored here: reading the rows raises them.
    """
    units: tuple[Unit, ...] = ("slot", "epoch")
    with suppress(BeaconframesError, OSError, ValueError, OverflowError, *POLARS_ERRORS):
        for unit in units:
            if starts := read_starts(frame, unit):
                return find_known_chain(unit, starts)
    return None
