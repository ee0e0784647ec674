"""Parameters of V1 for ``since`` and ``until``: one class for each form of a range."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from beaconframes.endpoint.identifiers import parse_number
from beaconframes.endpoint.parameter import (
    Batch,
    ExpectedRows,
    Fields,
    Parameter,
    RequestRefused,
    Role,
    View,
)
from beaconframes.endpoint.parameters_v1 import filter_number
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.calendar import Moment, Unit
    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column


@dataclass(frozen=True)
class EpochWindow(Parameter):
    """At most 100 epochs per request, counted back by ``latest_epoch``, ``offset``, ``limit``."""

    column: Column
    _: KW_ONLY
    at_most: int = 100
    finalized: bool = False

    role = Role.RANGE
    args = ("since", "until")
    fields: ClassVar = ("latest_epoch", "offset", "limit")

    @property
    def window(self) -> int | None:
        """Return how many epochs one request covers."""
        return self.at_most

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the fewest windows that cover the range. Default: the last ``at_most`` epochs."""
        span = chain_head.span(
            values["since"], values["until"], "epoch", length=self.at_most, finalized=self.finalized
        )
        windows = []
        for first in range(span.first, span.last + 1, self.at_most):
            last = min(first + self.at_most - 1, span.last)
            fields = {"latest_epoch": str(last), "limit": str(last - first + 1)}
            windows.append(
                Batch(fields, (ExpectedRows({self.column.name: range(first, last + 1)}),))
            )
        return windows

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the window."""
        newest = view.head.latest("epoch", view.chain, finalized=self.finalized)
        latest = parse_field(
            fields, "latest_epoch", newest, 0, newest, "invalid latest epoch parameter"
        )
        offset = parse_field(fields, "offset", 0, 0, latest, "invalid offset parameter")
        limit = parse_field(
            fields, "limit", self.at_most, 1, self.at_most, "invalid limit parameter"
        )
        last = latest - offset
        return rows.filter(pl.col(self.column.name).is_between(last - limit + 1, last))

    def sort(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return *rows* sorted by epoch, newest first, and then by validator."""
        return sort_newest_first(rows, self.column)


@dataclass(frozen=True)
class Each(Parameter):
    """One epoch or day per request; ``wire`` is the path placeholder, which also takes ``tags``."""

    column: Column
    _: KW_ONLY
    wire: str
    tags: tuple[str, ...] = ("latest",)
    error: str = "invalid request"
    refuses_future: bool = False

    role = Role.RANGE
    args = ("since", "until")

    @property
    def window(self) -> int | None:
        """Return 1: one number per request."""
        return 1

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each number of the range. Default: the latest number."""
        unit: Any = self.column.unit
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch({self.wire: "latest"})]
        span = chain_head.span(since, until, unit, length=1)
        return [
            Batch({self.wire: str(n)}, (self.expected(n, chain_head),))
            for n in range(span.first, span.last + 1)
        ]

    def expected(self, parse_field: int, chain_head: ChainHead) -> ExpectedRows:
        """Return the rows that one *number* selects."""
        return ExpectedRows({self.column.name: [parse_field]})

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the one number."""
        text = fields[self.wire]
        unit: Any = self.column.unit
        if self.refuses_future and (parse_number(text) or 0) > view.head.latest(unit, view.chain):
            raise RequestRefused(self.error)
        return filter_number(self.column, rows, text, self.tags, view, self.error)


@dataclass(frozen=True)
class SlotWindow(Parameter):
    """A range of slots, both ends included: ``startSlot`` and ``slot``.

    The service has no largest range; ``at_most`` limits the size of one response. The service
    raises an end below ``default`` to ``default``; rows after the requested end are dropped here.
    """

    column: Column
    _: KW_ONLY
    default: int = 10_000
    at_most: int = 500_000

    role = Role.RANGE
    args = ("since", "until")
    unit: Unit = "slot"

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    @property
    def window(self) -> int | None:
        """Return how many slots one request covers."""
        return self.at_most

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return windows of the range. Default: none; the service returns the last 10,001 slots."""
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch()]
        span = chain_head.span(since, until, "slot", length=self.default + 1)
        windows = []
        for first in range(span.first, span.last + 1, self.at_most):
            last = min(first + self.at_most - 1, span.last)
            slots = {self.column.name: range(first, last + 1)}
            wanted = ExpectedRows(slots, required=False, trim=last < self.default)
            windows.append(Batch({"startSlot": str(first), "slot": str(last)}, (wanted,)))
        return windows

    def last(self, since: Moment | None, until: Moment | None, chain_head: ChainHead) -> int:
        """Return the last slot of the range."""
        return chain_head.span(since, until, "slot", length=self.default + 1).last

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the range."""
        newest = view.head.slot
        last = parse_field(fields, "slot", newest, 0, None, "invalid slot provided")
        first = parse_field(
            fields, "startSlot", max(last - self.default, 0), 0, None, "invalid startSlot provided"
        )
        last = max(last, self.default)
        if first > last:
            raise RequestRefused("start slot greater than end slot")
        return rows.filter(pl.col(self.column.name).is_between(first, last))


