"""Partitions: the division of a table into folders, and the names of these folders."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.calendar import Chain

PARTITION_COLUMN = "\0part"
"""The column of partition numbers during sorting; no exported column may have this name."""
NULL_PARTITION = -(2**31)
"""The number of the partition of rows without a time or a validator."""
NULL_LABEL = "__HIVE_DEFAULT_PARTITION__"
DAY_MICROSECONDS = 86_400_000_000
UNIX_EPOCH = date(1970, 1, 1)
VALIDATORS_PER_PARTITION = 1_000
CHOICES = ("day", "period", "validators")
_SUBJECTS = ("validator_index", "proposer_index", "validator")
_UNITS = {"epoch": "epoch", "slot": "slot", "block_slot": "slot", "period": "period", "day": "day"}


@dataclass(frozen=True)
class Partitioning:
    """The division of rows: the *number* of each row's partition, and the *key* of the folders.

    The key is not a column of the files, so that readers find every column once. If the rows have
    a column ``date``, the folders are called ``partition_date=...``.
    """

    by: str
    key: str
    number: pl.Expr
    lead: str = ""
    """The column that increases from one partition to the next."""

    def get_sort_key(self, key: Sequence[str]) -> list[str]:
        """Return the columns that files are sorted by, so that consecutive files are in order."""
        return sorted(key, key=lambda name: name != self.lead)

    def get_label(self, number: int) -> str:
        """Return the value in the folder's name of a partition."""
        if number == NULL_PARTITION:
            return NULL_LABEL
        if self.by == "day":
            try:
                return str(UNIX_EPOCH + timedelta(days=number))
            except OverflowError:
                raise UsageError(
                    "the column time has a year outside 1 to 9999, for which there is no date",
                    hint="Leave these rows out, or give by=None",
                ) from None
        if self.by == "validators":
            first = number * VALIDATORS_PER_PARTITION
            return f"{first:07d}-{first + VALIDATORS_PER_PARTITION - 1:07d}"
        return f"{number:05d}"


UNPARTITIONED = Partitioning("", "", pl.repeat(0, pl.len()))


def create_partitioning(by: str | None, schema: pl.Schema, chain: Chain | None) -> Partitioning:
    """Return how rows with these columns are divided *by* day, sync period or validators."""
    if by is None:
        return UNPARTITIONED
    if by not in CHOICES:
        raise UsageError(f"by={by!r} is unknown", hint=f"Choose one of {', '.join(CHOICES)}")
    unit = next((name for name in _UNITS if _is_number(name, schema)), None)
    if by == "day" and isinstance(schema.get("time"), pl.Datetime):
        # A division takes an eighth of the time of a conversion to dates.
        days = (pl.col("time").dt.timestamp("us") // DAY_MICROSECONDS).fill_null(NULL_PARTITION)
        return Partitioning("day", _find_key("date", schema), days, unit or "time")
    subject = next((name for name in _SUBJECTS if _is_number(name, schema)), None)
    if by == "validators" and subject is not None:
        numbers = _number_by_validator(subject, schema).fill_null(NULL_PARTITION)
        key = _find_key("validators_from_to", schema)
        return Partitioning("validators", key, numbers, subject)
    if by == "period" and unit is not None and chain is not None:
        periods = _number_by_period(unit, chain).fill_null(NULL_PARTITION)
        return Partitioning("period", _find_key("sync_period", schema), periods, unit)
    raise UsageError(
        f"by={by!r} needs a column that the rows do not have",
        hint="day needs `time`, period an epoch or slot of a known chain, validators an index",
    )


def _find_key(name: str, schema: pl.Schema) -> str:
    """Return the key of the folders: *name*, with a prefix if a column has that name."""
    columns = {column.lower() for column in schema}
    while name in columns:
        name = f"partition_{name}"
    return name


def _is_number(name: str, schema: pl.Schema) -> bool:
    """Return whether there is a numeric column of that name."""
    return name in schema and (schema[name].is_integer() or schema[name].is_float())


def _number_by_validator(subject: str, schema: pl.Schema) -> pl.Expr:
    """Return the partition of each row, by ranges of validators."""
    index = pl.col(subject)
    if schema[subject] in (pl.UInt64, pl.UInt128, pl.Int128):
        return (index // VALIDATORS_PER_PARTITION).cast(pl.Int64, strict=False)
    return index.cast(pl.Int64, strict=False) // VALIDATORS_PER_PARTITION


def _number_by_period(column: str, chain: Chain) -> pl.Expr:
    """Return the sync committee period of each row."""
    number = pl.col(column).cast(pl.Int64, strict=False)
    epochs = {
        "epoch": number,
        "slot": number // chain.slots_per_epoch,
        "day": number * chain.epochs_per_day,
        "period": number * chain.epochs_per_sync_period,
    }[_UNITS[column]]
    return epochs // chain.epochs_per_sync_period


def choose_default(schema: pl.Schema) -> str | None:
    """Return the default of ``by=`` for rows with these columns."""
    # Tables with one row per day are not divided: they would have one file per row.
    is_dense = any(name in schema for name in ("epoch", "slot", "block_slot"))
    return "day" if is_dense and isinstance(schema.get("time"), pl.Datetime) else None
