"""Selectors of generation 2: each is a member of the JSON body of a request."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from beaconframes.endpoint.identifiers import cut, each
from beaconframes.endpoint.parameter import Absent, Batch, Fields, Parameter, Refused, View, Wanted
from beaconframes.endpoint.resolving import members_of, whole
from beaconframes.endpoint.sets import NAMED, ValidatorSet
from beaconframes.endpoint.sets import validators as identified
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column


@dataclass(frozen=True)
class OnChain(Parameter):
    """The chain, which every request names."""

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the explorer's chain."""
        return [Batch({"chain": chain_head.chain.name})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return all rows: a dataset has one chain, and who asks for another is told before."""
        return rows


@dataclass(frozen=True)
class ValidatorsIn(Parameter):
    """The set of validators: identifiers, in batches, or one of the other ways to name it.

    ``column`` and ``pubkey`` are where the rows say which validator they are of, if they do.
    ``batched`` says what becomes of more identifiers than one request takes: rows stand side by
    side, amounts are added, and anything else is refused. ``optional`` means that no set is all.
    """

    column: Column | None = None
    _: KW_ONLY
    pubkey: Column | None = None
    every: bool = True
    optional: bool = False
    batched: Literal["side by side", "added", "refused"] = "side by side"

    args = ("validators",)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for a set by name, and batches of identifiers as many as allowed."""
        asked = values["validators"]
        if asked is None:
            if self.optional:
                return [Batch()]
            raise UsageError(
                "validators=None names no validators",
                hint="Give indices or public keys, or a set such as bf.v2.dashboard(1)",
            )
        named = asked if isinstance(asked, ValidatorSet) else identified(asked)
        member = named.member()
        if NAMED not in member:
            return [Batch({"validator": member})]
        return self.parts(self.batch(member[NAMED]), chain_head.at_once) if member[NAMED] else []

    def batch(self, items: list[int | str]) -> Batch:
        """Return what naming *items* sends and selects."""
        wanted: tuple[Wanted, ...] = ()
        if self.column is not None and self.pubkey is not None:
            indices = [item for item in items if isinstance(item, int)]
            keys = [item for item in items if isinstance(item, str)]
            wanted = (Wanted({self.column.name: indices, self.pubkey.name: keys}, self.every),)
        return Batch({"validator": {NAMED: items}}, wanted)

    def parts(self, batch: Batch, at_most: int) -> list[Batch]:
        """Return the identifiers in parts of *at_most*, or refuse where parts make no whole."""
        items = (batch.fields.get("validator") or {}).get(NAMED, [])
        if len(items) <= at_most:
            return [batch]
        if self.batched == "refused":
            raise UsageError(
                f"{len(items)} validators are more than the {at_most} of one request, and what it "
                "gives for a set does not follow from what it gives for parts of it",
                hint=f"Ask for {at_most} at most, or for all of them by a set that the service "
                "keeps, such as bf.v2.dashboard(1)",
            )
        if self.batched == "added" and len({type(item) for item in items}) > 1:
            raise UsageError(
                f"{len(items)} validators take several requests, and a validator named by its "
                "index in one and by its key in another would count twice",
                hint="Name all of them by index, or all by public key",
            )
        return [self.batch(items[n : n + at_most]) for n in range(0, len(items), at_most)]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the validators in the set."""
        member = fields.get("validator")
        if member is None:
            if self.optional:
                return rows
            raise Refused("validator is required")
        return rows.filter(pl.col("validator_index").is_in(members_of(member, view)))


@dataclass(frozen=True)
class EpochIn(Parameter):
    """One epoch a request: a plain number, never a word. Left out, the latest there is."""

    column: Column
    _: KW_ONLY
    finalized: bool = False

    args = ("since", "until")

    @property
    def reach(self) -> int:
        """Return one: an epoch a request."""
        return 1

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each epoch of the range."""
        span = chain_head.span(
            values["since"], values["until"], "epoch", length=1, finalized=self.finalized
        )
        return [
            Batch({"epoch": epoch}, (Wanted({self.column.name: [epoch]}),))
            for epoch in range(span.first, span.last + 1)
        ]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the epoch."""
        epoch = fields.get("epoch")
        if not whole(epoch):
            raise Refused("epoch must be a whole number from 0 up")
        if epoch > view.head.latest("epoch", view.chain, finalized=self.finalized):
            raise Absent(f"epoch {epoch} is not there yet")
        return rows.filter(pl.col(self.column.name) == epoch)


WINDOWS = {"24h": 1, "7d": 7, "30d": 30, "90d": 90, "all_time": None}
"""Rolling windows by name, in days."""


@dataclass(frozen=True)
class WindowIn(Parameter):
    """A rolling window that ends at the newest epoch there is."""

    column: Column
    _: KW_ONLY
    finalized: bool = False
    all_time: bool = True

    args = ("window",)

    @property
    def words(self) -> list[str]:
        """Return the windows that there are."""
        return [word for word, days in WINDOWS.items() if days is not None or self.all_time]

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the one window."""
        window = values["window"]
        if window not in self.words:
            raise UsageError(
                f"window={cut(window)} is none of {', '.join(map(repr, self.words))}",
                hint="Every window ends now; other ranges are loaded epoch by epoch",
            )
        return [Batch({"range": {"evaluation_window": window}})]

    def epochs(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the first and the last epoch of the window, or refuse it."""
        asked = fields.get("range")
        window = asked.get("evaluation_window") if isinstance(asked, dict) else None
        if window not in self.words:
            raise Refused(f"range.evaluation_window must be one of {', '.join(self.words)}")
        last = view.head.latest("epoch", view.chain, finalized=self.finalized)
        days = WINDOWS[window]
        return 0 if days is None else max(last - days * view.chain.epochs_per_day + 1, 0), last

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the window's epochs."""
        return rows.filter(pl.col(self.column.name).is_between(*self.epochs(fields, view)))


@dataclass(frozen=True)
class SomeOf(Parameter):
    """Some of the words that a column may have: a list in the body, or nothing for all of them."""

    arg: str
    column: Column
    words: tuple[str, ...]

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument, which is also the member's name."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the words, each once; nothing for none."""
        asked = values[self.arg]
        chosen = [] if asked is None else list(dict.fromkeys(each(asked)))
        for word in chosen:
            if word not in self.words:
                raise UsageError(
                    f"{self.arg}={cut(word)} is none of {', '.join(map(repr, self.words))}"
                )
        return [Batch({self.arg: chosen}) if chosen else Batch()]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows with any of the words; all of them for no word."""
        words = fields.get(self.arg) or []
        if not isinstance(words, list) or any(word not in self.words for word in words):
            raise Refused(f"{self.arg} must be a list of {', '.join(self.words)}")
        return rows.filter(pl.col(self.column.name).is_in(words)) if words else rows