@dataclass(frozen=True)
class EpochTail(Parameter):
    """The last ``length`` epochs up to ``epoch``.

    The service always returns all of them; rows outside of the requested range are dropped here.
    """

    column: Column
    _: KW_ONLY
    length: int
    wire: str = "epoch"

    role = Role.RANGE
    args = ("since", "until")

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the wire field that sets the window."""
        return (self.wire,)

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    @property
    def window(self) -> int | None:
        """Return how many epochs one request covers."""
        return self.length

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the fewest windows that cover the range. Default: the last ``length`` epochs."""
        span = chain_head.span(values["since"], values["until"], "epoch", length=self.length)
        batches = []
        for last in range(span.last, span.first - 1, -self.length):
            first = max(last - self.length + 1, span.first)
            wanted = ExpectedRows(
                {self.column.name: range(first, last + 1)}, required=False, trim=True
            )
            batches.append(Batch({self.wire: str(last)}, (wanted,)))
        return batches

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the window."""
        newest = view.head.latest("epoch", view.chain)
        last = parse_field(fields, self.wire, newest, 0, None, f"invalid {self.wire} parameter")
        return rows.filter(pl.col(self.column.name).is_between(last - self.length + 1, last))


@dataclass(frozen=True)
class RecentEpochs(Parameter):
    """A range within the last ``length`` epochs; the service stores no older ones."""

    column: Column
    _: KW_ONLY
    length: int = 100

    role = Role.RANGE
    args = ("since", "until")
    fields: ClassVar = ("startEpoch", "endEpoch")

    @property
    def window(self) -> int | None:
        """Return how many epochs one request covers."""
        return self.length

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the one range; raise UsageError if it starts before the stored epochs."""
        latest = chain_head.latest("epoch")
        span = chain_head.span(values["since"], values["until"], "epoch", length=self.length)
        if span.first < latest - self.length + 1:
            raise UsageError(
                f"epoch {span.first} is no longer available: the service has only the last "
                f"{self.length} epochs, {latest - self.length + 1} to {latest}",
                hint=f"Omit since to load all of them, or give since={-self.length} or later",
            )
        fields = {"startEpoch": str(span.first), "endEpoch": str(span.last)}
        wanted = ExpectedRows({self.column.name: range(span.first, span.last + 1)})
        return [Batch(fields, (wanted,))]

    def requested_units(
        self, values: Mapping[str, Any], chain_head: ChainHead
    ) -> list[ExpectedRows]:
        """Return the range, even if the service no longer has it: it may be in the store."""
        span = chain_head.span(values["since"], values["until"], "epoch", length=self.length)
        return [ExpectedRows({self.column.name: range(span.first, span.last + 1)})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the range."""
        latest = view.head.latest("epoch", view.chain)
        oldest = max(latest - self.length + 1, 0)
        error = "invalid end epoch parameter"
        last = parse_field(fields, "endEpoch", latest, oldest, latest, error)
        error = "invalid start epoch parameter"
        first = parse_field(fields, "startEpoch", oldest, oldest, last, error)
        return rows.filter(pl.col(self.column.name).is_between(first, last))

    def sort(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return *rows* sorted by epoch, newest first, and then by validator."""
        return sort_newest_first(rows, self.column)


def parse_field(
    fields: Fields, name: str, default: int, low: int, high: int | None, error: str
) -> int:
    """Return the field *name* as a number from *low* to *high*, or raise RequestRefused."""
    if name not in fields:
        return default
    number = parse_number(fields[name])
    if number is None or number < low or (high is not None and number > high):
        raise RequestRefused(error)
    return number


def sort_newest_first(rows: pl.LazyFrame, epoch: Column) -> pl.LazyFrame:
    """Return *rows* sorted by epoch, newest first, and then by validator."""
    return rows.sort(epoch.name, "validator_index", descending=[True, False])
