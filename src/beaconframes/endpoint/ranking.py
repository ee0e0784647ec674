"""Rankings in a JSON body: which one, in which order, and who is in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.identifiers import cut, each
from beaconframes.endpoint.parameter import Batch, Fields, Parameter, Refused, View
from beaconframes.endpoint.sets import Entities, party, worded
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead

ORDERS = ("asc", "desc")


@dataclass(frozen=True)
class SortedBy(Parameter):
    """What to sort by, out of *words*, and which way round."""

    words: tuple[str, ...]

    args = ("sort_by", "sort_order")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the two words."""
        for name, words in (("sort_by", self.words), ("sort_order", ORDERS)):
            if values[name] not in words:
                known = ", ".join(map(repr, words))
                raise UsageError(f"{name}={cut(values[name])} is none of {known}")
        return [Batch({name: values[name] for name in self.args})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return all rows: only what is made of them is sorted. Refuse other words."""
        by, order = fields.get("sort_by", self.words[0]), fields.get("sort_order", "desc")
        if by not in self.words or order not in ORDERS:
            raise Refused(f"sort_by must be one of {self.words}, and sort_order one of {ORDERS}")
        return rows

    def of_sums(self, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
        """Return *rows* in their order; where they are alike, in the order they had."""
        return rows.sort(
            fields.get("sort_by", self.words[0]),
            descending=fields.get("sort_order", "desc") == "desc",
            nulls_last=True,
            maintain_order=True,
        )


@dataclass(frozen=True)
class EntityIn(Parameter):
    """Entities by name, one a request."""

    args = ("entity",)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each name."""
        names = dict.fromkeys(worded(name, "entity") for name in each(values["entity"]))
        return [Batch({"entity": name}) for name in names]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return all rows: shares are of all of them."""
        if not isinstance(fields.get("entity"), str):
            raise Refused("entity must be a text")
        return rows

    def of_sums(self, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
        """Return the rows of the entity."""
        return rows.filter(pl.col("entity") == fields["entity"])


@dataclass(frozen=True)
class Searched(Parameter):
    """A text to look for. How it is looked for is the service's business, and not published."""

    args = ("search",)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the text, or nothing."""
        text = values["search"]
        return [Batch() if text is None else Batch({"search": worded(text, "search")})]


@dataclass(frozen=True)
class PartyIn(Parameter):
    """An owner or an operator, by id or path: only who has validators in common with them."""

    arg: str

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument, which is also the member's name."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the owner or operator as a set of validators names them, or nothing."""
        if values[self.arg] is None:
            return [Batch()]
        value = party(values[self.arg], self.arg)
        return [Batch(Entities(**{self.arg: value}).member()["entities"])]
