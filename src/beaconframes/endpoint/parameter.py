"""What a selector is: an argument of a loader is a selection of rows.

Each has two halves. The client's half, ``batches``, turns what the user wrote into wire fields;
the server's half, ``apply``, keeps the rows that those fields select. The declaration of an
endpoint lists them once, in the order in which the rows are narrowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from beaconframes.errors import BeaconframesError

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.calendar import Chain
    from beaconframes.endpoint.chain_head import ChainHead, Head
    from beaconframes.endpoint.request import Page

Fields: TypeAlias = Mapping[str, Any]
"""What a request says, by wire name: texts in a path or a query, JSON values in a body."""


class Refused(BeaconframesError):
    """A request that the local explorer answers with an error; the text is the service's."""


class Absent(Refused):
    """A request for something that does not exist."""


class View(Protocol):
    """What the server's half may look at besides the rows."""

    @property
    def chain(self) -> Chain:
        """Return the chain of the dataset."""

    @property
    def head(self) -> Head:
        """Return the end of the dataset."""

    def index_of(self, pubkey: str) -> int | None:
        """Return the validator index of a public key, or None."""

    def pubkey_of(self, index: int) -> str | None:
        """Return the public key of a validator index, or None."""

    def scan(self, table: str) -> pl.LazyFrame:
        """Return the rows of another table, for what follows from several."""


@dataclass(frozen=True)
class Wanted:
    """The values that a request selects: a row belongs to it when any of the columns has one.

    ``every`` says that each value must come back in at least one row, which is what makes a
    missing one noticeable. ``trim`` says that the service answers more than it was asked, so that
    other rows are dropped instead of being an error. ``unnamed`` are subjects that were asked for
    by a name which the rows do not carry, so that they can only be counted. ``parts`` is a column
    and how many numbers of it belong to each value, once that is final: such as slots to an epoch.
    """

    values: Mapping[str, Collection[Any]]
    every: bool = True
    trim: bool = False
    unnamed: Collection[str] = ()
    parts: tuple[str, int] | None = None


@dataclass(frozen=True)
class Batch:
    """What one request sends for one selector, and what it selects with that."""

    fields: Fields = field(default_factory=dict)
    wanted: tuple[Wanted, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """One argument, or a pair of them, that narrows the rows."""

    args: ClassVar[tuple[str, ...]] = ()

    def arguments(self) -> tuple[str, ...]:
        """Return the names of the loader's arguments that belong to this selector."""
        return self.args

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return what to send, a batch for each request that it takes."""
        raise NotImplementedError  # pragma: no cover

    @property
    def reach(self) -> int | None:
        """Return how many numbers in a row one request takes; None for any."""
        return None

    def follow(self, fields: Fields, page: Page) -> Fields | None:
        """Return what to send for the page after *page*; None at the end."""
        return None

    def parts(self, batch: Batch, at_most: int) -> list[Batch]:
        """Return *batch* in parts of *at_most* subjects each. Usually it is one already."""
        return [batch]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the *rows* that the wire *fields* select; raise Refused for bad ones."""
        raise NotImplementedError  # pragma: no cover

    def of_sums(self, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
        """Return what *fields* select of sums, made of the rows that `apply` left. Usually all."""
        return rows

    def leaves_out(self, fields: Fields) -> Collection[str]:
        """Return the wire fields that an answer to *fields* does not have. Usually none."""
        return ()

    def in_order(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return the selected *rows* in the order in which the service sends them."""
        return rows

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return *rows* of several requests as if they had been one. Usually nothing to do."""
        return rows
