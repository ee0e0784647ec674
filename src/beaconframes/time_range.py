"""Ranges of units: ``since`` and ``until`` as numbers, dates, months, ages and instants."""

from __future__ import annotations

import functools
import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from beaconframes.calendar import (
    MICROSECOND,
    before_genesis,
    format_value,
    get_length,
    invalid_time,
    to_integer,
    to_utc,
    truncate,
)
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    import numpy as np

    from beaconframes.calendar import Chain, Unit

if TYPE_CHECKING:
    Moment: TypeAlias = int | str | date | datetime | timedelta | np.datetime64
else:  # Loaders resolve their type hints without numpy, whose import takes time.
    Moment = int | str | date | datetime | timedelta

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9].*")
_AGE = re.compile(r"([0-9]{1,9})([wdhm])")
_AGE_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}


def find_time_zone(tz: Any) -> ZoneInfo:
    """Return the time zone of a name; raise UsageError if there is none."""
    from zoneinfo import ZoneInfo

    if isinstance(tz, tzinfo):
        raise UsageError(
            f"tz={tz!r} is an object, not the name of a time zone",
            hint=f'Pass "{tz}"' if isinstance(tz, ZoneInfo) else 'Pass a name such as "UTC"',
        )
    try:
        return ZoneInfo(tz)
    except (ValueError, OSError, TypeError, KeyError):
        raise UsageError(
            f"tz={tz!r} is not a time zone", hint='Pass a name such as "UTC" or "Europe/Berlin"'
        ) from None


