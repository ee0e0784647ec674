"""Columns of text: plain, coded, hexadecimal, and JSON without a fixed shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.schema.column import Column
from beaconframes.schema.numbers import whole

if TYPE_CHECKING:
    from collections.abc import Mapping


HEXADECIMAL = "^0x[0-9a-f]*$"


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
class NumberCode(Column):
    """A code that the wire writes as a number, shown as the word that it stands for."""

    words: Mapping[str, str] = field(default_factory=dict)

    dtype = pl.String
    sent_as = int

    def parse(self, value: Any) -> int | None:
        """Return the code."""
        return whole(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return the words."""
        codes = pl.Series(self.name, values, dtype=pl.Int64)
        # Few codes, many rows: each code is put into words once.
        few = codes.drop_nulls().unique()
        words = few.cast(pl.String).replace(dict(self.words))
        return codes.replace_strict(few, words, default=None, return_dtype=pl.String)

    def encode(self) -> pl.Expr:
        """Return the codes."""
        codes = {word: code for code, word in self.words.items()}
        return pl.col(self.name).replace(codes).cast(pl.Int64)


class DecimalText(Text):
    """An exact decimal number as text, where no type holds every number of places."""

    unit = "decimal text"

    def parse(self, value: Any) -> str | None:
        """Return the digits; a number with a fraction has been rounded on its way."""
        if isinstance(value, float):
            raise ValueError(value)  # noqa: TRY004  # cell by cell, ValueError is the sign
        return super().parse(value)

    def build(self, values: list[Any]) -> pl.Series:
        """Return the texts; refuse one that is no number."""
        series = super().build(values)
        if not series.str.contains(r"^-?[0-9]+(\.[0-9]+)?$").all():
            raise ValueError(self.name)
        return series


class Asked(Text):
    """What was asked for, where the answer does not repeat it; ``wire`` is the request's field."""

    derived = True

    @property
    def field(self) -> str:
        """Return the field of the request, which is its column's name unless ``wire`` says else."""
        return super().spellings[0]

    @property
    def spellings(self) -> tuple[str, ...]:
        """None: it is not in the answer."""
        return ()


@dataclass(eq=False)
class Hex(Text):
    """Bytes as lower-case ``0x`` text; ``none`` are placeholders that mean "no such thing"."""

    none: tuple[str, ...] = ()

    def build(self, values: list[Any]) -> pl.Series:
        """Return lower-case text, placeholders as null; refuse what is not hexadecimal."""
        series = super().build(values).str.to_lowercase()
        if not series.str.contains(HEXADECIMAL).all():
            raise ValueError(self.name)
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
        texts = [None if part in (b"", b"null") else canonical(part).decode() for part in parts]
        return pl.Series(self.name, texts, dtype=self.dtype)


def canonical(part: bytes) -> bytes:
    """Return JSON that says the same, without white space and needless escapes."""
    return msgspec.json.encode(msgspec.json.decode(part))
