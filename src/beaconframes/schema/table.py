"""Tables: classes of columns, one line per column."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from beaconframes.errors import IntegrityError
from beaconframes.schema import encode
from beaconframes.schema.columns import CalendarField, Column, TableSpec
from beaconframes.schema.decode import complete_columns, decode
from beaconframes.schema.decode_inferred import decode_inferred
from beaconframes.schema.invariants import build_rules
from beaconframes.schema.numbers import Position
from beaconframes.text import shorten, type_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema.envelope_context import EnvelopeContext
    from beaconframes.schema.invariants import Invariant

UNIT_SUFFIXES = ("_gwei", "_wei", "_eth")
MAX_PACKED = 2**62
"""Numbers into which a key is packed are smaller."""


class Table:
    """Base class of tables: a subclass lists its columns, and its docstring states the grain.

    A subclass of another table has its own columns first, then the inherited ones.

    Example
    -------
    ::

        class BalanceHistory(Table):
            '''Balances. One row per validator per epoch.'''

            validator_index = Count("Validator.", key=True, wire="validatorindex")
            epoch           = Epoch("Epoch.", key=True)
            balance_gwei    = Gwei("Balance after the first block.", wire="balance")
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    calendar_fields: ClassVar[tuple[CalendarField, ...]] = ()
    table_name: ClassVar[str] = ""
    public_spelling: ClassVar[int] = 0
    """Index of the wire path that the public service uses: 0 is the first, -1 the last."""
    invariants: ClassVar[tuple[Invariant, ...]] = ()
    """What holds for the rows of every response, beyond the types of their cells."""
    keeps_every_field: ClassVar[bool] = False
    """Whether undocumented fields become columns too, with inferred types."""
    is_ranking: ClassVar[bool] = False
    """Whether rows stay in the order of the responses."""
    is_partial: ClassVar[bool] = False
    """Whether records have documented fields without a column: they are dropped silently."""
    filled_objects: ClassVar[tuple[str, ...]] = ()
    """Fields whose value is always an object, also if all of its own fields are null."""
    spec: ClassVar[TableSpec] = TableSpec("")

    def __init_subclass__(cls) -> None:
        """Collect the columns; raise TypeError for a name that does not end in its unit."""
        cls.table_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        columns: list[Column] = []
        for name, column in vars(cls).items():
            if not isinstance(column, Column):
                continue
            column.name = name
            suffix = next((s for s in UNIT_SUFFIXES if name.endswith(s)), "")
            if suffix != column.name_suffix:
                raise TypeError(
                    f"{cls.__name__}.{name}: a {type(column).__name__} column's name must end in "
                    f"{column.name_suffix!r}, not {suffix!r}"
                )
            columns.append(column)
        shared = (column for base in cls.__bases__ for column in getattr(base, "columns", ()))
        cls.columns = (*columns, *(column for column in shared if column.name not in vars(cls)))
        cls.spec = TableSpec(
            cls.table_name,
            cls.columns,
            cls.calendar_fields,
            cls.public_spelling,
            cls.is_partial,
            cls.filled_objects,
        )

    @classmethod
    def key(cls, first: str = "") -> list[str]:
        """Return the names of the key columns in sort order, with the column *first* in front."""
        names = [column.name for column in cls.columns if column.key]
        return sorted(names, key=lambda name: name != first)

    @classmethod
    @cache
    def schema(cls) -> pl.Schema:
        """Return names and polars types of all columns, in order."""
        return pl.Schema({column.name: column.dtype for column in cls.columns})

    @classmethod
    def empty(cls) -> pl.DataFrame:
        """Return a frame with all columns and no rows."""
        return pl.DataFrame(schema=cls.schema())

    @classmethod
    def decode(
        cls, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
    ) -> pl.DataFrame:
        """Return the rows of all *pages* (each the JSON of a record, or of a list of records).

        *contexts* has the envelope and the request of each page, for columns outside the records.
        """
        decode_pages = decode_inferred if cls.keeps_every_field else decode
        return decode_pages(cls.spec, pages, chain, contexts)

    @classmethod
    def complete(cls, rows: pl.LazyFrame, chain: Chain) -> pl.LazyFrame:
        """Return derived *rows* with exactly the columns of the table, as if they were decoded."""
        found, schema = rows.collect_schema(), cls.schema()
        if found.items() >= schema.items():
            return rows.select(list(schema))
        return rows.select(complete_columns(cls.spec, found.names(), chain)).cast(schema)

    @classmethod
    def encode(
        cls,
        frame: pl.DataFrame,
        chain: Chain,
        *,
        without: Collection[str] = (),
        public: bool = False,
    ) -> bytes:
        """Return *frame* as a JSON list of records, in the specification's spelling.

        The fields of *without*, in that spelling, are omitted. With *public* the records are
        those of the public service.
        """
        records = cls.encode_records(frame, chain, without=without, public=public)
        return b"[%b]" % b",".join(records)

    @classmethod
    def encode_records(
        cls,
        frame: pl.DataFrame,
        chain: Chain,
        *,
        without: Collection[str] = (),
        public: bool = False,
    ) -> list[bytes]:
        """Return the JSON texts of the records of *frame*; see `encode`."""
        return encode.encode_records(cls.spec, frame, chain, without, public=public)

    @classmethod
    def arrange(cls, frame: pl.DataFrame, first: str = "") -> pl.DataFrame:
        """Return *frame* sorted by key, by the column *first* of it first, without duplicate rows.

        Raises
        ------
        IntegrityError
            When two rows have the same key and different values.
        """
        key = cls.key(first)
        if not key:
            return frame.unique(maintain_order=True) if cls.keeps_every_field else frame
        is_after = pl.lit(value=False)
        for name in reversed(key):
            value, previous = pl.col(name), pl.col(name).shift(1)
            is_after = (previous < value) | ((previous == value) & is_after)
        # A comparison with null is null, so rows with a null key are sorted: nulls come last.
        if frame.select(is_after.slice(1).all(ignore_nulls=False)).item():
            return frame
        frame = sort_rows(frame, key)
        repeated = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in key)
        at = frame.select((repeated & (pl.int_range(pl.len()) > 0)).arg_true()).to_series()
        if at.is_empty():
            return frame
        later, earlier = frame[at], frame[at - 1]
        for column in cls.columns:
            same = earlier[column.name].eq_missing(later[column.name])
            if not same.all():
                row = (~same).arg_true()[0]
                raise IntegrityError(
                    f"two rows of {cls.table_name} with the key "
                    f"{format_key(key, later.row(row, named=True))} differ in {column.name}: "
                    f"{format_cell(earlier, column, row)} and {format_cell(later, column, row)}",
                    hint="The service returned two values for one row. Try again later",
                )
        return frame.filter(~(repeated & (pl.int_range(pl.len()) > 0)))

    @classmethod
    def check(cls, frame: pl.DataFrame, chain: Chain) -> None:
        """Check the invariants of the table in *frame*.

        Raises
        ------
        IntegrityError
            A row contradicts itself or the chain; the message has its key.
        """
        rules, is_violated = build_rules(cls.columns, cls.invariants, chain)
        if not rules:
            return
        for rule, found in zip(rules, frame.select(is_violated).row(0), strict=True):
            if found:
                row = frame.filter(rule.violated).row(0, named=True)
                raise IntegrityError(
                    f"{cls.table_name}: {rule.explain(row)} (in the row with the key "
                    f"{format_key(cls.key(), row)})",
                    hint="The response was discarded. Try again later, or report it",
                )

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
                    describe_source(column),
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


