"""Parameters of V2 that select a range: epochs, rolling windows, times.

`EpochSelector` sends one request per epoch. The others send one request for the whole range.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from beaconframes.endpoint.identifiers import check_word
from beaconframes.endpoint.parameter import (
    NATURAL,
    Batch,
    ColumnParameter,
    ExpectedRows,
    JsonSchema,
    Parameter,
    Role,
    UnitRange,
    describe_object,
)
from beaconframes.errors import UsageError
from beaconframes.time_range import instants, resolve_span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column


@dataclass(frozen=True)
class EpochSelector(UnitRange):
    """Epochs, one per request, always as a number. Default: the latest epoch."""

    column: Column
    _: KW_ONLY
    finalized: bool = False

    required_fields = ("epoch",)
    field_schemas: ClassVar = {"epoch": NATURAL}
    window = 1

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each epoch of the range."""
        span = chain_head.span(
            values["since"], values["until"], "epoch", length=1, finalized=self.finalized
        )
        return [
            Batch({"epoch": epoch}, (ExpectedRows({self.column.name: [epoch]}),))
            for epoch in range(span.first, span.last + 1)
        ]


WINDOWS = {"24h": 1, "7d": 7, "30d": 30, "90d": 90, "all_time": None}
"""Rolling windows by name, in days."""


@dataclass(frozen=True)
class RollingWindow(Parameter):
    """A rolling window that ends at the latest finalized epoch."""

    column: Column
    _: KW_ONLY
    all_time: bool = True

    role = Role.RANGE
    args = ("window",)
    required_fields = ("range",)

    def choices(self, argument: str = "window") -> tuple[str, ...]:
        """Return the names of the windows."""
        return tuple(w for w, days in WINDOWS.items() if days is not None or self.all_time)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the one window."""
        hint = "Every window ends now. For another range, load single epochs"
        window = check_word(values["window"], self.choices(), "window", hint=hint)
        return [Batch({"range": {"evaluation_window": window}})]

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        window = {"type": "string", "enum": list(self.choices())}
        return {"range": describe_object({"evaluation_window": window}, "evaluation_window")}


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
class SlotTimeRange(ColumnParameter):
    """The slots of a range of time, in one request. The service returns only finalized slots.

    The end is always sent, although it is optional: an open end would move between pages.
    ``column`` is the column of the slot, if rows have it.
    """

    column: Column | None = None

    role = Role.RANGE
    args = ("since", "until")
    field_schemas: ClassVar = {"range": TIMESTAMPS}

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
            now=chain_head.read_present,
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
    field_schemas: ClassVar = {"range": TIMESTAMPS}

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


def resolve_second(argument: str, moment: Any, *, last: bool) -> int:
    """Return the first or the *last* second of a time argument."""

    def now() -> datetime:
        # The times of machines come from the real clock, also on a simulated chain.
        return datetime.now(UTC)

    return int(instants(argument, moment, now)[last].timestamp())
