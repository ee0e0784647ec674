"""Parameters of V2 that select a range: epochs, rolling windows, times.

`EpochSelector` sends one request per epoch. The others send one request for the whole range.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.calendar import instants, resolve_span
from beaconframes.endpoint.parameter import (
    NATURAL,
    Batch,
    ExpectedRows,
    Fields,
    JsonSchema,
    ObjectNotFound,
    Parameter,
    RequestRefused,
    Role,
    View,
    describe_object,
)
from beaconframes.endpoint.set_members import is_natural
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead, End
    from beaconframes.schema import Column


@dataclass(frozen=True)
class EpochSelector(Parameter):
    """Epochs, one per request, always as a number. Default: the latest epoch."""

    column: Column
    _: KW_ONLY
    finalized: bool = False

    role = Role.RANGE
    args = ("since", "until")
    joins_batches = True

    @property
    def window(self) -> int | None:
        """Return 1: one epoch per request."""
        return 1

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def served_units(self, head: End, chain_head: ChainHead) -> range | None:
        """Return the epochs up to the latest one."""
        return range(head.latest("epoch", chain_head.chain, finalized=self.finalized) + 1)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each epoch of the range."""
        span = chain_head.span(
            values["since"], values["until"], "epoch", length=1, finalized=self.finalized
        )
        return [
            Batch({"epoch": epoch}, (ExpectedRows({self.column.name: [epoch]}),))
            for epoch in range(span.first, span.last + 1)
        ]

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the slots of the epoch."""
        length = view.chain.slots_per_epoch
        return fields["epoch"] * length, (fields["epoch"] + 1) * length - 1

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {"epoch": NATURAL}

    def required_fields(self) -> tuple[str, ...]:
        """Return the one field."""
        return ("epoch",)

    def find_numbers(self, fields: Fields, view: View) -> range:
        """Return the one epoch, or raise RequestRefused."""
        epoch = fields.get("epoch")
        if not is_natural(epoch):
            raise RequestRefused("epoch must be a whole number from 0 up")
        if epoch > view.head.latest("epoch", view.chain, finalized=self.finalized):
            raise ObjectNotFound(f"epoch {epoch} does not exist yet")
        return range(epoch, epoch + 1)


WINDOWS = {"24h": 1, "7d": 7, "30d": 30, "90d": 90, "all_time": None}
"""Rolling windows by name, in days."""


@dataclass(frozen=True)
class RollingWindow(Parameter):
    """A rolling window that ends at the latest epoch."""

    column: Column
    _: KW_ONLY
    finalized: bool = False
    all_time: bool = True

    role = Role.RANGE
    args = ("window",)

    @property
    def words(self) -> list[str]:
        """Return the names of the windows."""
        return [word for word, days in WINDOWS.items() if days is not None or self.all_time]

    def choices(self, argument: str) -> tuple[str, ...]:
        """Return the names of the windows."""
        return tuple(self.words)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the one window."""
        window = values["window"]
        if window not in self.words:
            raise UsageError(
                f"window={shorten(window)} is not one of {', '.join(map(repr, self.words))}",
                hint="Every window ends now. For another range, load single epochs",
            )
        return [Batch({"range": {"evaluation_window": window}})]

    def parse_epochs(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the first and the last epoch of the window, or raise RequestRefused."""
        interval = fields.get("range")
        window = interval.get("evaluation_window") if isinstance(interval, dict) else None
        if window not in self.words:
            raise RequestRefused(f"range.evaluation_window must be one of {', '.join(self.words)}")
        last = view.head.latest("epoch", view.chain, finalized=self.finalized)
        days = WINDOWS[window]
        return 0 if days is None else max(last - days * view.chain.epochs_per_day + 1, 0), last

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the slots of the window's epochs."""
        first, last = self.parse_epochs(fields, view)
        return view.chain.first_slot_of(first), view.chain.last_slot_of(last)

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        window = {"type": "string", "enum": self.words}
        return {"range": describe_object({"evaluation_window": window}, "evaluation_window")}

    def required_fields(self) -> tuple[str, ...]:
        """Return the one field."""
        return ("range",)

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the window's epochs."""
        return rows.filter(pl.col(self.column.name).is_between(*self.parse_epochs(fields, view)))


LAST_SECOND = 2**31 - 1
"""End of a range for the service, where a request states none."""

TIMESTAMPS = describe_object(
    {
        "timestamp": describe_object(
            {"start": {**NATURAL, "default": 0}, "end": {**NATURAL, "default": LAST_SECOND}}
        )
    }
)
"""The JSON Schema of a range of seconds."""


@dataclass(frozen=True)
class SlotTimeRange(Parameter):
    """The slots of a range of time, in one request. The service returns only finalized slots.

    The end is always sent, although it is optional: an open end would move between pages.
    ``column`` is the column of the slot, if rows have it.
    """

    column: Column | None = None

    role = Role.RANGE
    args = ("since", "until")

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the one range. Default: all slots until now."""
        for bound in (values["since"], values["until"]):
            if isinstance(bound, int) and not isinstance(bound, bool) and bound >= 0:
                chain_head.check_not_future("slot", bound)
        span = resolve_span(
            values["since"],
            values["until"],
            unit="slot",
            chain=chain_head.chain,
            latest=lambda: chain_head.latest("slot"),
            now=chain_head.now,
            default_until=lambda: current_slot(chain_head),
        )
        start, after = (chain_head.chain.time_of("slot", n) for n in (span.first, span.last + 1))
        seconds = {"start": int(start.timestamp()), "end": int(after.timestamp()) - 1}
        slots = range(span.first, span.last + 1)
        wanted = (
            ()
            if self.column is None
            else (ExpectedRows({self.column.name: slots}, required=False),)
        )
        return [Batch({"range": {"timestamp": seconds}}, wanted)]

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the first and the last slot that a request selects, or raise RequestRefused."""
        interval = fields.get("range") or {}
        bounds = interval.get("timestamp", {}) if isinstance(interval, dict) else None
        if not isinstance(bounds, dict) or set(interval) - {"timestamp"}:
            raise RequestRefused("range must have a timestamp, and nothing else")
        start, end = bounds.get("start", 0), bounds.get("end", LAST_SECOND)
        if not (is_natural(start) and is_natural(end) and start <= end <= LAST_SECOND):
            raise RequestRefused(
                "range.timestamp must have a start, and an end that is not before it"
            )
        genesis, length = int(view.chain.genesis.timestamp()), view.chain.seconds_per_slot
        last = view.head.latest("slot", view.chain, finalized=True)
        first = max(-((genesis - start) // length), 0)
        return first, max(min((end - genesis) // length, last), first - 1)

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {"range": TIMESTAMPS}

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the slots in the range."""
        return rows.filter(pl.col("slot").is_between(*self.slot_range(fields, view)))


def current_slot(chain_head: ChainHead) -> int:
    """Return the current slot: by the clock, or the latest slot of a chain without a clock."""
    if chain_head.is_live or chain_head.fixed is not None:
        return chain_head.chain.at("slot", chain_head.now())
    return chain_head.latest("slot")


@dataclass(frozen=True)
class TimestampRange(Parameter):
    """A range of times, both ends included. Default: all times."""

    column: Column

    role = Role.FILTER
    args = ("since", "until")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the range in seconds; no field for all times."""
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch()]
        start = 0 if since is None else resolve_second("since", since, last=False)
        end = LAST_SECOND if until is None else resolve_second("until", until, last=True)
        if start > end:
            raise UsageError(f"since ({since}) is after until ({until})", hint="Swap them")
        return [Batch({"range": {"timestamp": {"start": start, "end": end}}})]

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {"range": TIMESTAMPS}

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows in the range."""
        interval = fields.get("range", {"timestamp": {}})
        bounds = interval.get("timestamp") if isinstance(interval, dict) else None
        if not isinstance(bounds, dict):
            raise RequestRefused("range must have a timestamp")
        start, end = bounds.get("start", 0), bounds.get("end", LAST_SECOND)
        if not is_natural(start) or not is_natural(end) or start > end:
            raise RequestRefused("range.timestamp must have a start and an end")
        return rows.filter(pl.col(self.column.name).dt.epoch("s").is_between(start, end))


def resolve_second(argument: str, moment: Any, *, last: bool) -> int:
    """Return the first or the *last* second of a time argument."""

    def now() -> datetime:
        # The times of machines come from the real clock, also on a simulated chain.
        return datetime.now(UTC)

    return int(instants(argument, moment, now)[last].timestamp())
