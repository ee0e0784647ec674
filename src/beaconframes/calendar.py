"""Chains and their calendar: slot, epoch, day, week and sync period beside UTC time.

Every unit is a whole number of slots counted from genesis, so all arithmetic is on integers. A
"day" of a chain is 86,400 seconds from genesis, not a UTC day: mainnet's days begin at 12:00:23.
"""

from __future__ import annotations

import functools
import operator
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from beaconframes.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

Unit: TypeAlias = Literal["slot", "epoch", "day", "week", "period"]
Moment: TypeAlias = int | str | date | datetime | timedelta

_TICK = timedelta(microseconds=1)
_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9].*")
_AGO = re.compile(r"([0-9]{1,9})([wdhm])")
_AGO_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}
_SAY_WHEN = (
    'Give a number (negative: back from the latest), a date such as "2026-10-01", a datetime, '
    '"latest", or how long ago: "30d", "12h", timedelta(days=30)'
)


@dataclass(frozen=True)
class Chain:
    """Hold the clock of a chain: when it began and how long its units are.

    ``MAINNET`` and ``HOODI`` are known by name; any other is made by hand::

        Chain("devnet", genesis=datetime(2026, 1, 1, tzinfo=UTC), seconds_per_slot=6)
    """

    name: str
    genesis: datetime
    seconds_per_slot: int = 12
    slots_per_epoch: int = 32
    epochs_per_sync_period: int = 256
    sync_committee_size: int = 512
    first_sync_epoch: int = 0

    def __post_init__(self) -> None:
        facts: dict[str, Any] = dict(vars(self))
        name, genesis = facts.pop("name"), facts.pop("genesis")
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"a chain needs a name, not {_show(name)}")
        if not isinstance(genesis, datetime) or genesis.utcoffset() is None:
            raise ConfigError(
                f"genesis of chain {name!r} is {_show(genesis)}, which has no time zone",
                hint="Give an aware datetime, such as datetime(2026, 1, 1, tzinfo=UTC)",
            )
        # Adding to an aware datetime of another zone would follow that zone's summer time.
        object.__setattr__(self, "genesis", genesis.astimezone(UTC))
        for fact, value in facts.items():
            least = 0 if fact == "first_sync_epoch" else 1
            if type(value) is not int or value < least:
                raise ConfigError(
                    f"{fact} of chain {name!r} is {_show(value)}: it must be an int from {least} up"
                )
        if self.epochs_per_day < 1:
            raise ConfigError(f"an epoch of chain {name!r} is longer than a day")

    @property
    def epochs_per_day(self) -> int:
        """Return how many epochs make a day: 225 on mainnet."""
        return 86_400 // self.slots_per_epoch // self.seconds_per_slot

    @property
    def epochs_per_week(self) -> int:
        """Return how many epochs make a week: 1575 on mainnet."""
        return 7 * self.epochs_per_day

    def time_of(self, unit: Unit, number: int) -> datetime:
        """Return the instant, in UTC, at which a slot, epoch, day, week or sync period begins."""
        try:
            return self.genesis + _whole(unit, number) * _length(self, unit)
        except OverflowError:
            raise UsageError(f"{unit} {_show(number)} is beyond the year 9999") from None

    def at(self, unit: Unit, moment: datetime) -> int:
        """Return the slot, epoch, day, week or sync period that contains the instant.

        A datetime without a time zone is UTC.
        """
        instant = _utc("moment", moment)
        if instant < self.genesis:
            raise _before_genesis(self, "moment", moment)
        return (instant - self.genesis) // _length(self, unit)

    def time_expr(self, unit: Unit, numbers: pl.Expr) -> pl.Expr:
        """Return the expression for the instants at which the numbered units begin.

        Its type is ``Datetime("us", "UTC")``; null stays null.
        """
        import polars as pl

        genesis = (self.genesis - _UNIX) // _TICK
        length = _length(self, unit) // _TICK
        return (numbers.cast(pl.Int64) * length + genesis).cast(pl.Datetime("us", "UTC"))


MAINNET = Chain(
    "mainnet", genesis=datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC), first_sync_epoch=74_240
)
HOODI = Chain("hoodi", genesis=datetime(2025, 3, 17, 12, 10, 0, tzinfo=UTC))
_KNOWN = {chain.name: chain for chain in (MAINNET, HOODI)}


def get_chain(chain: str | Chain) -> Chain:
    """Return the chain of that name; a ``Chain`` is returned as it is."""
    if isinstance(chain, Chain):
        return chain
    if known := _KNOWN.get(str(chain).lower()):
        return known
    raise ConfigError(
        f"unknown chain {_show(chain)}",
        hint=f"Known: {', '.join(_KNOWN)}. For another one pass "
        "Chain(name, genesis=datetime(..., tzinfo=UTC), seconds_per_slot=..., slots_per_epoch=...)",
    )


