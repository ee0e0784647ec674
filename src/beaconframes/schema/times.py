"""Time columns: RFC 3339 text, Unix time, or derived from the row's epoch, slot or day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
import polars as pl

from beaconframes.schema.columns import Column
from beaconframes.schema.numbers import parse_whole

if TYPE_CHECKING:
    from beaconframes.calendar import Unit

UNIX = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
FIRST_SECOND = -62_135_596_800
LAST_SECOND = 253_402_300_799
"""The years 1 to 9999, which every library supports, in Unix seconds."""


class Timestamp(Column):
    """A time in UTC, RFC 3339 text on the wire."""

    dtype = pl.Datetime("us", "UTC")
    json_type = datetime
    unit = "UTC"

    def parse(self, value: Any) -> datetime | None:
        """Return the time; a number is Unix seconds."""
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        return msgspec.convert(value, datetime)

    def build(self, values: list[Any]) -> pl.Series:
        """Return times in UTC; a time without a zone is UTC."""
        # Through integers: ten times faster than from datetimes, and as exact.
        ticks = [None if v is None else (to_utc(v) - UNIX) // TICK for v in values]
        micros = pl.Series(self.name, ticks, dtype=pl.Int64)
        return micros.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")

    def encode(self) -> pl.Expr:
        """Return RFC 3339 text."""
        return pl.col(self.name).dt.strftime("%Y-%m-%dT%H:%M:%SZ")


class UnixTime(Column):
    """A time in UTC, Unix seconds on the wire."""

    dtype = pl.Datetime("us", "UTC")
    json_type = int
    unit = "UTC"
    tick: ClassVar[Literal["s", "ms"]] = "s"

    def parse(self, value: Any) -> int | None:
        """Return the number."""
        return parse_whole(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return times in UTC; raise ValueError outside the years 1 to 9999."""
        ticks = pl.Series(self.name, values, dtype=pl.Int64)
        factor = 1 if self.tick == "s" else 1000
        if not ticks.is_between(FIRST_SECOND * factor, LAST_SECOND * factor).all():
            raise ValueError(self.name)
        micros = ticks * (1_000_000 // factor)
        return micros.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")

    def encode(self) -> pl.Expr:
        """Return Unix time."""
        return pl.col(self.name).dt.epoch(self.tick)


class UnixMillis(UnixTime):
    """A time in UTC, Unix milliseconds on the wire."""

    tick = "ms"


@dataclass(eq=False)
class TimeOf(Timestamp):
    """The start of the row's epoch, slot or day, derived from that column.

    With ``wire`` the service sends it too: then only omitted values are derived.
    ``offset=1`` is the start of the next epoch, slot or day: the end of this one.
    """

    of: str = ""
    by: Unit = "epoch"
    offset: int = 0
    derived = True


@dataclass(eq=False)
class EpochTime(TimeOf):
    """The start of the row's epoch."""

    of: str = "epoch"


@dataclass(eq=False)
class SlotTime(TimeOf):
    """The start of the row's slot."""

    of: str = "slot"
    by: Unit = "slot"


@dataclass(eq=False)
class DayTime(TimeOf):
    """The start of the row's day."""

    of: str = "day"
    by: Unit = "day"


def to_utc(moment: datetime) -> datetime:
    """Return *moment* in UTC; without a zone it is taken as UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
