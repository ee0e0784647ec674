"""Chains and their calendar: conversion of slots, epochs, days, weeks and sync periods to UTC.

Every unit is an integer number of slots counted from genesis, so all arithmetic uses integers. A
"day" of a chain is 86,400 seconds from genesis, not a UTC day: mainnet days start at 12:00:23.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from beaconframes.errors import ConfigError, UsageError
from beaconframes.summary import render_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    Epoch = TypeVar("Epoch", int, pl.Expr)

Unit: TypeAlias = Literal["slot", "epoch", "day", "week", "period"]

MICROSECOND = timedelta(microseconds=1)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Chain:
    """The clock of a chain: its genesis and the length of its units.

    Mainnet, Hoodi, Sepolia and Holesky have names; create any other chain like this::

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
        counts: dict[str, Any] = dict(vars(self))
        name, genesis = counts.pop("name"), counts.pop("genesis")
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"name of a chain is {format_value(name)}; it must be a text")
        if not isinstance(genesis, datetime) or genesis.utcoffset() is None:
            problem = "has no time zone" if isinstance(genesis, datetime) else "is not a datetime"
            raise ConfigError(
                f"genesis of chain {name!r} is {format_value(genesis)}, which {problem}",
                hint="Use datetime(2026, 1, 1, tzinfo=UTC), or in a TOML file "
                "2026-01-01T00:00:00Z without quotes",
            )
        # Arithmetic on a datetime of another zone would follow its daylight saving time.
        object.__setattr__(self, "genesis", genesis.astimezone(UTC))
        for field, value in counts.items():
            least = 0 if field == "first_sync_epoch" else 1
            if type(value) is not int or value < least:
                raise ConfigError(
                    f"{field} of chain {name!r} is {format_value(value)}; "
                    f"it must be an int of {least} or more"
                )
        if self.epochs_per_day < 1:
            raise ConfigError(f"an epoch of chain {name!r} is longer than a day")

    @property
    def epochs_per_day(self) -> int:
        """Return the number of epochs of a day: 225 on mainnet."""
        return 86_400 // self.slots_per_epoch // self.seconds_per_slot

    @property
    def epochs_per_week(self) -> int:
        """Return the number of epochs of a week: 1575 on mainnet."""
        return 7 * self.epochs_per_day

    def first_slot_of(self, epoch: Epoch) -> Epoch:
        """Return the first slot of an epoch, which is an int or a polars expression."""
        return epoch * self.slots_per_epoch

    def last_slot_of(self, epoch: Epoch) -> Epoch:
        """Return the last slot of an epoch, which is an int or a polars expression."""
        return (epoch + 1) * self.slots_per_epoch - 1

    def time_of(self, unit: Unit, number: int) -> datetime:
        """Return the start of a slot, epoch, day, week or sync period in UTC."""
        try:
            return self.genesis + _check_number(unit, number) * get_length(self, unit)
        except OverflowError:
            raise UsageError(f"{unit} {format_value(number)} starts after the year 9999") from None

    def at(self, unit: Unit, moment: datetime) -> int:
        """Return the slot, epoch, day, week or sync period that contains *moment*.

        A datetime without a time zone is UTC.
        """
        instant = to_utc("moment", moment)
        if instant < self.genesis:
            raise before_genesis(self, "moment", moment)
        return (instant - self.genesis) // get_length(self, unit)

    def time_expr(self, unit: Unit, numbers: pl.Expr) -> pl.Expr:
        """Return an expression for the start times of the units *numbers*.

        Its type is ``Datetime("us", "UTC")``; null stays null.
        """
        import polars as pl

        genesis = (self.genesis - _UNIX_EPOCH) // MICROSECOND
        length = get_length(self, unit) // MICROSECOND
        return (numbers.cast(pl.Int64) * length + genesis).cast(pl.Datetime("us", "UTC"))

    def _repr_html_(self) -> str:
        """Return the clock as a table, for a notebook."""
        seconds = self.seconds_per_slot * self.slots_per_epoch
        period = timedelta(seconds=seconds * self.epochs_per_sync_period)
        lines = [
            ("genesis", f"{self.genesis:%Y-%m-%d %H:%M:%S} UTC"),
            ("slot", f"{self.seconds_per_slot} seconds"),
            ("epoch", f"{self.slots_per_epoch} slots, {timedelta(seconds=seconds)} hours"),
            ("day", f"{self.epochs_per_day} epochs"),
            ("sync period", f"{self.epochs_per_sync_period} epochs, {period} hours"),
            ("sync committee", f"{self.sync_committee_size} validators"),
        ]
        return render_html(f"Chain {self.name}", lines)


