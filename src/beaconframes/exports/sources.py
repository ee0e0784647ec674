"""What can be exported: frames, lazy frames, and streams of them, as a source of rows."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl
from narwhals.exceptions import DuplicateError

from beaconframes.calendar import HOODI, MAINNET, Chain
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.table_descriptions import TableDescription, of_rows
from beaconframes.frames import first_line, to_polars_as_is

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BATCH = 65_536
"""Rows that are taken at a time."""
PAGES = BATCH
"""Rows of small frames that are put together."""
POLARS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass
class Source:
    """Rows of one table, and what is known of them.

    ``grows`` says that what is there already is not in the rows: they only add to it. ``facts`` is
    where the data is from, and ``request`` what was asked for; ``gaps`` names what did not come,
    and is known when all rows are taken.
    """

    table: TableDescription
    frames: Callable[[], Iterator[pl.DataFrame]]
    chain: Chain | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    gaps: list[dict[str, Any]] = field(default_factory=list)
    grows: bool = False
    resume: Callable[..., bool] | None = None
    """Take into account what is there; returns whether what a killed export had done counts."""
    unit: str = ""
    """The column that gaps are runs of."""
    journal: Callable[[dict[str, Any]], None] | None = None

    def note(self, gaps: list[dict[str, Any]]) -> None:
        """Remember what did not come."""
        self.gaps += gaps
        for gap in gaps if self.journal else ():
            self.journal(gap)  # type: ignore[misc]

    def missing(self) -> list[dict[str, Any]]:
        """Return what did not come, in order, however it was asked for."""
        first, last = f"first_{self.unit}", f"last_{self.unit}"
        found: list[dict[str, Any]] = []

        def place(gap: dict[str, Any]) -> tuple[list[tuple[str, str]], int]:
            whose = [(k, str(v).zfill(20)) for k, v in gap.items() if k not in (first, last)]
            return sorted(whose), gap.get(first, 0)

        for gap in sorted(self.gaps, key=place):
            before = found[-1] if found else {}
            same = {**before, first: 0, last: 0} == {**gap, first: 0, last: 0}
            if same and first in gap and gap[first] <= before[last] + 1:
                before[last] = max(before[last], gap[last])
            else:
                found.append({**gap})
        return found


def of_frame(frame: Any, name: str | None) -> Source:
    """Take a frame of any kind: polars, pandas or what narwhals knows, lazy or not."""
    if isinstance(frame, pl.LazyFrame):
        with readable():
            schema = frame.collect_schema()
        return Source(of_rows(schema, name), lambda: batches(frame), chain_of(frame.head(1)))
    if not isinstance(frame, pl.DataFrame):
        try:
            frame = to_polars_as_is(with_index(frame))
        except TypeError:
            raise UsageError(
                f"{type(frame).__name__} cannot be exported",
                hint="Give a frame, a loader and its arguments, a Dataset or bf.store()",
            ) from None
        frame = as_loaded(frame, name)
    rows: pl.DataFrame = frame
    table = of_rows(rows.schema, name)
    return Source(table, lambda: iter(rows.iter_slices(BATCH)), chain_of(rows.lazy()))


def with_index(frame: Any) -> Any:
    """Return a frame of pandas or Dask with the named columns of its index among the others."""
    index = getattr(frame, "index", None)
    names = getattr(index, "names", None) or [getattr(index, "name", None)]
    named = [name for name in names if name is not None]
    if not named:
        return frame
    if both := [name for name in named if name in frame.columns]:
        raise UsageError(
            f"{both[0]!r} is the name of a column and of the index",
            hint="Rename one of them, or leave the index out: frame.reset_index(drop=True)",
        )
    return frame.reset_index()


def is_frame(what: object) -> bool:
    """Tell whether *what* is a frame of some kind."""
    try:
        nw.from_native(what)  # type: ignore[call-overload]
    except DuplicateError:
        return True  # what is wrong with it is said where it is taken
    except TypeError:
        return False
    return True


def of_frames(frames: Iterable[Any], name: str | None) -> Source:
    """Take frames one after the other, of the same columns."""
    source = iter(frames)
    first = next(source, None)
    if not isinstance(first, pl.DataFrame):
        raise UsageError(
            "an iterable of polars frames has at least one, which says what its columns are"
        )
    schema = first.schema

    def every() -> Iterator[pl.DataFrame]:
        # Small pages are put together: to look at each would take longer than to write it.
        some, height = [schema.to_frame()], 0
        for frame in chain([first], source):
            if not isinstance(frame, pl.DataFrame):
                kind = type(frame).__name__
                raise UsageError(f"the frames of one export are of polars, and one is {kind}")
            if height and height + frame.height > PAGES:
                yield from together(some)
                some, height = [], 0
            some.append(frame)
            height += frame.height
        yield from together(some)

    def together(frames: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        try:
            return pl.concat(frames).iter_slices(PAGES)
        except pl.exceptions.PolarsError as error:
            raise UsageError("the frames of one export have different columns") from error

    return Source(of_rows(schema, name), every, chain_of(first.lazy()))


def batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of a lazy frame, a batch at a time."""
    with readable():
        for batch in rows.collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True):
            yield from batch.iter_slices(BATCH)


