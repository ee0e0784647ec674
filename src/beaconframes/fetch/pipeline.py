"""The pipeline of a load: stored rows, requests, pages, rows, checks, result.

`Pipeline.load_rows` has these steps in this order. Stored rows and rows of this load share
one interface, `RowStore`; without a store, `MemoryRows` is an empty one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from beaconframes.errors import DatasetError, ResponseError, ServiceError, UsageError
from beaconframes.fetch.completeness import (
    Requirement,
    drop_duplicates,
    drop_received,
    drop_unrequested,
    find_missing,
)
from beaconframes.fetch.dataset_gaps import DatasetGaps
from beaconframes.fetch.gap_reasons import GapReasons, Gaps, select_returnable
from beaconframes.fetch.refetch import refetch_arguments
from beaconframes.fetch.served_range import ServedRange
from beaconframes.load_context import LOAD
from beaconframes.memory import trim_heap
from beaconframes.schema.table import sort_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.endpoint import Call, ChainHead, Endpoint
    from beaconframes.fetch.gap_reasons import ValidatorSource
    from beaconframes.fetch.source import FetchedRows, Source

MAX_RESTARTS = 10
"""Restarts of a load before it fails because other processes keep removing stored rows."""

MANY_ROWS = 200_000
"""Rows whose responses have left so much freed memory that it is returned to the system."""

LARGE_PIECE = 5_000
"""Rows that are stored in narrow integers until all rows are sorted: most amounts are small."""


@dataclass
class LoadResult:
    """The rows of a load, the gaps in them, and the warnings about them."""

    rows: pl.DataFrame | pl.LazyFrame
    gaps: Gaps
    required: Requirement
    warnings: list[Warning] = field(default_factory=list)
    is_sorted: bool = False
    """Whether the rows are known to be sorted by key, without duplicates."""

    def to_frame(self, endpoint: Endpoint, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return the rows sorted by key, each once, as one call would have returned them."""
        rows = self.rows
        if not isinstance(rows, pl.DataFrame):
            rows = collect(endpoint, rows, is_sorted=self.is_sorted)
        key = endpoint.table.key()
        if key and not rows[key[0]].null_count() and rows[key[0]].is_sorted():
            # Queries in polars use it: groups of a sorted column, for example, need no hash table.
            rows = rows.set_sorted(key[0])
        for parameter in endpoint.all_parameters:
            if parameter.has_finish:
                rows = parameter.finish(rows, values)
        return rows

    def to_lazy(self, endpoint: Endpoint, values: Mapping[str, Any]) -> pl.LazyFrame:
        """Return the rows as a LazyFrame; stored rows are read only when it is collected."""
        has_finish = any(parameter.has_finish for parameter in endpoint.all_parameters)
        if isinstance(self.rows, pl.DataFrame) or has_finish:
            return self.to_frame(endpoint, values).lazy()
        return self.rows


