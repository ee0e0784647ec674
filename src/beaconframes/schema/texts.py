"""Text columns: plain, coded, hexadecimal, and JSON without a fixed shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.schema.columns import Column
from beaconframes.schema.numbers import parse_whole

if TYPE_CHECKING:
    from collections.abc import Mapping


HEXADECIMAL = "^0x[0-9a-f]*$"


class Text(Column):
    """Text, unchanged. Text from the chain can hold anything: do not trust it."""

    dtype = pl.String
    json_type = str

    def parse(self, value: Any) -> str | None:
        """Return text; a number becomes the text of its digits."""
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise ValueError(value)


@dataclass(eq=False)
class Code(Text):
    """One of a few codes, decoded to a word; an unknown code stays unchanged."""

    words: Mapping[str, str] = field(default_factory=dict)

    def build(self, values: list[Any]) -> pl.Series:
        """Return the words."""
        return super().build(values).replace(dict(self.words))

    def encode(self) -> pl.Expr:
        """Return the codes."""
        return pl.col(self.name).replace({word: code for code, word in self.words.items()})


@dataclass(eq=False)
class NumberCode(Column):
    """A code that is a number on the wire, decoded to a word."""

    words: Mapping[str, str] = field(default_factory=dict)

    dtype = pl.String
    json_type = int

    def parse(self, value: Any) -> int | None:
        """Return the code."""
        return parse_whole(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return the words."""
        codes = pl.Series(self.name, values, dtype=pl.Int64)
        words = codes.cast(pl.String)
        for code, word in self.words.items():
            words = words.set(codes == int(code), word)
        return words

    def encode(self) -> pl.Expr:
        """Return the codes."""
        codes = {word: code for code, word in self.words.items()}
        return pl.col(self.name).replace(codes).cast(pl.Int64)


class DecimalText(Text):
    """An exact decimal number as text, for any number of decimal places."""

    unit = "decimal text"

    def parse(self, value: Any) -> str | None:
        """Return the digits; raise ValueError for a float, which may have been rounded."""
        if isinstance(value, float):
            raise ValueError(value)  # noqa: TRY004  # the checked decoder expects ValueError
        return super().parse(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return the texts; raise ValueError for one that is not a number."""
        series = super().build(values)
        if not series.str.contains(r"^-?[0-9]+(\.[0-9]+)?$").all():
            raise ValueError(self.name)
        return series


@dataclass(eq=False)
class Hex(Text):
    """Bytes as lower-case ``0x`` text; the texts ``none`` mean "no value" and become null.

    ``size`` is the number of bytes, where it is always the same.
    """

    none: tuple[str, ...] = ()
    size: int | None = None

    def build(self, values: list[Any]) -> pl.Series:
        """Return lower-case text; raise ValueError for text that is not hexadecimal."""
        series = super().build(values).str.to_lowercase()
        if not series.str.contains(HEXADECIMAL).all():
            raise ValueError(self.name)
        return series.replace(dict.fromkeys(self.none)) if self.none else series


class Json(Column):
    """A part of the response without a fixed shape, as JSON text."""

    dtype = pl.String
    json_type = msgspec.Raw

    def parse(self, value: Any) -> msgspec.Raw | None:
        """Return the part as raw JSON."""
        return None if value is None else msgspec.Raw(msgspec.json.encode(value))

    def build(self, values: list[Any]) -> pl.Series:
        """Return compact JSON text; a null or omitted part is null."""
        parts = [b"" if value is None else bytes(value) for value in values]
        texts = [None if part in (b"", b"null") else compact(part).decode() for part in parts]
        return pl.Series(self.name, texts, dtype=self.dtype)


def compact(part: bytes) -> bytes:
    """Return the same JSON without white space and unnecessary escapes."""
    return msgspec.json.encode(msgspec.json.decode(part))
