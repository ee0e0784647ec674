"""Tables: a class of columns, a line each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl

from beaconframes.errors import IntegrityError
from beaconframes.schema import decode, encode, flattening
from beaconframes.schema.column import Column, type_name
from beaconframes.schema.decode_checked import short
from beaconframes.schema.numbers import Position
from beaconframes.schema.texts import Asked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema.envelope_context import EnvelopeContext

UNIT_ENDINGS = ("_gwei", "_wei", "_eth")


@dataclass(frozen=True)
class Implied:
    """A wire field that says nothing new, such as the week of an epoch.

    The local explorer sends it; loaders leave it out, because ``of`` and the chain's calendar
    say it already.
    """

    wire: str
    of: str
    unit: Literal["week", "day"]
    part: Literal["number", "start", "end"]


WEEK_OF_EPOCH = (
    Implied("week", "epoch", "week", "number"),
    Implied("week_start", "epoch", "week", "start"),
    Implied("week_end", "epoch", "week", "end"),
)


class Table:
    """The columns of one kind of row; subclasses list them, and their docstring says the grain.

    A table made from another has its own columns first, and then those of the other.

    Example
    -------
    ::

        class BalanceHistory(Table):
            '''Balances. One row per validator per epoch.'''

            validator_index = Count("Validator.", key=True, wire="validatorindex")
            epoch           = Epoch("Epoch.", key=True)
            balance_gwei    = Gwei("Balance at the first slot of the epoch.", wire="balance")
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    implied: ClassVar[tuple[Implied, ...]] = ()
    table_name: ClassVar[str] = ""
    public_spelling: ClassVar[int] = 0
    """Which of its columns' spellings the public service uses: the first, or -1 for the last."""
    keeps_every_field: ClassVar[bool] = False
    """Whether fields that it has no column for become columns too: nobody published the shape."""

    def __init_subclass__(cls) -> None:
        """Collect the columns and refuse a name that does not say its unit."""
        cls.table_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        columns: list[Column] = []
        for name, column in vars(cls).items():
            if not isinstance(column, Column):
                continue
            column.name = name
            ending = next((e for e in UNIT_ENDINGS if name.endswith(e)), "")
            if ending != column.ending:
                raise TypeError(
                    f"{cls.__name__}.{name}: a {type(column).__name__} column's name must end in "
                    f"{column.ending!r}, not {ending!r}"
                )
            columns.append(column)
        shared = (column for base in cls.__bases__ for column in getattr(base, "columns", ()))
        cls.columns = (*columns, *(column for column in shared if column.name not in vars(cls)))

    @classmethod
    def key(cls) -> list[str]:
        """Return the names of the key columns, in the order that rows are sorted by."""
        return [column.name for column in cls.columns if column.key]

    @classmethod
    @cache
    def schema(cls) -> pl.Schema:
        """Return names and polars types of all columns, in order."""
        return pl.Schema({column.name: column.dtype for column in cls.columns})

    @classmethod
    def empty(cls) -> pl.DataFrame:
        """Return no rows and all columns."""
        return pl.DataFrame(schema=cls.schema())

    @classmethod
    def decode(
        cls, pages: Iterable[bytes], chain: Chain, around: Sequence[EnvelopeContext] = ()
    ) -> pl.DataFrame:
        """Return the rows of all *pages* (each the JSON of a record, or of a list of them).

        *around* is what stands around each of them, for the columns that are not in the records.
        """
        how = flattening.flatten if cls.keeps_every_field else decode.decode
        return how(cls, pages, chain, around)

    @classmethod
    def encode(
        cls,
        frame: pl.DataFrame,
        chain: Chain,
        *,
        without: Collection[str] = (),
        public: bool = False,
    ) -> bytes:
        """Return *frame* as a JSON list of records, spelled as the specification spells them.

        The fields of *without*, by that spelling, are left out. With *public* the records are
        those of the public service.
        """
        records = cls.spell(frame, chain, without=without, public=public)
        return b"[%b]" % cls.write(records, public=public)

    @classmethod
    def spell(
        cls,
        frame: pl.DataFrame,
        chain: Chain,
        *,
        without: Collection[str] = (),
        public: bool = False,
    ) -> pl.DataFrame:
        """Return the records of which `encode` makes JSON."""
        return encode.spell(cls, frame, chain, without, public=public)

    @classmethod
    def write(cls, records: pl.DataFrame, *, public: bool = False) -> bytes:
        """Return what `spell` gave as JSON, one record after the other."""
        return encode.write(cls, records, public=public)

    @classmethod
    def arrange(cls, frame: pl.DataFrame) -> pl.DataFrame:
        """Return *frame* sorted by key, every row once.

        Raises
        ------
        IntegrityError
            When two rows of one key say different things.
        """
        key = cls.key()
        if not key:
            return frame.unique(maintain_order=True) if cls.keeps_every_field else frame
        frame = frame.sort(key, nulls_last=True, maintain_order=True)
        repeats = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in key)
        at = frame.select((repeats & (pl.int_range(pl.len()) > 0)).arg_true()).to_series()
        if at.is_empty():
            return frame
        again, before = frame[at], frame[at - 1]
        for column in cls.columns:
            same = before[column.name].eq_missing(again[column.name])
            if not same.all():
                row = (~same).arg_true()[0]
                raise IntegrityError(
                    f"two rows of {cls.table_name} with the key "
                    f"{ {k: again[k][row] for k in key} } differ in {column.name}: "
                    f"{cell(before, column, row)} and {cell(again, column, row)}",
                    hint="The service contradicts itself; ask again later, or report it",
                )
        return frame.filter(~(repeats & (pl.int_range(pl.len()) > 0)))

    @classmethod
    def describe(cls) -> pl.DataFrame:
        """Return the data dictionary of the table, one row per column."""
        return pl.DataFrame(
            [
                (
                    column.name,
                    type_name(column.dtype),
                    column.unit,
                    column.key,
                    column.doc,
                    source(column),
                )
                for column in cls.columns
            ],
            schema={
                "column": pl.String,
                "type": pl.String,
                "unit": pl.String,
                "key": pl.Boolean,
                "meaning": pl.String,
                "wire": pl.String,
            },
            orient="row",
        )


def source(column: Column) -> str:
    """Return where on the wire a column comes from, for the data dictionary."""
    if column.spellings:
        return ", ".join(column.spellings)
    if column.beside:
        return ", ".join((column.beside,) if isinstance(column.beside, str) else column.beside)
    if isinstance(column, Position):
        return "list position"
    return "what was asked for" if isinstance(column, Asked) else "derived"


def cell(frame: pl.DataFrame, column: Column, row: int) -> str:
    """Return one cell for a message."""
    return short(frame[column.name].to_list()[row])
