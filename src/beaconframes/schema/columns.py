"""Columns of a table: the column type and the end of the column name both state the unit.

A column has a polars type and three conversions. ``parse`` converts one wire value, and defines
its meaning. ``build`` converts a list of wire values to a series, with the same result but faster.
``encode`` converts cells back to wire values, for the local explorer.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import polars as pl

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

BUILD_ERRORS = (TypeError, OverflowError, ValueError, pl.exceptions.PolarsError)
"""What `Column.build` raises for a value that the column cannot hold."""


@dataclass(eq=False)
class Column:
    """One column of a table: its meaning, and its field on the wire.

    Parameters
    ----------
    doc
        One sentence for the data dictionary.
    key
        Whether the column is part of the table's key, and so is never null.
    nullable
        Whether the service may send null, or leave the field out. Any other field must have a
        value in every record.
    optional
        Whether responses may have no such field at all, such as those of an older service.
    wire
        The field's path on the wire: the specification's spelling first, then the other
        spellings of the same field. Omitted: the column's own name.
    default
        The value of a field that the service leaves out, such as 0 for zero amounts. Null is
        invalid.
    context
        Where the value is when it is not in the record: paths into the response's envelope, such
        as ``range.epoch.start``, or into the request, such as ``request.epoch``. The first path
        that has a value counts.
    minimum
        The smallest valid value, such as 0 for balances. Omitted: any.
    final_when
        The values of final rows, for columns that state finality.
    """

    doc: str
    _: KW_ONLY
    key: bool = False
    nullable: bool = False
    optional: bool = False
    wire: str | tuple[str, ...] = ()
    default: int | None = None
    context: str | tuple[str, ...] = ()
    minimum: int | None = None
    final_when: tuple[Any, ...] = ()
    name: str = field(default="", init=False)

    dtype: ClassVar[PolarsDataType]
    json_type: ClassVar[Any]
    unit: ClassVar[str] = ""
    name_suffix: ClassVar[str] = ""
    derived: ClassVar[bool] = False

    @property
    def wire_paths(self) -> tuple[str, ...]:
        """Every wire path, the specification's spelling first; none if only derived."""
        if self.context or (self.derived and not self.wire):
            return ()
        if not self.wire:
            return (self.name,)
        return (self.wire,) if isinstance(self.wire, str) else self.wire

    @property
    def context_paths(self) -> tuple[str, ...]:
        """Every path of the column into the envelope or the request."""
        return (self.context,) if isinstance(self.context, str) else self.context

    @property
    def first_path(self) -> str:
        """The path that an error names: of the record, or of the envelope or the request."""
        return (*self.wire_paths, *self.context_paths, self.name)[0]

    @property
    def may_be_null(self) -> bool:
        """Whether a cell may have no value on the wire."""
        from_envelope = bool(self.context) and not self.key
        return self.nullable or self.optional or self.derived or from_envelope

    def wire_type(self) -> Any:
        """Return the JSON type that the fast decoder accepts; others go to the checked decoder."""
        return self.json_type

    def parse(self, value: Any) -> Any:
        """Return wire *value* as an item for ``build``; raise ValueError for an invalid one."""
        raise NotImplementedError  # pragma: no cover

    def build(self, values: list[Any]) -> pl.Series:
        """Return parsed wire *values* as a series of the column's type."""
        return pl.Series(self.name, values, dtype=self.dtype)

    def encode(self) -> pl.Expr:
        """Return the expression that converts cells to their wire form."""
        return pl.col(self.name)


@dataclass(frozen=True)
class CalendarField:
    """A wire field that follows from the chain's calendar, such as the week of an epoch.

    The local explorer sends it. Loaders drop it, because column ``of`` and the calendar imply it.
    """

    wire: str
    of: str
    unit: Literal["week", "day"]
    part: Literal["number", "start", "end"]


WEEK_OF_EPOCH = (
    CalendarField("week", "epoch", "week", "number"),
    CalendarField("week_start", "epoch", "week", "start"),
    CalendarField("week_end", "epoch", "week", "end"),
)


@dataclass(frozen=True, eq=False)
class TableSpec:
    """The part of a table that the decoders and the encoder use."""

    table_name: str
    columns: tuple[Column, ...] = ()
    calendar_fields: tuple[CalendarField, ...] = ()
    public_spelling: int = 0
    is_partial: bool = False
    filled_objects: tuple[str, ...] = ()

    @cached_property
    def list_columns(self) -> list[Column]:
        """Return the columns whose values are the items of a list in the record."""
        return [c for c in self.columns if any(path.endswith("[]") for path in c.wire_paths)]

    @cached_property
    def context_columns(self) -> list[Column]:
        """Return the columns whose values are in the response's envelope or in the request."""
        return [column for column in self.columns if column.context]
