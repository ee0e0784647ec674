"""Parameters of V1 for ``since`` and ``until``: one class for each way to write a range."""

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
    """At most 100 epochs a request, counted backwards: ``latest_epoch``, ``offset``, ``limit``."""

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
        """Return the fewest windows that cover the range; the last ``at_most`` epochs if none."""
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
        latest = number(fields, "latest_epoch", newest, 0, newest, "invalid latest epoch parameter")
        offset = number(fields, "offset", 0, 0, latest, "invalid offset parameter")
        limit = number(fields, "limit", self.at_most, 1, self.at_most, "invalid limit parameter")
        last = latest - offset
        return rows.filter(pl.col(self.column.name).is_between(last - limit + 1, last))

    def sort(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return the newest epoch first, then by validator."""
        return newest_first(rows, self.column)


@dataclass(frozen=True)
class Each(Parameter):
    """One epoch or day a request; ``wire`` is the path placeholder, which also takes ``tags``."""

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
        """Return 1: one number a request."""
        return 1

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each number of the range; the latest one if there is no range."""
        unit: Any = self.column.unit
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch({self.wire: "latest"})]
        span = chain_head.span(since, until, unit, length=1)
        return [
            Batch({self.wire: str(n)}, (self.expected(n, chain_head),))
            for n in range(span.first, span.last + 1)
        ]

    def expected(self, number: int, chain_head: ChainHead) -> ExpectedRows:
        """Return what one *number* selects."""
        return ExpectedRows({self.column.name: [number]})

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

    The service sets no largest range; ``at_most`` keeps one answer below what a client reads. It
    knows no end below ``default``, so that what lies beyond an earlier end is dropped here.
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
        """Return the range; the last 10,001 slots, as the service itself would, if none."""
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch()]
        span = chain_head.span(since, until, "slot", length=self.default + 1)
        windows = []
        for first in range(span.first, span.last + 1, self.at_most):
            last = min(first + self.at_most - 1, span.last)
            asked = {self.column.name: range(first, last + 1)}
            wanted = ExpectedRows(asked, required=False, trim=last < self.default)
            windows.append(Batch({"startSlot": str(first), "slot": str(last)}, (wanted,)))
        return windows

    def last(self, since: Moment | None, until: Moment | None, chain_head: ChainHead) -> int:
        """Return the last slot of the range."""
        return chain_head.span(since, until, "slot", length=self.default + 1).last

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the range."""
        newest = view.head.slot
        last = number(fields, "slot", newest, 0, None, "invalid slot provided")
        first = number(
            fields, "startSlot", max(last - self.default, 0), 0, None, "invalid startSlot provided"
        )
        last = max(last, self.default)
        if first > last:
            raise RequestRefused("start slot greater than end slot")
        return rows.filter(pl.col(self.column.name).is_between(first, last))


@dataclass(frozen=True)
class EpochTail(Parameter):
    """The epochs that end at ``epoch``: the service gives the last ``length`` up to it.

    It always gives that many, so what was not asked for is dropped here.
    """

    column: Column
    _: KW_ONLY
    length: int
    wire: str = "epoch"

    role = Role.RANGE
    args = ("since", "until")

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the wire fields that say which window it is."""
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
        """Return the fewest windows that cover the range, the last ``length`` epochs if none."""
        span = chain_head.span(values["since"], values["until"], "epoch", length=self.length)
        batches = []
        for last in range(span.last, span.first - 1, -self.length):
            first = max(last - self.length + 1, span.first)
            asked = ExpectedRows(
                {self.column.name: range(first, last + 1)}, required=False, trim=True
            )
            batches.append(Batch({self.wire: str(last)}, (asked,)))
        return batches

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the window."""
        newest = view.head.latest("epoch", view.chain)
        last = number(fields, self.wire, newest, 0, None, f"invalid {self.wire} parameter")
        return rows.filter(pl.col(self.column.name).is_between(last - self.length + 1, last))


@dataclass(frozen=True)
class RecentEpochs(Parameter):
    """A range within the last ``length`` epochs, which is all that the service still has."""

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
        """Return the one range; one that begins earlier is refused, since nobody can serve it."""
        latest = chain_head.latest("epoch")
        span = chain_head.span(values["since"], values["until"], "epoch", length=self.length)
        if span.first < latest - self.length + 1:
            raise UsageError(
                f"epoch {span.first} is no longer served: the service keeps the last "
                f"{self.length} epochs, {latest - self.length + 1} to {latest}",
                hint=f"Leave since out for all of them, or give since={-self.length} or later",
            )
        fields = {"startEpoch": str(span.first), "endEpoch": str(span.last)}
        asked = ExpectedRows({self.column.name: range(span.first, span.last + 1)})
        return [Batch(fields, (asked,))]

    def requested_units(
        self, values: Mapping[str, Any], chain_head: ChainHead
    ) -> list[ExpectedRows]:
        """Return the range, even if the service has it no more: it may be stored."""
        span = chain_head.span(values["since"], values["until"], "epoch", length=self.length)
        return [ExpectedRows({self.column.name: range(span.first, span.last + 1)})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the range."""
        latest = view.head.latest("epoch", view.chain)
        oldest = max(latest - self.length + 1, 0)
        error = "invalid end epoch parameter"
        last = number(fields, "endEpoch", latest, oldest, latest, error)
        error = "invalid start epoch parameter"
        first = number(fields, "startEpoch", oldest, oldest, last, error)
        return rows.filter(pl.col(self.column.name).is_between(first, last))

    def sort(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return the newest epoch first, then by validator."""
        return newest_first(rows, self.column)


def number(fields: Fields, name: str, default: int, low: int, high: int | None, error: str) -> int:
    """Return the query parameter *name* as a number from *low* to *high*, or refuse it."""
    if name not in fields:
        return default
    found = parse_number(fields[name])
    if found is None or found < low or (high is not None and found > high):
        raise RequestRefused(error)
    return found


def newest_first(rows: pl.LazyFrame, epoch: Column) -> pl.LazyFrame:
    """Return *rows* by epoch, the newest first, and then by validator."""
    return rows.sort(epoch.name, "validator_index", descending=[True, False])
