"""Selectors of subjects: validators, and numbers asked for one by one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint import identifiers
from beaconframes.endpoint.parameter import Batch, Fields, Parameter, Refused, View, Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column


UNRESOLVED = "did not resolve to a validator index"
"""What the service says when none of the identifiers is an index, or the key of a validator."""


@dataclass(frozen=True)
class Identifiers(Parameter):
    """Validators by index or public key, in batches; ``arg`` is also the path placeholder.

    ``every`` says that each of them must have rows: not so where none is an answer, as for blocks.
    """

    arg: str
    column: Column
    _: KW_ONLY
    pubkey: Column | None = None
    at_most: int = 100
    longest: int | None = 7_500
    every: bool = True

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return batches of at most ``at_most`` identifiers that still fit into a URL."""
        return [
            Batch({self.arg: ",".join(batch)}, self.wanted(batch))
            for batch in identifiers.batches(
                identifiers.normalise(values[self.arg]), self.at_most, self.longest
            )
        ]

    def wanted(self, batch: list[str]) -> tuple[Wanted, ...]:
        """Return the indices and keys of *batch*, as far as the rows can be checked for them."""
        indices = [int(item) for item in batch if not item.startswith("0x")]
        keys = [item for item in batch if item.startswith("0x")]
        if self.pubkey is not None:
            return (Wanted({self.column.name: indices, self.pubkey.name: keys}, self.every),)
        return (Wanted({self.column.name: indices}, self.every, unnamed=keys),)

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the identified validators."""
        return rows.filter(pl.col(self.column.name).is_in(sorted(self.found(fields, view))))

    def found(self, fields: Fields, view: View) -> set[int]:
        """Return the validators that a request names, or refuse it."""
        indices, keys = self.named(fields)
        found = {*indices, *(n for key in keys if (n := view.index_of(key)) is not None)}
        if not found:
            raise Refused(f"invalid validator argument, pubkey(s) {UNRESOLVED}")
        return found

    def named(self, fields: Fields) -> tuple[list[int], list[str]]:
        """Return the indices and the public keys that a request names, or refuse it."""
        items = fields[self.arg].split(",")
        if len(items) > self.at_most:
            raise Refused(f"only a maximum of {self.at_most} query parameters are allowed")
        indices, keys = [], []
        for item in items:
            if identifiers.is_pubkey(item):
                keys.append(f"0x{item.lower().removeprefix('0x')}")
            elif (index := identifiers.numeral(item)) is not None:
                indices.append(index)
            else:
                raise Refused(f"invalid validator-parameter: {item}")
        return indices, keys


@dataclass(frozen=True)
class Values(Parameter):
    """Numbers asked for one by one, such as periods: one request each.

    ``tags`` are the words that the service takes instead of a number.
    """

    arg: str
    column: Column
    _: KW_ONLY
    wire: str
    tags: tuple[str, ...] = ("latest",)
    error: str = "invalid request"

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each number or word."""
        asked = identifiers.numbers(values[self.arg], self.arg, self.tags)
        for item in asked:
            if isinstance(item, int) and self.column.unit == "slot":
                chain_head.refuse_future("slot", item)
        return [
            Batch({self.wire: str(item)}, (Wanted({self.column.name: [item]}),))
            if isinstance(item, int)
            else Batch({self.wire: item})
            for item in asked
        ]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the one number."""
        return one_number(self.column, rows, fields[self.wire], self.tags, view, self.error)


def one_number(
    column: Column, rows: pl.LazyFrame, text: str, tags: tuple[str, ...], view: View, error: str
) -> pl.LazyFrame:
    """Return the rows with the number, or with what the word *text* stands for."""
    if text in tags:
        unit: Any = column.unit
        if text == "next":
            number = view.head.latest(unit, view.chain) + 1
        elif column.unit == "day":
            return rows.filter(pl.col(column.name) == pl.col(column.name).max())
        else:
            number = view.head.latest(unit, view.chain, finalized=text == "finalized")
    elif (found := identifiers.numeral(text)) is not None:
        number = found
    else:
        raise Refused(error)
    return rows.filter(pl.col(column.name) == number)
