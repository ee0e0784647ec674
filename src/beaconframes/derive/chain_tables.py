"""The tables of a chain, and which epochs and validators they cover."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import polars as pl

from beaconframes.intervals import Intervals, merge_intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from beaconframes.calendar import Chain
    from beaconframes.endpoint import Head
    from beaconframes.schema import Table


class View(Protocol):
    """A dataset, as far as rows that follow from several of its tables need it."""

    @property
    def chain(self) -> Chain:
        """Return the chain of the dataset."""

    @property
    def head(self) -> Head:
        """Return the head of the chain in the dataset."""

    @property
    def drops_old_units(self) -> bool:
        """Return whether old units are refused, as by the public service."""

    @property
    def is_simulated(self) -> bool:
        """Return whether the chain is simulated: a table of events that is missing has no rows."""

    @property
    def indices(self) -> Mapping[str, int]:
        """Return the validator index of every public key."""

    @property
    def pubkeys(self) -> Mapping[int, str]:
        """Return the public key of every validator index."""

    def scan(self, table: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of another table, for results that need several.

        A table that does not exist is an error, or has no rows if its *schema* is given.
        """

    def derive(
        self,
        make_rows: Callable[[View], pl.LazyFrame],
        *,
        days: str | None = None,
        needs_all: bool = False,
    ) -> pl.LazyFrame:
        """Return the rows that *make_rows* makes of other tables, which several results need.

        *days* is a column of epochs by which they can be made of some days at a time. A result
        that *needs_all* has no use for a query that reads some of them.
        """

    def has_table(self, table: str) -> bool:
        """Return whether a table exists: what follows from another one is unknown, and not 0."""


class Tables(Protocol):
    """Stored tables, such as a `Dataset`."""

    def tables(self) -> Collection[str]:
        """Return the names of the tables."""

    def scan(self, table: str, *, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of a table; one that does not exist is an error or has a *schema*."""


@dataclass(frozen=True)
class Coverage:
    """The epochs and the validators of which all rows are stored.

    ``epochs`` are intervals of epochs, with the first and the last epoch of each, as
    `Dataset.coverage` returns them. ``tables`` has the epochs of tables that cover others: a node
    without old states has old blocks, but no old balances. A slot belongs to its epoch, and a
    balance to the epoch in whose first slot it was read. ``validators`` is None for all.
    """

    epochs: Intervals
    tables: Mapping[str, Intervals] = field(default_factory=dict)
    validators: frozenset[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epochs", merge_intervals(self.epochs))
        tables = {name: merge_intervals(epochs) for name, epochs in self.tables.items()}
        object.__setattr__(self, "tables", tables)

    def epochs_of(self, table: str) -> Intervals:
        """Return the epochs that a table covers."""
        return self.tables.get(table, self.epochs)

    def find_start(self, table: str, last: int) -> int | None:
        """Return the first epoch from which a table covers all epochs to *last*, or None."""
        starts = [first for first, end in self.epochs_of(table) if first <= last <= end]
        return starts[0] if starts else None

    def covers(self, table: str, epochs: range) -> bool:
        """Return whether a table covers all of *epochs*."""
        start = self.find_start(table, epochs[-1]) if epochs else 0
        return start is not None and (not epochs or start <= epochs[0])


class ChainTables:
    """The tables of a chain, its clock and its head, and what the tables cover.

    Create another one after tables have changed.
    """

    def __init__(self, tables: Tables, chain: Chain, head: Head, coverage: Coverage) -> None:
        self.tables, self.chain, self.head, self.coverage = tables, chain, head, coverage

    def scan(self, table: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of a table; see `Dataset.scan`."""
        return self.tables.scan(table, schema=schema)

    def find_table(self, *names: str) -> str | None:
        """Return the first of some tables that exists, or None."""
        return next((name for name in names if name in self._names), None)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.tables.tables())

    @cached_property
    def validators(self) -> pl.DataFrame:
        """Return the validators at the head, by index."""
        return self.scan("validators").collect()

    @property
    def covered_validators(self) -> pl.DataFrame:
        """Return the validators that the tables cover."""
        if self.coverage.validators is None:
            return self.validators
        indices = sorted(self.coverage.validators)
        return self.validators.filter(pl.col("validator_index").is_in(indices))

    @property
    def days_end(self) -> int:
        """Return the first day that is not over and final."""
        return self.head.finalized_epoch // self.chain.epochs_per_day

    @cached_property
    def days(self) -> list[int]:
        """Return the days with all balances, from that at their start to that at their end.

        A day is over when the epoch after it is final.
        """
        size = self.chain.epochs_per_day
        return [
            day
            for first, last in self.coverage.epochs_of("balance_history")
            for day in range(-(-first // size), min(last // size, self.days_end))
        ]

    def epochs_of_day(self, day: int) -> range:
        """Return the epochs of a day."""
        size = self.chain.epochs_per_day
        return range(day * size, (day + 1) * size)

    def covers_day(self, table: str, day: int, *, extra_epochs: int = 0) -> bool:
        """Return whether a table covers all epochs of a day, and *extra_epochs* after it."""
        epochs = self.epochs_of_day(day)
        return self.coverage.covers(table, range(epochs.start, epochs.stop + extra_epochs))

    def epoch_of(self, slot: str) -> pl.Expr:
        """Return the epoch of the slots in a column."""
        return pl.col(slot) // self.chain.slots_per_epoch

    def time_of(self, slot: str) -> pl.Expr:
        """Return the start of the slots in a column."""
        return self.chain.time_expr("slot", pl.col(slot))


def fit_table(
    table: type[Table], rows: pl.DataFrame, schema: pl.Schema | None = None
) -> pl.DataFrame:
    """Return *rows* with the columns of a table, sorted by its key.

    Columns and rows may have any order, and columns any type that can be cast. The types are those
    of *schema*, by default of the table.
    """
    if table.key():
        rows = rows.sort(table.key(), nulls_last=True)
    types = (table.schema() if schema is None else schema).items()
    return rows.select(pl.col(name).cast(dtype) for name, dtype in types)
