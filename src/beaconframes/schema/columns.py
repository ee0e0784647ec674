"""Column types: a column's unit is its type, and the end of its name.

A column knows its polars type, how one wire value becomes a cell (``parse``, the definition),
how a whole list of wire values becomes a series (``build``, the same thing fast), and how the
cells go back on the wire (``encode``, what the local explorer sends).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polars._typing import PolarsDataType

    from beaconframes.calendar import Unit

FAR_FUTURE = 2**63 - 1
"""How the API writes "never" in an epoch; 2**64 - 1 and roundings of both also occur."""

ALMOST_NEVER = 9_200_000_000_000_000_000
EXACT_IN_A_FLOAT = 2**53


@dataclass(eq=False)
class Column:
    """One column of a table: what it means, and what it is called on the wire.

    Parameters
    ----------
    doc
        One sentence for the data dictionary.
    key
        Whether the column is part of the table's key, and so is never null.
    wire
        The field's path on the wire, the specification's spelling first, then every other
        spelling that is sent for the same thing. Left out: the column's own name.
    absent
        What a field that was left out stands for. Left out: null.
    """

    doc: str
    _: KW_ONLY
    key: bool = False
    wire: str | tuple[str, ...] = ()
    absent: int | None = None
    name: str = field(default="", init=False)

    dtype: ClassVar[PolarsDataType]
    sent_as: ClassVar[Any]
    unit: ClassVar[str] = ""
    ending: ClassVar[str] = ""
    derived: ClassVar[bool] = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every wire path of the column, the one that the specification uses first."""
        if not self.wire:
            return (self.name,)
        return (self.wire,) if isinstance(self.wire, str) else self.wire

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


class _Whole(Column):
    """A whole number that fits 64 bits."""

    dtype = pl.Int64
    sent_as = int

    def parse(self, value: Any) -> int | None:
        return whole(value)


@dataclass(eq=False)
class Count(_Whole):
    """A whole number without a unit: a count, an index, a position.

    ``none`` is the number that the wire uses for "there is none"; it becomes null.
    """

    none: int | None = None

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as Int64, the marker for "none" as null."""
        series = super().build(values)
        return series if self.none is None else series.replace(self.none, None)

    def encode(self) -> pl.Expr:
        """Return the cells with null written as the marker."""
        cells = pl.col(self.name)
        return cells if self.none is None else cells.fill_null(self.none)


class Slot(Count):
    """A slot."""

    unit = "slot"


class Day(_Whole):
    """A day of the chain: full days since genesis."""

    unit = "day"


class Period(_Whole):
    """A sync-committee period."""

    unit = "period"


class Epoch(_Whole):
    """An epoch; the far-future marker is null."""

    unit = "epoch"

    def parse(self, value: Any) -> int | None:
        """Return the epoch, or None for any spelling of the far future."""
        if isinstance(value, float) and value >= ALMOST_NEVER:
            return None
        return whole(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as Int64, the far future as null."""
        if not self.key:
            values = [None if v is not None and v >= ALMOST_NEVER else v for v in values]
        return super().build(values)

    def encode(self) -> pl.Expr:
        """Return the epochs with null as the far future."""
        return pl.col(self.name) if self.key else pl.col(self.name).fill_null(FAR_FUTURE)


class Gwei(_Whole):
    """An exact amount in gwei."""

    unit = "gwei"
    ending = "_gwei"


