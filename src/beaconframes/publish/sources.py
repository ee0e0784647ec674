"""What can be exported: frames, lazy frames, and streams of them, as a source of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.calendar import HOODI, MAINNET, Chain
from beaconframes.errors import DatasetError, UsageError
from beaconframes.frames import to_polars
from beaconframes.publish.tables import Described, of_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BATCH = 65_536
"""Rows that are taken at a time."""
PAGES = BATCH
"""Rows of small frames that are put together."""


@dataclass
class Source:
    """Rows of one table, and what is known of them.

    ``grows`` says that what is there already is not in the rows: they only add to it. ``facts`` is
    where the data is from, and ``request`` what was asked for; ``gaps`` names what did not come,
    and is known when all rows are taken.
    """

    table: Described
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
    executor: Any = None
    """What takes over the loading, if anything does."""

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
        schema = frame.collect_schema()
        return Source(of_rows(schema, name), lambda: batches(frame), chain_of(frame.head(1)))
    if not isinstance(frame, pl.DataFrame):
        try:
            frame = to_polars(frame)
        except TypeError:
            raise UsageError(
                f"{type(frame).__name__} cannot be exported",
                hint="Give a frame, a loader and its arguments, a Dataset or bf.store()",
            ) from None
        frame = as_loaded(frame, name)
    rows: pl.DataFrame = frame
    table = of_rows(rows.schema, name)
    return Source(table, lambda: iter(rows.iter_slices(BATCH)), chain_of(rows.lazy().head(1)))


def is_frame(what: object) -> bool:
    """Tell whether *what* is a frame of some kind."""
    try:
        nw.from_native(what)  # type: ignore[call-overload]
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

    return Source(of_rows(schema, name), every, chain_of(first.lazy().head(1)))


def batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of a lazy frame, a batch at a time."""
    try:
        for batch in rows.collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True):
            yield from batch.iter_slices(BATCH)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DatasetError(
            f"the rows cannot be read: {str(error).splitlines()[0]}",
            hint="Collect the lazy frame to see what is wrong with it",
        ) from error


def as_loaded(frame: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """Return what came from another library with the types that a loader gives, where it can be.

    Pandas knows 64-bit times of several precisions, and tells text, lists and decimals its own way.
    """
    known = of_rows(frame.schema, name)
    if known.route or not frame.columns:
        return frame
    from beaconframes.v1 import ENDPOINTS
    from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

    for endpoint in (*ENDPOINTS, *ENDPOINTS_V2):
        schema = endpoint.table.schema()
        if schema.names() == frame.columns:
            try:
                return frame.cast(schema)
            except pl.exceptions.PolarsError:
                continue
    return frame


def chain_of(rows: pl.LazyFrame) -> Chain | None:
    """Return the chain that rows are of, if their times tell."""
    schema = rows.collect_schema()
    unit = next((u for u in ("epoch", "slot") if u in schema), None)
    if unit is None or not isinstance(schema.get("time"), pl.Datetime):
        return None
    first = rows.select(unit, "time").drop_nulls().collect()
    if first.is_empty():
        return None
    number, moment = first.row(0)
    known = (MAINNET, HOODI)
    return next((c for c in known if c.time_of(unit, number) == moment), None)  # type: ignore[arg-type]
