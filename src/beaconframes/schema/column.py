"""A column: its unit is its type, and the end of its name.

A column knows its polars type, how one wire value becomes a cell (``parse``, the definition),
how a whole list of wire values becomes a series (``build``, the same thing fast), and how the
cells go back on the wire (``encode``, what the local explorer sends).
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

if TYPE_CHECKING:
    from polars._typing import PolarsDataType


def type_name(dtype: PolarsDataType) -> str:
    """Return what a column type is called in dictionaries, such as ``Datetime(us, UTC)``."""
    return re.sub(r"\w+=|'", "", str(dtype))


@dataclass(eq=False)
class Column:
    """One column of a table: what it means, and what it is called on the wire.

    Parameters
    ----------
    doc
        One sentence for the data dictionary.
    key
        Whether the column is part of the table's key, and so is never null.
    nullable
        Whether it may be null although it is part of the key.
    wire
        The field's path on the wire, the specification's spelling first, then every other
        spelling that is sent for the same thing. Left out: the column's own name.
    absent
        What a field that was left out stands for. Left out: null.
    beside
        Where the value stands when it is not in the record: paths into the answer's envelope, such
        as ``range.epoch.start``, or into the request, such as ``asked.epoch``. The first that has
        a value counts.
    """

    doc: str
    _: KW_ONLY
    key: bool = False
    nullable: bool = False
    wire: str | tuple[str, ...] = ()
    absent: int | None = None
    beside: str | tuple[str, ...] = ()
    name: str = field(default="", init=False)

    dtype: ClassVar[PolarsDataType]
    sent_as: ClassVar[Any]
    unit: ClassVar[str] = ""
    ending: ClassVar[str] = ""
    derived: ClassVar[bool] = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every wire path of the column, the one that the specification uses first."""
        if self.beside:
            return ()
        if not self.wire:
            return (self.name,)
        return (self.wire,) if isinstance(self.wire, str) else self.wire

    def wire_type(self) -> Any:
        """Return the JSON type that the fast way takes; any other goes the slow way."""
        return self.sent_as

    def parse(self, value: Any) -> Any:
        """Return *value* from the wire as what ``build`` takes; raise ValueError when it cannot."""
        raise NotImplementedError  # pragma: no cover

    def build(self, values: list[Any]) -> pl.Series:
        """Return parsed wire *values* as a series of the column's type."""
        series = pl.Series(self.name, values, dtype=self.dtype)
        if self.absent is None or not series.null_count():
            return series
        return series.fill_null(self.absent)

    def encode(self) -> pl.Expr:
        """Return the expression that turns cells back into what the wire carries."""
        return pl.col(self.name)
