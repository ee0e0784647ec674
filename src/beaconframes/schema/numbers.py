"""Columns of numbers: counts, the chain's units, exact amounts, rates, yes or no."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import polars as pl

from beaconframes.schema.column import Column

FAR_FUTURE = 2**63 - 1
"""How the API writes "never" in an epoch; 2**64 - 1 and roundings of both also occur."""

ALMOST_NEVER = 9_200_000_000_000_000_000
EXACT_IN_A_FLOAT = 2**53


class Whole(Column):
    """A whole number that fits 64 bits."""

    dtype = pl.Int64
    sent_as = int

    def parse(self, value: Any) -> int | None:
        """Return the number."""
        return whole(value)


class Natural(Whole):
    """A whole number from 0 up that fits 64 bits."""

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as Int64; refuse a negative one."""
        series = super().build(values)
        least: Any = series.min()
        if least is not None and least < 0:
            raise ValueError(self.name)
        return series


@dataclass(eq=False)
class Count(Natural):
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


class Day(Whole):
    """A day of the chain: full days since genesis."""

    unit = "day"


class Period(Natural):
    """A sync-committee period."""

    unit = "period"


class Epoch(Natural):
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


class Gwei(Whole):
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

    def wire_type(self) -> Any:
        """Return the JSON type: a number, and where the wire has text, text as well."""
        return int | str if self.text else int

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as exact decimals, by way of 128-bit integers (16 times faster)."""
        whole_wei = self._digits(values) if self.text else None
        if whole_wei is None:
            if self.text:
                values = [self.parse(v) if isinstance(v, str) else v for v in values]
            whole_wei = pl.Series(self.name, values, dtype=pl.Int128)
        if self.absent is not None and whole_wei.null_count():
            whole_wei = whole_wei.fill_null(self.absent)
        return whole_wei.cast(self.dtype)

    def _digits(self, values: list[Any]) -> pl.Series | None:
        """Return *values* read as one, if all of them are text; None if one needs a closer look."""
        try:
            texts = pl.Series(self.name, values, dtype=pl.String)
            numbers = texts.cast(pl.Int128)
        except (TypeError, pl.exceptions.PolarsError):
            return None
        return None if texts.str.starts_with("+").any() else numbers

    def encode(self) -> pl.Expr:
        """Return bare integers, or text where the wire has text."""
        bare = pl.col(self.name).cast(pl.Int128)
        return bare.cast(pl.String) if self.text else bare


@dataclass(eq=False)
class Units(Wei):
    """An exact amount of a token other than ether, in its smallest unit.

    For a token of 18 places, 10**18 of them are one token. It is no wei: wei is a part of ether.
    """

    unit = "token base units"
    ending = ""


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
        number = float(value)
        if not isfinite(number):
            raise ValueError(value)
        return number


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


class Indices(Column):
    """A list of whole numbers in one cell, such as the validators of a committee, in order."""

    dtype = pl.List(pl.Int64)
    sent_as = list[int]

    def parse(self, value: Any) -> list[int | None] | None:
        """Return the numbers; an array with a hole in it is no list of numbers."""
        if value is None:
            return None
        if not isinstance(value, list) or None in value:
            raise ValueError(value)
        return [whole(item) for item in value]

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as lists; refuse a negative number in one."""
        series = super().build(values)
        least: Any = series.list.min().min()
        if least is not None and least < 0:
            raise ValueError(self.name)
        return series


@dataclass(eq=False)
@dataclass(eq=False)
class Position(Count):
    """The place of an item in the list that the row was made from, from 0.

    ``of`` is how many there always are: if one is lost, nobody can tell the places of the others.
    """

    of: int | None = None

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
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT_IN_A_FLOAT:
        return int(value)
    if (
        isinstance(value, str)
        and value.removeprefix("-").isascii()
        and value.removeprefix("-").isdigit()
    ):
        return int(value)
    raise ValueError(value)