MAINNET = Chain(
    "mainnet", genesis=datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC), first_sync_epoch=74_240
)
"""Ethereum mainnet."""
HOODI = Chain("hoodi", genesis=datetime(2025, 3, 17, 12, 10, 0, tzinfo=UTC))
"""The testnet Hoodi."""
SEPOLIA = Chain("sepolia", genesis=datetime(2022, 6, 20, 14, 0, 0, tzinfo=UTC), first_sync_epoch=50)
"""The testnet Sepolia."""
HOLESKY = Chain("holesky", genesis=datetime(2023, 9, 28, 12, 0, 0, tzinfo=UTC))
"""The testnet Holesky."""

PUBLIC_CHAINS = {chain.name: chain for chain in (MAINNET, HOODI, SEPOLIA, HOLESKY)}
"""The chains that have names."""


def get_chain(chain: str | Chain) -> Chain:
    """Return the chain of this name or TOML file; a ``Chain`` is returned unchanged."""
    if isinstance(chain, Chain):
        return chain
    if named := PUBLIC_CHAINS.get(str(chain).lower()):
        return named
    if str(chain).endswith(".toml"):
        return _read_chain(str(chain))
    raise ConfigError(
        f"unknown chain {format_value(chain)}",
        hint=f"Known chains: {', '.join(PUBLIC_CHAINS)}. For any other chain give a TOML file with "
        "its name, genesis, seconds_per_slot and slots_per_epoch, or in Python a Chain(...)",
    )


def _read_chain(path: str) -> Chain:
    """Return the chain of a TOML file, which has the fields of `Chain`."""
    import tomllib

    try:
        with Path(path).open("rb") as file:
            return Chain(**tomllib.load(file))
    except (OSError, ValueError) as error:
        raise ConfigError(f"the file of a chain {path} cannot be read: {error}") from None
    except TypeError as error:
        problem = str(error).removeprefix("Chain.__init__() ")
        raise ConfigError(
            f"the file of a chain {path} {problem}",
            hint=f"Its fields are: {', '.join(Chain.__dataclass_fields__)}",
        ) from None


