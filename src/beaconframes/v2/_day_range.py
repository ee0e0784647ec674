"""The days of the yield index, as a rolling window or as a range of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint import Batch, ExpectedRows, UnitRange
from beaconframes.endpoint.pagination import PAGE_SIZE
from beaconframes.endpoint.parameter import NATURAL, describe_object
from beaconframes.endpoint.positions_v2 import describe_choice
from beaconframes.endpoint.ranges_v2 import TIMESTAMPS, WINDOWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.endpoint import JsonSchema, Page
    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

BOUNDS = describe_object({"start": NATURAL, "end": NATURAL}, "start", "end")


@dataclass(frozen=True)
class DayRange(UnitRange):
    """Days, newest first, as many requests as they have pages. Default: the latest day.

    Every plan may request the windows that end now. Other ranges are for large plans, so they are
    requested only where they need fewer pages.
    """

    column: Column

    required_fields = ("range",)
    has_finish = True

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the one range."""
        units = self.requested_units(values, chain_head)
        if units is None:
            # The newest record is the first one of every window that has any.
            return [Batch({"range": {"evaluation_window": "all_time"}}, record_count=1)]
        days = units[0].values[self.column.name]
        first, last = min(days), max(days)
        newest = max(find_newest_day(chain_head), last)
        rows = (replace(units[0], trim=range(newest + 1)),)
        window = choose_window(newest + 1, first)
        by_window = Batch({"range": {"evaluation_window": window}}, rows, newest - first + 1)
        if count_pages(by_window.record_count) <= count_pages(len(days)):
            return [by_window]
        if chain_head.refuses_ranges:
            return [by_window]
        start, after = (chain_head.chain.time_of("day", n) for n in (first, last + 1))
        seconds = {"start": int(start.timestamp()), "end": int(after.timestamp()) - 1}
        return [Batch({"range": {"timestamp": seconds}}, rows, len(days), by_window)]

    def requested_units(
        self, values: Mapping[str, Any], chain_head: ChainHead
    ) -> list[ExpectedRows] | None:
        """Return the requested days; stored ones are found without the head of the chain."""
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return None
        span = chain_head.span(since, until, "day", length=1)
        return [ExpectedRows({self.column.name: range(span.first, span.last + 1)})]

    def is_complete(self, batch: Batch, page: Page) -> bool:
        """Return whether *page* has the oldest requested day, or without days the latest one."""
        if not batch.expected:
            return True
        oldest = min(batch.expected[0].values[self.column.name])
        records = msgspec.json.decode(page.data)
        (path,) = self.column.wire_paths
        days = [record.get(path) for record in records if isinstance(record, dict)]
        return any(isinstance(day, int) and day <= oldest for day in days)

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return *rows*, or the latest one if no day is requested."""
        is_latest = values["since"] is None and values["until"] is None
        return rows.tail(1) if is_latest else rows

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        window = {"type": "string", "enum": list(WINDOWS)}
        times = TIMESTAMPS["properties"]
        return {
            "range": describe_choice(
                [{"evaluation_window": window}, times, {"epoch": BOUNDS}, {"slot": BOUNDS}]
            )
        }


def find_newest_day(chain_head: ChainHead) -> int:
    """Return the latest day that has ended: by the clock, or that of a chain without a clock."""
    if chain_head.is_live or chain_head.fixed is not None:
        return chain_head.chain.at("day", chain_head.now()) - 1
    return chain_head.latest("day")


def choose_window(current: int, first: int) -> str:
    """Return the smallest window that has all of day *first*; it ends in the *current* day."""
    return next(
        name for name, days in WINDOWS.items() if days is None or current - first + 1 <= days
    )


def count_pages(records: int | None) -> int:
    """Return the number of pages of *records*."""
    return -(-(records or 1) // PAGE_SIZE)
