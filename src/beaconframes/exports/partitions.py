"""Partitions: what divides a table into folders, and what these are called."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.calendar import Chain

PART = "\0part"
"""The column of numbers while rows are sorted; none that is exported may be called so."""
NONE = -(2**31)
"""The number of the partition of rows that have no time, or no validator."""
NOWHERE = "__HIVE_DEFAULT_PARTITION__"
MICROSECONDS_OF_A_DAY = 86_400_000_000
EPOCH_OF_DATES = date(1970, 1, 1)
VALIDATORS_EACH = 1_000
CHOICES = ("day", "period", "validators")
_SUBJECTS = ("validator_index", "proposer_index", "validator")
_UNITS = {"epoch": "epoch", "slot": "slot", "block_slot": "slot", "period": "period", "day": "day"}


@dataclass(frozen=True)
class Partitioning:
    """How rows are divided: by the *number* of each, under folders of the *key*.

    The key is no column of the files, so that whoever reads them finds each column once: where rows
    have a column ``date`` of their own, the folders are called ``partition_date=...``.
    """

    by: str
    key: str
    number: pl.Expr
    lead: str = ""
    """The column that rows grow by from one partition to the next."""

    def order(self, key: Sequence[str]) -> list[str]:
        """Return the columns that files are sorted by: one after the other, they are in order."""
        return sorted(key, key=lambda name: name != self.lead)

    def folder(self, number: int) -> str:
        """Return the folder of the partition with that number; "" if there is but one."""
        return f"{self.key}={self.label(number)}" if self.key else ""

    def label(self, number: int) -> str:
        """Return what the partition of that number is called."""
        if number == NONE:
            return NOWHERE
        if self.by == "day":
            try:
                return str(EPOCH_OF_DATES + timedelta(days=number))
            except OverflowError:
                raise UsageError(
                    "the column time has a year that is none of 1 to 9999, and no folder is called "
                    "by such a day",
                    hint="Leave such rows out, or give by=None",
                ) from None
        if self.by == "validators":
            first = number * VALIDATORS_EACH
            return f"{first:07d}-{first + VALIDATORS_EACH - 1:07d}"
        return f"{number:05d}"

    def end(self, number: int, chain: Chain) -> datetime | None:
        """Return when the partition of that number ends; None if it is not one of time."""
        if self.by == "period":
            return chain.time_of("epoch", (number + 1) * chain.epochs_per_sync_period)
        if self.by == "day":
            day = EPOCH_OF_DATES + timedelta(days=number + 1)
            return datetime.combine(day, time(), timezone.utc)  # noqa: UP017 - mypy knows it
        return None


WHOLE = Partitioning("", "", pl.repeat(0, pl.len()))


def partition(by: str | None, schema: pl.Schema, chain: Chain | None) -> Partitioning:
    """Return how rows with these columns are divided *by* day, sync period or validators."""
    if by is None:
        return WHOLE
    if by not in CHOICES:
        raise UsageError(f"by={by!r} is not known", hint=f"Choose one of {', '.join(CHOICES)}")
    unit = next((name for name in _UNITS if _is_number(name, schema)), None)
    if by == "day" and isinstance(schema.get("time"), pl.Datetime):
        # A division is an eighth of the work of making dates.
        days = pl.col("time").dt.timestamp("us") // MICROSECONDS_OF_A_DAY
        return Partitioning("day", _key("date", schema), days.fill_null(NONE), unit or "time")
    subject = next((name for name in _SUBJECTS if _is_number(name, schema)), None)
    if by == "validators" and subject is not None:
        blocks = _blocks(subject, schema).fill_null(NONE)
        return Partitioning("validators", _key("validators_from_to", schema), blocks, subject)
    if by == "period" and unit is not None and chain is not None:
        periods = _period(unit, chain).fill_null(NONE)
        return Partitioning("period", _key("sync_period", schema), periods, unit)
    raise UsageError(
        f"the rows have no column to divide them by={by!r}",
        hint="day needs `time`, period an epoch or slot of a known chain, validators an index",
    )


def _key(name: str, schema: pl.Schema) -> str:
    """Return what folders are called by: *name*, or like no column if there is one of that name."""
    columns = {column.lower() for column in schema}
    while name in columns:
        name = f"partition_{name}"
    return name


def _is_number(name: str, schema: pl.Schema) -> bool:
    """Tell whether there is a column of that name that rows can be counted by."""
    return name in schema and (schema[name].is_integer() or schema[name].is_float())


def _blocks(subject: str, schema: pl.Schema) -> pl.Expr:
    """Return which block of validators each row is of."""
    index = pl.col(subject)
    if schema[subject] in (pl.UInt64, pl.UInt128, pl.Int128):
        return (index // VALIDATORS_EACH).cast(pl.Int64, strict=False)
    return index.cast(pl.Int64, strict=False) // VALIDATORS_EACH


def _period(column: str, chain: Chain) -> pl.Expr:
    """Return the sync period that each row is of."""
    number = pl.col(column).cast(pl.Int64, strict=False)
    epochs = {
        "epoch": number,
        "slot": number // chain.slots_per_epoch,
        "day": number * chain.epochs_per_day,
        "period": number * chain.epochs_per_sync_period,
    }[_UNITS[column]]
    return epochs // chain.epochs_per_sync_period


def usual(schema: pl.Schema) -> str | None:
    """Return what rows with these columns are divided by unless somebody says otherwise."""
    # A row a day would be a file a row.
    over_time = any(name in schema for name in ("epoch", "slot", "block_slot"))
    return "day" if over_time and isinstance(schema.get("time"), pl.Datetime) else None