def sort_rows(rows: pl.DataFrame, key: list[str], schema: pl.Schema | None = None) -> pl.DataFrame:
    """Return *rows* sorted by *key*, nulls last, in the types of *schema* if there is one."""
    types = schema or rows.schema
    if not key:
        return rows.cast(types)
    packed = pack_key(rows, key)
    by = key if packed is None else [pl.lit(packed)]
    order = rows.select(pl.arg_sort_by(by, nulls_last=True, maintain_order=True)).to_series()
    # One column at a time: `DataFrame.sort` first copies all rows, to join their chunks. One chunk
    # is gathered twice as fast as many, but this copy costs memory, and rows to widen are many.
    done: list[pl.Series] = []
    for column in rows.get_columns():
        ordered = (column if schema else column.rechunk())[order]
        done.append(ordered.cast(types[column.name]))
    return pl.DataFrame(done)


def pack_key(rows: pl.DataFrame, key: Sequence[str]) -> pl.Series | None:
    """Return one number per row, in the order of *key*; None if its values do not fit into one.

    One number sorts three times as fast as several columns.
    """
    packed, size = pl.zeros(rows.height, pl.Int64, eager=True), 1
    for name in reversed(key):
        column = rows[name]
        if not column.dtype.is_integer() or column.is_empty() or column.null_count():
            return None
        low: Any = column.min()
        high: Any = column.max()
        count = high - low + 1
        if max(-low, high, size * count) >= MAX_PACKED:
            return None
        packed += (column.cast(pl.Int64) - low) * size
        size *= count
    return packed.cast(pl.UInt32 if size < 2**32 else pl.Int64).rechunk()


def describe_source(column: Column) -> str:
    """Return the wire fields of a column, for the data dictionary."""
    if paths := column.wire_paths or column.context_paths:
        return ", ".join(paths)
    return "list position" if isinstance(column, Position) else "derived"


def format_key(key: Sequence[str], row: Mapping[str, Any]) -> str:
    """Return the key of *row* for a message; long values are cut."""
    return f"{{{', '.join(f'{name!r}: {shorten(row[name])}' for name in key)}}}"


def format_cell(frame: pl.DataFrame, column: Column, row: int) -> str:
    """Return one cell for a message."""
    return shorten(frame[column.name].to_list()[row])