@dataclass(frozen=True)
class Span:
    """Hold an inclusive range of slots, epochs, days, weeks or sync periods; never empty."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise UsageError(f"{self.first} to {self.last} is no range")

    def __len__(self) -> int:
        return self.last - self.first + 1


def resolve_span(
    since: Moment | None,
    until: Moment | None,
    *,
    unit: Unit,
    chain: Chain,
    latest: Callable[[], int],
    now: Callable[[], datetime],
    default_since: Callable[[], Moment] | None = None,
    default_until: Callable[[], Moment] | None = None,
) -> Span:
    """Return the units that begin between *since* and *until*, both inclusive.

    An int is the unit itself, a negative int counts back from the latest (-1 is the latest). A
    datetime is an instant (UTC when it has no time zone), a bare date the whole UTC day. ``"30d"``,
    ``"12h"``, ``"45m"``, ``"2w"`` and a timedelta mean that long before now. ``"latest"`` is the
    latest. None takes the default; without one *since* is the beginning and *until* the latest.

    *latest* and *now* are called at most once, and only when they are needed.
    """
    if since is None:
        since = default_since() if default_since else 0
    if until is None:
        until = default_until() if default_until else "latest"
    # Read once: were the head to move in between, since=-250 would not be 250 units.
    latest, now = functools.cache(latest), functools.cache(now)
    first = _bound("since", since, unit, chain, latest, now)
    last = _bound("until", until, unit, chain, latest, now)
    if first > last:
        raise UsageError(
            f"since={_show(since)}, until={_show(until)} holds no {unit}: "
            f"it would begin with {unit} {first} and end with {unit} {last}",
            hint="Put since before until, far enough for one to begin in between",
        )
    return Span(first, last)


def _bound(
    argument: Literal["since", "until"],
    value: Any,
    unit: Unit,
    chain: Chain,
    latest: Callable[[], int],
    now: Callable[[], datetime],
) -> int:
    """Return the first unit of *since*, or the last of *until*."""
    if (number := _integer(value)) is not None:
        if number < 0:
            number += latest() + 1
        if number < 0:
            raise UsageError(
                f"{argument}={_show(value)} is before {chain.name} began",
                hint=f"The latest {unit} is {latest()}: {-latest() - 1} reaches {unit} 0",
            )
        chain.time_of(unit, number)
        return number
    if isinstance(value, str) and value == "latest":
        return latest()
    start, end = instants(argument, value, now)
    if end < chain.genesis:
        raise _before_genesis(chain, argument, value)
    if argument == "until":
        return chain.at(unit, end)
    # Rounded up: the unit that is under way at `start` began before it.
    return max(0, -((chain.genesis - start) // _length(chain, unit)))


def instants(argument: str, value: Any, now: Callable[[], datetime]) -> tuple[datetime, datetime]:
    """Return the first and the last instant that a text, date, datetime or timedelta means."""
    try:
        meant = _read(argument, value) if isinstance(value, str) else value
        if isinstance(meant, timedelta) and meant >= timedelta(0):
            instant = _utc("now", now()) - meant
            return instant, instant
        if isinstance(meant, date) and not isinstance(meant, datetime):
            midnight = datetime.combine(meant, time(), UTC)
            return midnight, midnight + (timedelta(days=1) - _TICK)
        instant = _utc(argument, meant)
    except OverflowError:
        raise UsageError(f"{argument}={_show(value)} is beyond the calendar") from None
    return instant, instant


def _read(argument: str, text: str) -> date | datetime | timedelta:
    """Return what a text means: how long ago, a day or an instant."""
    if ago := _AGO.fullmatch(text):
        return timedelta(**{_AGO_UNITS[ago[2]]: int(ago[1])})
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        # Checked first, because fromisoformat also takes forms such as 20261001 and 2026-W40.
        if _INSTANT.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise UsageError(f"{argument}={_show(text)} is no moment", hint=_SAY_WHEN)


def _utc(argument: str, moment: Any) -> datetime:
    """Return the instant in UTC; without a time zone it is UTC already."""
    # pandas' NaT calls itself a datetime, and is not equal to itself.
    if not isinstance(moment, datetime) or moment != moment:  # noqa: PLR0124
        raise UsageError(f"{argument}={_show(moment)} is no moment", hint=_SAY_WHEN)
    try:
        return moment.astimezone(UTC) if moment.utcoffset() else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(f"{argument}={_show(moment)} is beyond the calendar") from None


def _before_genesis(chain: Chain, argument: str, value: object) -> UsageError:
    return UsageError(
        f"{argument}={_show(value)} is before {chain.name} began",
        hint=f"Its genesis was at {chain.genesis:%Y-%m-%dT%H:%M:%SZ}",
    )


def _slots(chain: Chain, unit: Unit) -> int:
    epochs = {
        "epoch": 1,
        "day": chain.epochs_per_day,
        "week": chain.epochs_per_week,
        "period": chain.epochs_per_sync_period,
    }
    if unit == "slot":
        return 1
    if unit not in epochs:
        raise UsageError(f"{_show(unit)} is no unit", hint=f"Units: {', '.join(get_args(Unit))}")
    return epochs[unit] * chain.slots_per_epoch


def _length(chain: Chain, unit: Unit) -> timedelta:
    return timedelta(seconds=chain.seconds_per_slot * _slots(chain, unit))


def _integer(value: Any) -> int | None:
    """Return a whole number, numpy's included, as an int; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _whole(unit: str, value: Any) -> int:
    number = _integer(value)
    if number is None or number < 0:
        raise UsageError(f"{unit} {_show(value)} is no whole number from 0 up")
    return number


def _show(value: object) -> str:
    """Return the value as it looks in code, cut to a length that fits into a message."""
    try:
        text = repr(value)
    except ValueError:  # an int of more than some thousand digits has no text
        return f"a far too large {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