@dataclass(eq=False)
class Wei(Column):
    """An exact amount in wei; ``text`` says that the wire carries it as a decimal string."""

    text: bool = False

    dtype = pl.Decimal(28, 0)
    sent_as = int
    unit = "wei"
    ending = "_wei"

    def parse(self, value: Any) -> int | None:
        """Return the amount; an empty text is no amount."""
        return None if value == "" else whole(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as exact decimals, by way of 128-bit integers (16 times faster)."""
        whole_wei = pl.Series(self.name, values, dtype=pl.Int128)
        if self.absent is not None and whole_wei.null_count():
            whole_wei = whole_wei.fill_null(self.absent)
        return whole_wei.cast(self.dtype)

    def encode(self) -> pl.Expr:
        """Return bare integers, or text where the wire has text."""
        bare = pl.col(self.name).cast(pl.Int128)
        return bare.cast(pl.String) if self.text else bare


class Fraction(Column):
    """A share or a rate: 0.03 is three per cent."""

    dtype = pl.Float64
    sent_as = float
    unit = "fraction"

    def parse(self, value: Any) -> float | None:
        """Return the number as a float."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(value)  # noqa: TRY004  # cell by cell, ValueError is the sign
        return float(value)


class Number(Fraction):
    """A measured number without a unit of ours, such as a price."""

    unit = ""


class Flag(Column):
    """Yes or no."""

    dtype = pl.Boolean
    sent_as = bool

    def parse(self, value: Any) -> bool | None:
        """Return a JSON boolean as it is; nothing else is yes or no."""
        if value is None or isinstance(value, bool):
            return value
        raise ValueError(value)


class Text(Column):
    """Text, kept as it came. From the chain it may say anything: never trust it."""

    dtype = pl.String
    sent_as = str

    def parse(self, value: Any) -> str | None:
        """Return text; a bare number is the text of its digits."""
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise ValueError(value)


@dataclass(eq=False)
class Code(Text):
    """One of a few codes, shown as the word it stands for; an unknown code is kept as it came."""

    words: Mapping[str, str] = field(default_factory=dict)

    def build(self, values: list[Any]) -> pl.Series:
        """Return the words."""
        return super().build(values).replace(dict(self.words))

    def encode(self) -> pl.Expr:
        """Return the codes."""
        return pl.col(self.name).replace({word: code for code, word in self.words.items()})


@dataclass(eq=False)
class Hex(Text):
    """Bytes as lower-case ``0x`` text; ``none`` are placeholders that mean "no such thing"."""

    none: tuple[str, ...] = ()

    def build(self, values: list[Any]) -> pl.Series:
        """Return lower-case text, placeholders as null."""
        series = super().build(values).str.to_lowercase()
        return series.replace(dict.fromkeys(self.none)) if self.none else series


class Json(Column):
    """A part of the answer that has no fixed shape, as JSON text."""

    dtype = pl.String
    sent_as = msgspec.Raw

    def parse(self, value: Any) -> msgspec.Raw | None:
        """Return the part as JSON again."""
        return None if value is None else msgspec.Raw(msgspec.json.encode(value))

    def build(self, values: list[Any]) -> pl.Series:
        """Return JSON text without needless white space; a null or absent part is null."""
        parts = [b"" if value is None else bytes(value) for value in values]
        texts = [
            None if part in (b"", b"null") else msgspec.json.format(part, indent=-1).decode()
            for part in parts
        ]
        return pl.Series(self.name, texts, dtype=self.dtype)


class Timestamp(Column):
    """An instant, written as RFC 3339 text on the wire."""

    dtype = pl.Datetime("us", "UTC")
    sent_as = datetime
    unit = "UTC"

    def parse(self, value: Any) -> datetime | None:
        """Return the instant; a number is Unix seconds."""
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        return msgspec.convert(value, datetime)

    def build(self, values: list[Any]) -> pl.Series:
        """Return instants in UTC; text without a zone is UTC."""
        aware = [v if v is None or v.tzinfo else v.replace(tzinfo=UTC) for v in values]
        return pl.Series(self.name, aware, dtype=self.dtype)

    def encode(self) -> pl.Expr:
        """Return RFC 3339 text."""
        return pl.col(self.name).dt.strftime("%Y-%m-%dT%H:%M:%SZ")


class UnixTime(Column):
    """An instant, written as Unix seconds on the wire."""

    dtype = pl.Datetime("us", "UTC")
    sent_as = int
    unit = "UTC"

    def parse(self, value: Any) -> int | None:
        """Return the seconds."""
        return whole(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return instants."""
        seconds = pl.Series(self.name, values, dtype=pl.Int64)
        return (seconds * 1_000_000).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")

    def encode(self) -> pl.Expr:
        """Return Unix seconds."""
        return pl.col(self.name).dt.epoch("s")


@dataclass(eq=False)
class TimeOf(Timestamp):
    """The instant at which the row's epoch, slot or day starts, derived from that column.

    With ``wire`` the service sends it too: then its word counts, and only what it left out is
    derived. Without, the column is ours alone. ``later=1`` is the start of the next one: the end.
    """

    of: str = ""
    by: Unit = "epoch"
    later: int = 0
    derived = True

    @property
    def spellings(self) -> tuple[str, ...]:
        """The wire paths, none unless some were given."""
        return super().spellings if self.wire else ()


@dataclass(eq=False)
class EpochTime(TimeOf):
    """The instant at which the row's epoch starts."""

    of: str = "epoch"


@dataclass(eq=False)
class SlotTime(TimeOf):
    """The instant at which the row's slot starts."""

    of: str = "slot"
    by: Unit = "slot"


@dataclass(eq=False)
class DayTime(TimeOf):
    """The instant at which the row's day starts."""

    of: str = "day"
    by: Unit = "day"


@dataclass(eq=False)
class Position(Count):
    """The place of an item in the list that the row was made from, from 0."""

    derived = True

    @property
    def spellings(self) -> tuple[str, ...]:
        """None: the place is not written, it is where the item stands."""
        return ()


def whole(value: Any) -> int | None:
    """Return a whole number exactly, whether it came as a number or as text.

    A number written with a fraction or an exponent is taken only where a float is still exact:
    beyond 2**53 its last digits are already lost, and a lost digit is an error.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_IN_A_FLOAT:
        return int(value)
    if (
        isinstance(value, str)
        and value.removeprefix("-").isascii()
        and value.removeprefix("-").isdigit()
    ):
        return int(value)
    raise ValueError(value)
