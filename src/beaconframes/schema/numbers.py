"""Number columns: counts, units of the chain, exact amounts, rates, booleans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import Any

import polars as pl

from beaconframes.schema.columns import Column

FAR_FUTURE = 2**63 - 1
"""The epoch that the API writes for "never"; 2**64 - 1 and rounded forms also occur."""

FAR_FUTURE_THRESHOLD = 9_200_000_000_000_000_000
LARGEST_EPOCH = 2**64
"""The largest spelling of "never" as a float; an epoch has 64 bits."""
LARGEST_EPOCH_ROUNDED = 18_446_744_073_709_552_000
"""The same number as JavaScript writes it."""
MAX_EXACT_FLOAT = 2**53
WEI_PER_ETHER = 10**18
DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
"""A number of JSON as text; Python's `float` also takes 1_0, +5 and digits of other scripts."""


class Whole(Column):
    """A whole number that fits into 64 bits."""

    dtype = pl.Int64
    json_type = int

    def parse(self, value: Any) -> int | None:
        """Return the number."""
        return parse_whole(value)


class Natural(Whole):
    """A whole number that is not negative and fits into 64 bits."""

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as Int64; raise ValueError for a negative one."""
        series = super().build(values)
        least: Any = series.min()
        if least is not None and least < 0:
            raise ValueError(self.name)
        return series


@dataclass(eq=False)
class Count(Natural):
    """A whole number without a unit: a count, an index, a position.

    ``none`` is the number that the service sends where there is no value; it becomes null.
    """

    none: int | None = None

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as Int64, the number ``none`` as null."""
        series = super().build(values)
        return series if self.none is None else series.set(series == self.none, None)

    def encode(self) -> pl.Expr:
        """Return the cells with null written as ``none``."""
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
    """An epoch; null is the far future ("never")."""

    unit = "epoch"

    def parse(self, value: Any) -> int | None:
        """Return the epoch, or None for any spelling of the far future."""
        if isinstance(value, float) and FAR_FUTURE_THRESHOLD <= value <= LARGEST_EPOCH:
            return None
        return parse_whole(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as Int64, the far future as null."""
        if not self.key:
            values = [
                None
                if v is not None
                and v >= FAR_FUTURE_THRESHOLD
                and (v <= LARGEST_EPOCH or v == LARGEST_EPOCH_ROUNDED)
                else v
                for v in values
            ]
        return super().build(values)

    def encode(self) -> pl.Expr:
        """Return the epochs with null written as the far future."""
        return pl.col(self.name) if self.key else pl.col(self.name).fill_null(FAR_FUTURE)


class Gwei(Whole):
    """An exact amount in gwei."""

    unit = "gwei"
    name_suffix = "_gwei"


@dataclass(eq=False)
class Wei(Column):
    """An exact amount in wei; with ``text`` the wire has it as a decimal string."""

    text: bool = False

    dtype = pl.Decimal(28, 0)
    json_type = int
    unit = "wei"
    name_suffix = "_wei"

    def parse(self, value: Any) -> int | None:
        """Return the amount, None for an empty text."""
        return None if value == "" else parse_whole(value)

    def wire_type(self) -> Any:
        """Return the JSON type: a number, and with ``text`` also a string."""
        return int | str if self.text else int

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as exact decimals, through 128-bit integers (16 times faster)."""
        amounts = self._build_from_text(values) if self.text else None
        if amounts is None:
            if self.text:
                values = [self.parse(v) if isinstance(v, str) else v for v in values]
            amounts = pl.Series(self.name, values, dtype=pl.Int128)
        return amounts.cast(self.dtype)

    def _build_from_text(self, values: list[Any]) -> pl.Series | None:
        """Return *values* as integers if all of them are texts of digits, None otherwise."""
        try:
            texts = pl.Series(self.name, values, dtype=pl.String)
            numbers = texts.cast(pl.Int128)
        except (TypeError, pl.exceptions.PolarsError):
            return None
        # polars reads "+1" as a number, which `parse_whole` refuses.
        has_plus = texts.str.contains("+", literal=True).any()
        return None if has_plus else numbers

    def encode(self) -> pl.Expr:
        """Return integers, or with ``text`` strings."""
        bare = pl.col(self.name).cast(pl.Int128)
        return bare.cast(pl.String) if self.text else bare


class Ether(Wei):
    """An exact amount in wei that the wire has in ether, as the text of a decimal number."""

    def parse(self, value: Any) -> Any:
        """Return the text of the number; raise ValueError for a float, which may be rounded."""
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* in wei; raise ValueError for more than 18 decimal places."""
        amounts = [None if value is None else parse_ether(value) for value in values]
        return pl.Series(self.name, amounts, dtype=pl.Int128).cast(self.dtype)

    def wire_type(self) -> Any:
        """Return the JSON type: a string."""
        return str

    def encode(self) -> pl.Expr:
        """Return ether as text, without zeros at the end."""
        wei = pl.col(self.name).cast(pl.Int128)
        rest = (wei % WEI_PER_ETHER).cast(pl.String).str.zfill(18)
        text = pl.format("{}.{}", wei // WEI_PER_ETHER, rest)
        return text.str.strip_chars_end("0").str.strip_chars_end(".")


@dataclass(eq=False)
class DecimalPlaces(Count):
    """The number of digits after the decimal point in the text column ``of`` of the same row."""

    of: str = ""

    derived = True

    def count(self) -> pl.Expr:
        """Return the expression of the number of digits; null stays null."""
        parts = pl.col(self.of).str.split(".")
        return parts.list.get(1, null_on_oob=True).fill_null("").str.len_chars().cast(pl.Int64)


@dataclass(eq=False)
class Units(Wei):
    """An exact amount of a token other than ether, in its smallest unit.

    One token with 18 decimal places is 10**18 of them. Wei is the unit of ether alone.
    """

    unit = "token base units"
    name_suffix = ""


class Fraction(Column):
    """A share or a rate: 0.03 is 3 %."""

    dtype = pl.Float64
    json_type = float
    unit = "fraction"

    def parse(self, value: Any) -> float | None:
        """Return the number as a float."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(value)  # noqa: TRY004  # the checked decoder expects ValueError
        if isinstance(value, str) and not DECIMAL.fullmatch(value):
            raise ValueError(value)
        number = float(value)
        if not isfinite(number):
            raise ValueError(value)
        return number


class Number(Fraction):
    """A measured number without a unit, such as a price."""

    unit = ""


class Flag(Column):
    """A boolean."""

    dtype = pl.Boolean
    json_type = bool

    def parse(self, value: Any) -> bool | None:
        """Return a JSON boolean; raise ValueError for anything else."""
        if value is None or isinstance(value, bool):
            return value
        raise ValueError(value)


class Indices(Column):
    """A list of whole numbers in one cell, such as the validators of a committee, in order."""

    dtype = pl.List(pl.Int64)
    json_type = list[int]

    def parse(self, value: Any) -> list[int | None] | None:
        """Return the numbers; raise ValueError for a null in the list."""
        if value is None:
            return None
        if not isinstance(value, list) or None in value:
            raise ValueError(value)
        return [parse_whole(item) for item in value]

    def build(self, values: list[Any]) -> pl.Series:
        """Return *values* as lists; raise ValueError for a negative number."""
        series = super().build(values)
        least: Any = series.list.min().min()
        if least is not None and least < 0:
            raise ValueError(self.name)
        return series


@dataclass(eq=False)
class Position(Count):
    """The position of an item in the list that its row comes from, counted from 0."""

    derived = True


def parse_ether(text: Any) -> int:
    """Return the wei of an amount of ether, given as the text of a decimal number."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII):
        raise ValueError(text)
    whole, _, places = text.partition(".")
    places = places.rstrip("0")
    if len(places) > 18:
        raise ValueError(text)
    return int(whole) * WEI_PER_ETHER + int(places.ljust(18, "0"))


def parse_whole(value: Any) -> int | None:
    """Return a whole number exactly, from a JSON number or a text of digits.

    A number with a decimal point or an exponent is accepted only below 2**53, where floats are
    exact. A larger one may have been rounded, and raises ValueError.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT_FLOAT:
        return int(value)
    if (
        isinstance(value, str)
        and value.removeprefix("-").isascii()
        and value.removeprefix("-").isdigit()
    ):
        return int(value)
    raise ValueError(value)