@contextmanager
def readable() -> Iterator[None]:
    """Turn what a lazy frame raises into a DatasetError."""
    try:
        yield
    except (OSError, *POLARS) as error:
        raise DatasetError(
            f"the rows cannot be read: {first_line(error)}",
            hint="Collect the lazy frame to see what is wrong with it",
        ) from error


def as_loaded(frame: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """Return what came from another library with the types that a loader gives, where it can be.

    Pandas knows 64-bit times of several precisions, and tells text, lists and decimals its own way.
    Where any value would become another one, the frame keeps all of its types.
    """
    frame = frame.with_columns(
        exact
        for column in frame.select(pl.selectors.datetime(time_zone="*"))
        if (exact := unchanged(column, pl.Datetime("us", "UTC"))) is not None
    )
    known = of_rows(frame.schema, name)
    if known.route or not frame.columns:
        return frame
    from beaconframes.v1 import ENDPOINTS
    from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

    for endpoint in (*ENDPOINTS, *ENDPOINTS_V2):
        schema = endpoint.table.schema()
        if schema.names() == frame.columns:
            columns = [unchanged(frame[column], kind) for column, kind in schema.items()]
            if all(column is not None for column in columns):
                return pl.DataFrame(columns)
    return frame


def unchanged(column: pl.Series, kind: pl.DataType) -> pl.Series | None:
    """Return *column* as a *kind*, missing numbers as null; None if any value becomes another."""
    if column.dtype == kind:
        return column
    if column.dtype.is_float() and not kind.is_float():
        column = column.fill_nan(None)
    try:
        found = column.cast(kind)
        back = found.cast(column.dtype)
    except POLARS:
        return None
    return found if back.equals(column) else None


def chain_of(rows: pl.LazyFrame) -> Chain | None:
    """Return the chain that rows are of, if their times tell.

    It is the row with the least number that tells, wherever it stands, and not what is wrong with
    the rows: that is said where they are read.
    """
    try:
        schema = rows.collect_schema()
        units = (u for u in ("slot", "epoch") if u in schema and schema[u].is_integer())
        unit, time = next(units, None), schema.get("time")
        if unit is None or not isinstance(time, pl.Datetime) or time.time_zone is None:
            return None
        least = pl.col(unit).filter(pl.col("time").is_not_null()).min()
        first = rows.select(
            least.cast(pl.Int64, strict=False).alias("number"),
            moment=pl.col("time").filter(pl.col(unit) == least).min().dt.timestamp("us"),
        ).collect()
    except (OSError, *POLARS):
        return None
    number, moment = first.row(0)
    if number is None or number < 0:
        return None
    return next((c for c in (MAINNET, HOODI) if number == number_at(c, unit, moment)), None)


def number_at(chain: Chain, unit: str, moment: int) -> int:
    """Return the slot or epoch of *chain* at a *moment*, microseconds since 1970."""
    seconds = (moment // 1_000_000) - int(chain.genesis.timestamp())
    slot = seconds // chain.seconds_per_slot
    return slot if unit == "slot" else slot // chain.slots_per_epoch