class RowStore(Protocol):
    """The rows of one load: those that are stored, and those that are fetched for it."""

    values: Mapping[str, Any]
    """The arguments of the load."""

    def start(self) -> None:
        """Start or restart the load: drop the rows fetched so far."""

    def missing_arguments(self) -> list[Mapping[str, Any]]:
        """Return the loader arguments that fetch what is not stored."""

    def refetch_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return all arguments of a load, with these *arguments* instead of the requested ones."""

    def put(self, fetched: FetchedRows) -> None:
        """Add fetched rows; store the final ones."""

    def keys(self) -> pl.DataFrame:
        """Return the keys of all rows so far."""

    def requirement(self, calls: Sequence[Call]) -> Requirement:
        """Return the rows that must exist, after *calls*."""

    def find_missing(self, calls: Sequence[Call]) -> pl.DataFrame:
        """Return the requested rows that are missing after *calls*, one row per gap."""

    def only_requested(self, missing: pl.DataFrame) -> pl.DataFrame:
        """Return the part of *missing* that this load has requested."""

    def put_absent(self, gaps: Gaps) -> None:
        """Store that the rows of *gaps* do not exist, where that is certain."""

    def result(self, gaps: Gaps, required: Requirement, warnings: list[Warning]) -> LoadResult:
        """Return the rows of the load."""


@dataclass
class FetchSummary:
    """What a load has fetched so far, and the units that the service accepts."""

    served: ServedRange
    calls: list[Call] = field(default_factory=list)
    not_found: list[Call] = field(default_factory=list)
    """The calls whose subject the service does not know."""
    warnings: list[Warning] = field(default_factory=list)
    partial: list[FetchedRows] = field(default_factory=list)
    """The parts from a dataset that states what it does not cover."""


@dataclass
class Pipeline:
    """One load: *rows* of *endpoint*, those that are not stored from *source*."""

    source: Source
    endpoint: Endpoint
    rows: RowStore
    chain_head: ChainHead
    validators: ValidatorSource

    def load_stored(self, *, is_lazy: bool = False) -> LoadResult:
        """Return the requested rows, stored ones included; start again if some were removed.

        Stored rows are read immediately, unless the result *is_lazy*: later, another process may
        have deleted their files.

        Raises
        ------
        DatasetError
            The store is damaged, or other processes keep removing rows from it.
        """
        for _ in range(MAX_RESTARTS):
            # Rows were removed, by another process or as damaged: now they are requested.
            with suppress(DatasetError):
                return self._load_once(is_lazy=is_lazy)
        return self._load_once(is_lazy=is_lazy)

    def _load_once(self, *, is_lazy: bool) -> LoadResult:
        self.rows.start()
        result = self.load_rows()
        if not is_lazy:
            result.rows = collect(self.endpoint, result.rows, is_sorted=result.is_sorted)
        return result

    def load_rows(self) -> LoadResult:
        """Return the requested rows, or raise DatasetError for damage in the store."""
        fetched = FetchSummary(ServedRange(self.endpoint, self.chain_head, self.rows.values))
        served = fetched.served
        arguments = self.rows.missing_arguments()
        if arguments:
            for part in self.source.fetch_rows(self.endpoint, arguments, self.chain_head, served):
                fetched.calls += part.calls
                fetched.not_found += part.not_found
                fetched.warnings += part.warnings
                if part.uncovered or not part.has_all_validators:
                    # Without its rows, which would stay in memory until the end of the load.
                    fetched.partial.append(part._replace(rows=part.rows.clear()))
                self.rows.put(part)
        missing = self._find_missing(fetched)
        gaps, required = Gaps(missing, missing), Requirement()
        if not missing.is_empty():
            required = self.rows.requirement(fetched.calls)
            gaps = self._fill_gaps(missing, required, fetched, may_refetch=bool(arguments))
        elif fetched.partial:
            gaps = DatasetGaps(self.endpoint, fetched.partial).add_unrequired(gaps)
        result = self.rows.result(gaps, required, fetched.warnings)
        if served.is_narrowed:
            result.rows = served.clip_rows(result.rows)
            result.warnings += served.warnings()
        return result

    def _find_missing(self, fetched: FetchSummary) -> pl.DataFrame:
        """Return the requested rows that are missing, without units that the service refused."""
        missing = self.rows.find_missing(fetched.calls)
        return fetched.served.clip_gaps(missing) if fetched.served.is_narrowed else missing

    def _fill_gaps(
        self,
        missing: pl.DataFrame,
        required: Requirement,
        fetched: FetchSummary,
        *,
        may_refetch: bool,
    ) -> Gaps:
        """Request the *missing* rows once more; return those still missing, with the reasons."""
        reasons = GapReasons(
            self.endpoint, self.validators, self.chain_head, required, fetched.not_found
        )
        gaps = self._explain_gaps(missing, reasons, fetched)
        if not may_refetch:
            return gaps
        returnable = self.rows.only_requested(select_returnable(self.endpoint, gaps.missing))
        batches = refetch_arguments(self.endpoint, fetched.calls, fetched.not_found, returnable)
        has_new = False
        for batch in batches:
            if not batch:
                continue
            if not self._refetch(batch, fetched.served):
                break
            has_new = True
        if has_new:
            missing = self._find_missing(fetched)
            gaps = self._explain_gaps(missing, reasons, fetched)
        self.rows.put_absent(gaps)
        return gaps

    def _explain_gaps(
        self, missing: pl.DataFrame, reasons: GapReasons, fetched: FetchSummary
    ) -> Gaps:
        gaps = reasons.find(missing, self.rows.keys)
        if not fetched.partial:
            return gaps
        dataset_gaps = DatasetGaps(self.endpoint, fetched.partial)
        return gaps._replace(missing=dataset_gaps.mark(gaps.missing))

    def _refetch(self, arguments: Sequence[Mapping[str, Any]], served: ServedRange) -> bool:
        """Request missing rows once more; return whether any was received."""
        full = [self.rows.refetch_arguments(values) for values in arguments]
        has_new = False
        try:
            for part in self.source.fetch_rows(self.endpoint, full, self.chain_head, served):
                requested = drop_unrequested(self.endpoint, part.calls, part.rows)
                new = drop_received(self.endpoint.table.key(), requested, self.rows.keys())
                has_new |= not new.is_empty()
                self.rows.put(part._replace(rows=new))
        except (UsageError, ServiceError, ResponseError):
            # A failed refetch must not discard the rows received before. Gaps are reported later.
            return False
        return has_new


class MemoryRows:
    """The rows of a load without a store."""

    def __init__(
        self, endpoint: Endpoint, values: Mapping[str, Any], chain_head: ChainHead
    ) -> None:
        self._endpoint, self.values, self._chain_head = endpoint, values, chain_head
        self._frames: list[pl.DataFrame] = []
        self._wide_schema: pl.Schema | None = None
        """The schema of the rows, if some of them are stored in narrow integers."""
        self._is_merged = False

    def start(self) -> None:
        """Drop all rows."""
        self._frames, self._wide_schema, self._is_merged = [], None, False

    def missing_arguments(self) -> list[Mapping[str, Any]]:
        """Return the requested arguments: nothing is stored."""
        return [self.values]

    def refetch_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the requested arguments with *arguments* instead."""
        return {**self.values, **arguments}

    def put(self, fetched: FetchedRows) -> None:
        """Add fetched rows; those that wait for others take less memory in narrow integers."""
        if self._frames:
            rows, table = self._frames[-1], self._endpoint.table
            # Frames with inferred columns may differ in type, which must stay an error.
            if rows.height >= LARGE_PIECE and not (table.keeps_every_field or table.is_ranking):
                self._wide_schema, self._frames[-1] = rows.schema, narrow_integers(rows)
        self._frames.append(drop_unrequested(self._endpoint, fetched.calls, fetched.rows))

    def keys(self) -> pl.DataFrame:
        """Return the keys of all rows so far."""
        return self._merge().select(self._endpoint.table.key())

    def requirement(self, calls: Sequence[Call]) -> Requirement:
        """Return the rows that must exist, after *calls*."""
        return Requirement.of_calls(self._endpoint, calls)

    def find_missing(self, calls: Sequence[Call]) -> pl.DataFrame:
        """Return the rows that *calls* requested and that are missing, one row per gap."""
        required = Requirement.of_calls(self._endpoint, calls)
        return find_missing(self._endpoint, required, self._merge(), self._chain_head)

    def only_requested(self, missing: pl.DataFrame) -> pl.DataFrame:
        """Return *missing*: all of it was requested."""
        return missing

    def put_absent(self, gaps: Gaps) -> None:
        """Store nothing."""

    def result(self, gaps: Gaps, required: Requirement, warnings: list[Warning]) -> LoadResult:
        """Return the rows, sorted by key."""
        return LoadResult(self._merge(), gaps, required, warnings, is_sorted=True)

    def _merge(self) -> pl.DataFrame:
        """Return all rows sorted by key, each once, in the order that the context asks for."""
        if len(self._frames) != 1 or not self._is_merged:
            wide_schema = self._wide_schema
            # A frame without rows has no inferred columns.
            with_rows = [frame for frame in self._frames if not frame.is_empty()]
            self._frames = with_rows or self._frames[:1] or [self._endpoint.table.empty()]
            if wide_schema is not None:
                # One wide frame would widen all rows before they are sorted.
                self._frames = [narrow_integers(frame) for frame in self._frames]
            rows = pl.concat(
                self._frames, how="vertical" if wide_schema is None else "vertical_relaxed"
            )
            # Released before the rows are sorted, which needs another copy.
            self._frames, self._wide_schema = [], None
            if rows.height >= MANY_ROWS:
                trim_heap()
            first = LOAD.get().sort_first
            if wide_schema is not None:
                rows = sort_rows(rows, self._endpoint.table.key(first), wide_schema)
            self._frames, self._is_merged = [drop_duplicates(self._endpoint, rows, first)], True
        return self._frames[0]


def narrow_integers(rows: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* with each column of integers in the smallest type that holds its values."""
    integers = [column.shrink_dtype() for column in rows.select(pl.col(pl.Int64)).get_columns()]
    return rows.with_columns(integers)


def collect(
    endpoint: Endpoint, rows: pl.DataFrame | pl.LazyFrame, *, is_sorted: bool
) -> pl.DataFrame:
    """Read *rows* from the store; return them sorted by key, each once.

    Raises
    ------
    DatasetError
        A file cannot be read.
    """
    try:
        frame = rows.lazy().collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DatasetError(
            f"the store cannot be read: {str(error).splitlines()[0]}",
            hint="Run bf.store().verify(), and bf.store().mend()",
        ) from error
    return frame if is_sorted else endpoint.table.arrange(frame)