@dataclass(frozen=True)
class Span:
    """An inclusive range of slots, epochs, days, weeks or sync periods; never empty."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise UsageError(
                f"the range {self.first} to {self.last} is not valid",
                hint="Start at 0 or later, and end at the start or later",
            )

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
    default_until: Callable[[], Moment] | None = None,
) -> Span:
    """Return the units that start between *since* and *until*, both inclusive.

    An int is the number of a unit; a negative int counts back from the latest (-1 is the latest).
    A datetime is an instant (UTC if it has no time zone), a date the whole UTC day, and
    ``"2026-10"`` the whole month; ``np.datetime64`` is a month or a day in its units ``M`` and
    ``D``, and an instant in a finer unit. ``"30d"``, ``"12h"``, ``"45m"``, ``"2w"`` and a timedelta
    are an age before now. ``"latest"`` is the latest unit. None is the default; without a default,
    *since* is 0 and *until* the latest.

    *latest* and *now* are called at most once, and only if they are needed.
    """
    # Called once: if the head moved between two calls, since=-250 would not be 250 units.
    latest, now = functools.cache(latest), functools.cache(now)
    start: Moment = 0 if since is None else since
    end: Moment = until if until is not None else default_until() if default_until else "latest"
    first = resolve_bound("since", start, unit, chain, latest, now)
    last = resolve_bound("until", end, unit, chain, latest, now)
    if first > last:
        raise _empty_range((since, first), (until, last), unit, now)
    return Span(first, last)


def _empty_range(
    since: tuple[Moment | None, int],
    until: tuple[Moment | None, int],
    unit: Unit,
    now: Callable[[], datetime],
) -> UsageError:
    """Return the error for a range that ends before it starts."""
    (start, first), (end, last) = since, until
    start_text = _describe_bound(start, unit, first)
    end_text = _describe_bound(end, unit, last)
    if end is None or _is_latest(end):
        return UsageError(
            f"since ({start_text}) is after the last available {unit}, {last}",
            hint="Use an earlier since",
        )
    if (
        is_time(start)
        and is_time(end)
        and instants("since", start, now)[0] <= instants("until", end, now)[1]
    ):
        return UsageError(
            f"no {unit} starts between since ({_describe_bound(start)}) "
            f"and until ({_describe_bound(end)})",
            hint="Use a longer range",
        )
    return UsageError(
        f"since ({start_text}) is after until ({end_text})",
        hint="Swap them",
    )


def _is_latest(value: object) -> bool:
    return isinstance(value, str) and value == "latest"


def is_relative(value: object) -> bool:
    """Return whether a bound depends on the head or the present: an age, or counted back."""
    if isinstance(value, str):
        return _is_latest(value) or value == "finalized" or bool(_AGE.fullmatch(value))
    number = to_integer(value)
    return value is None or isinstance(value, timedelta) or (number is not None and number < 0)


def is_time(value: object) -> bool:
    """Return whether a bound is a time, instead of a number, ``"latest"`` or None."""
    return value is not None and to_integer(value) is None and not _is_latest(value)


def _describe_bound(value: Any, unit: str | None = None, number: int = 0) -> str:
    """Return a bound for a message: the argument, and the number of the unit that it means."""
    shown = [] if unit and to_integer(value) == number else [truncate(str(value))]
    return ", ".join([*shown, *([f"{unit} {number}"] if unit else [])])


def resolve_bound(
    argument: Literal["since", "until"],
    value: Any,
    unit: Unit,
    chain: Chain,
    latest: Callable[[], int],
    now: Callable[[], datetime],
) -> int:
    """Return the first unit of *since*, or the last of *until*."""
    if (number := to_integer(value)) is not None:
        if number < 0:
            number += latest() + 1
        if number < 0:
            raise UsageError(
                f"{argument}={format_value(value)} is before the genesis of the chain "
                f"{chain.name!r}",
                hint=f"The latest {unit} is {latest()}, so {-latest() - 1} is {unit} 0",
            )
        chain.time_of(unit, number)
        return number
    if _is_latest(value):
        return latest()
    start, end = instants(argument, value, now, unit)
    if end < chain.genesis:
        raise before_genesis(chain, argument, value)
    if argument == "until":
        return chain.at(unit, end)
    # Rounded up: the unit that contains `start` started before it.
    return max(0, -((chain.genesis - start) // get_length(chain, unit)))


def instants(
    argument: str, value: Any, now: Callable[[], datetime], unit: Unit = "epoch"
) -> tuple[datetime, datetime]:
    """Return the first and the last instant of a text, date, datetime or timedelta."""
    try:
        # The text of a datetime64 is a month or a date in its units M and D, else an instant.
        is_numpy = type(value).__name__ == "datetime64"
        if is_numpy and value.dtype.str.endswith("[W]"):
            # Its text is the first day of the week.
            raise invalid_time(argument, value, unit)
        is_text = isinstance(value, str) or is_numpy
        parsed = _parse_time(argument, str(value), unit) if is_text else value
        if isinstance(parsed, timedelta) and parsed >= timedelta(0):
            instant = to_utc("now", now()) - parsed
            return instant, instant
        if isinstance(parsed, date) and not isinstance(parsed, datetime):
            midnight = datetime.combine(parsed, time(), UTC)
            is_month = is_text and _MONTH.fullmatch(str(value))
            days = monthrange(parsed.year, parsed.month)[1] if is_month else 1
            return midnight, midnight + (timedelta(days=days) - MICROSECOND)
        instant = to_utc(argument, parsed, unit)
    except OverflowError:
        raise _outside_of_years(argument, value) from None
    return instant, instant


def _outside_of_years(argument: str, value: object) -> UsageError:
    return UsageError(f"{argument}={format_value(value)} is outside the years 1 to 9999")


def local_range(since: Any = None, until: Any = None, *, tz: str) -> dict[str, Any]:
    """Return the range of a loader in which dates and months are those of a time zone.

    ::

        year = bf.local_range("2025-01-01", "2025-12-31", tz="Europe/Berlin")
        income = bf.load_income_history(3, **year)

    Loaders themselves have days of UTC, so that the first and the last day of an analysis with
    ``tz=`` would not be complete.

    Parameters
    ----------
    since, until
        As for loaders. Numbers, ages and instants are returned as they are.
    tz
        Name of the time zone, such as ``"Europe/Berlin"``.

    Returns
    -------
    dict
        ``since`` and ``until``, of those that are given. A date is the first or the last instant
        of the day.
    """
    find_time_zone(tz)
    bounds = {"since": since, "until": until}
    return {
        name: _find_local_bound(name, value, tz)
        for name, value in bounds.items()
        if value is not None
    }


def _find_local_bound(name: str, value: Any, tz: str) -> Any:
    """Return the instant of a date or month of the time zone *tz*; other bounds unchanged."""
    if tz == "UTC" or is_relative(value) or not is_time(value):
        return value
    start, end = instants(name, value, lambda: datetime.now(UTC))
    if start == end:
        return value
    zone = find_time_zone(tz)
    try:
        if name == "since":
            return datetime.combine(start, time(), zone).astimezone(UTC)
        # A day ends where the next one begins: clocks may change at midnight.
        following = datetime.combine(end + MICROSECOND, time(), zone)
        return following.astimezone(UTC) - MICROSECOND
    except OverflowError:
        raise _outside_of_years(name, value) from None


def _parse_time(argument: str, text: str, unit: Unit) -> date | datetime | timedelta:
    """Parse an age, a date, the first day of a month, or an instant."""
    if age := _AGE.fullmatch(text):
        return timedelta(**{_AGE_UNITS[age[2]]: int(age[1])})
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        if _MONTH.fullmatch(text):
            return date.fromisoformat(f"{text}-01")
        # The pattern comes first: fromisoformat also accepts 20261001 and 2026-W40.
        if _INSTANT.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise invalid_time(argument, text, unit)