def find_chain(unit: Unit, starts: Sequence[tuple[int, datetime]]) -> Chain:
    """Return the chain of which these units start at these times: a known one where one fits.

    *starts* has one or two numbers of slots, epochs or days, each with its start. For an unknown
    chain, they give its genesis and, if there are two, the length of an epoch. The rest is as on
    mainnet: 32 slots in an epoch, and 12 seconds in a slot if there is one start, or days.
    """
    if known := find_known_chain(unit, starts):
        return known
    number, start = starts[0]
    length = find_length(unit, starts) or get_length(MAINNET, unit)
    slot = length / _count_slots(MAINNET, unit)
    try:
        chain = Chain("unnamed", start - number * length, slot // timedelta(seconds=1))
    except (ConfigError, OverflowError):
        chain = MAINNET
    if not _has_starts(chain, unit, starts):
        shown = " and ".join(f"{unit} {n:,} at {_format_time(time)}" for n, time in starts)
        raise UsageError(
            f"the times of the frame fit no chain with 32 slots in an epoch: {shown}",
            hint="Keep time as it was loaded. For other epochs, pass chain=Chain(...).",
        )
    return chain


def find_known_chain(unit: Unit, starts: Sequence[tuple[int, datetime]]) -> Chain | None:
    """Return the public chain whose units start at these times."""
    return next((c for c in PUBLIC_CHAINS.values() if _has_starts(c, unit, starts)), None)


def find_length(unit: Unit, starts: Sequence[tuple[int, datetime]]) -> timedelta | None:
    """Return the time from a unit to the next one; None if one start does not show it.

    *starts* are those of `find_chain`, and may be empty. Epochs may have any number of slots.
    """
    if not starts:
        return None
    (number, start), (other, end) = starts[0], starts[-1]
    if other != number:
        length = (end - start) / (other - number)
        return length if length > timedelta() else None
    known = find_known_chain(unit, starts)
    return None if known is None else get_length(known, unit)


def _has_starts(chain: Chain, unit: Unit, starts: Sequence[tuple[int, datetime]]) -> bool:
    """Return whether units of *chain* start at these times."""
    length = get_length(chain, unit)
    try:
        return all(chain.genesis + number * length == start for number, start in starts)
    except OverflowError:
        return False


def check_starts(
    chain: Chain, unit: Unit, starts: Sequence[tuple[int, datetime]], *, is_given: bool = True
) -> None:
    """Raise a `UsageError` if units of *chain* do not start at these times.

    A chain that is not *is_given* by the user is that of another frame.
    """
    if _has_starts(chain, unit, starts):
        return
    number, start = starts[-1]
    try:
        found = find_chain(unit, starts)
        named = found.name if found in PUBLIC_CHAINS.values() else "a chain"
        other = f", as on {named} with genesis at {_format_time(found.genesis)}"
    except UsageError:
        other = ""
    raise UsageError(
        f"the frame is not of chain {chain.name!r} with genesis at {_format_time(chain.genesis)}: "
        f"its {unit} {number:,} starts at {_format_time(start)}{other}",
        hint="Leave chain out: it is then the chain of the frame."
        if is_given
        else "Pass frames of one chain; if they are, pass it: chain=Chain(...).",
    )


def _format_time(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def to_utc(argument: str, moment: Any, unit: Unit = "epoch") -> datetime:
    """Return *moment* in UTC; a datetime without a time zone is in UTC already."""
    # pandas' NaT is an instance of datetime, and is not equal to itself.
    if not isinstance(moment, datetime) or moment != moment:  # noqa: PLR0124
        raise invalid_time(argument, moment, unit)
    try:
        return moment.astimezone(UTC) if moment.utcoffset() else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(
            f"{argument}={format_value(moment)} is outside the years 1 to 9999"
        ) from None


def invalid_time(argument: str, value: object, unit: Unit) -> UsageError:
    """Return the error for an argument that is no time."""
    article = "an" if unit == "epoch" else "a"
    return UsageError(
        f"{argument}={format_value(value)} is not a valid time",
        hint=f'Use {article} {unit} number, a date such as "2026-10-01", a month such as '
        '"2026-10", or an age such as "30d"',
    )


def before_genesis(chain: Chain, argument: str, value: object) -> UsageError:
    """Return the error for a time before the genesis of *chain*."""
    return UsageError(
        f"{argument}={format_value(value)} is before the genesis of the chain {chain.name!r}, "
        f"{chain.genesis:%Y-%m-%dT%H:%M:%SZ}",
        hint="Use a later time",
    )


def _count_slots(chain: Chain, unit: Unit) -> int:
    epochs = {
        "epoch": 1,
        "day": chain.epochs_per_day,
        "week": chain.epochs_per_week,
        "period": chain.epochs_per_sync_period,
    }
    if unit == "slot":
        return 1
    if unit not in epochs:
        raise UsageError(
            f"{format_value(unit)} is not a unit", hint=f"Units: {', '.join(get_args(Unit))}"
        )
    return epochs[unit] * chain.slots_per_epoch


def get_length(chain: Chain, unit: Unit) -> timedelta:
    """Return the duration of a unit."""
    return timedelta(seconds=chain.seconds_per_slot * _count_slots(chain, unit))


def to_integer(value: Any) -> int | None:
    """Return an integer, numpy's included, as an int; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _check_number(unit: str, value: Any) -> int:
    number = to_integer(value)
    if number is None or number < 0:
        raise UsageError(f"{unit} {format_value(value)} is not an integer of 0 or more")
    return number


def format_value(value: object) -> str:
    """Return the ``repr`` of *value*, cut to the length of a message."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print an int of several thousand digits.
        return f"an {type(value).__name__} of thousands of digits"
    return truncate(text)


def truncate(text: str) -> str:
    """Return *text*, cut to the length of a message."""
    return text if len(text) <= 60 else f"{text[:57]}..."
