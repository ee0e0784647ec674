"""Parameters of V2: members of the JSON body of a request."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from beaconframes.calendar import instants
from beaconframes.endpoint.identifiers import iterate_items
from beaconframes.endpoint.parameter import (
    Batch,
    ExpectedRows,
    Fields,
    ObjectNotFound,
    Parameter,
    RequestRefused,
    Role,
    View,
)
from beaconframes.endpoint.positions_v2 import LAST_SECOND
from beaconframes.endpoint.set_members import is_natural, members_of
from beaconframes.endpoint.validator_sets import NAMED, Entities, ValidatorSet, party, worded
from beaconframes.endpoint.validator_sets import validators as identified
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column


@dataclass(frozen=True)
class OnChain(Parameter):
    """The chain, which every request names."""

    role = Role.CONTEXT

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
    required: bool = True
    optional: bool = False
    batched: Literal["side by side", "added", "refused"] = "side by side"

    filter_storage = "none"
    has_split = True
    args = ("validators",)

    @property
    def role(self) -> Role:
        """Return SUBJECT, or FILTER where a request may go without a set."""
        return Role.FILTER if self.optional else Role.SUBJECT

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the validator, if rows have it."""
        return self.column

    @property
    def pubkey_column(self) -> Column | None:
        """Return the column of the public key, if rows have it."""
        return self.pubkey

    def batch_limit(self, chain_head: ChainHead) -> int:
        """Return how many identifiers one request may name: the plan of the key decides."""
        return chain_head.at_once

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
        return self.split(self.batch(member[NAMED]), chain_head.at_once) if member[NAMED] else []

    def batch(self, items: list[int | str]) -> Batch:
        """Return what naming *items* sends and selects."""
        wanted: tuple[ExpectedRows, ...] = ()
        if self.column is not None and self.pubkey is not None:
            indices = [item for item in items if isinstance(item, int)]
            keys = [item for item in items if isinstance(item, str)]
            wanted = (
                ExpectedRows({self.column.name: indices, self.pubkey.name: keys}, self.required),
            )
        return Batch({"validator": {NAMED: items}}, wanted)

    def split(self, batch: Batch, at_most: int) -> list[Batch]:
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
            raise RequestRefused("validator is required")
        return rows.filter(pl.col("validator_index").is_in(members_of(member, view)))


@dataclass(frozen=True)
class EpochIn(Parameter):
    """One epoch a request: a plain number, never a word. Left out, the latest there is."""

    column: Column
    _: KW_ONLY
    finalized: bool = False

    role = Role.RANGE
    args = ("since", "until")

    @property
    def window(self) -> int | None:
        """Return one: an epoch a request."""
        return 1

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each epoch of the range."""
        span = chain_head.span(
            values["since"], values["until"], "epoch", length=1, finalized=self.finalized
        )
        return [
            Batch({"epoch": epoch}, (ExpectedRows({self.column.name: [epoch]}),))
            for epoch in range(span.first, span.last + 1)
        ]

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the slots of the epoch."""
        length = view.chain.slots_per_epoch
        return fields["epoch"] * length, (fields["epoch"] + 1) * length - 1

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the epoch."""
        epoch = fields.get("epoch")
        if not is_natural(epoch):
            raise RequestRefused("epoch must be a whole number from 0 up")
        if epoch > view.head.latest("epoch", view.chain, finalized=self.finalized):
            raise ObjectNotFound(f"epoch {epoch} is not there yet")
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

    role = Role.RANGE
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
                f"window={shorten(window)} is none of {', '.join(map(repr, self.words))}",
                hint="Every window ends now; other ranges are loaded epoch by epoch",
            )
        return [Batch({"range": {"evaluation_window": window}})]

    def epochs(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the first and the last epoch of the window, or refuse it."""
        asked = fields.get("range")
        window = asked.get("evaluation_window") if isinstance(asked, dict) else None
        if window not in self.words:
            raise RequestRefused(f"range.evaluation_window must be one of {', '.join(self.words)}")
        last = view.head.latest("epoch", view.chain, finalized=self.finalized)
        days = WINDOWS[window]
        return 0 if days is None else max(last - days * view.chain.epochs_per_day + 1, 0), last

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the slots of the window's epochs."""
        first, last = self.epochs(fields, view)
        return first * view.chain.slots_per_epoch, (last + 1) * view.chain.slots_per_epoch - 1

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the window's epochs."""
        return rows.filter(pl.col(self.column.name).is_between(*self.epochs(fields, view)))


@dataclass(frozen=True)
class SomeOf(Parameter):
    """Some of the words that a column may have: a list in the body, or nothing for all of them."""

    arg: str
    column: Column
    words: tuple[str, ...]

    role = Role.FILTER

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument, which is also the member's name."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the words, each once; nothing for none."""
        asked = values[self.arg]
        chosen = [] if asked is None else list(dict.fromkeys(iterate_items(asked)))
        for word in chosen:
            if word not in self.words:
                raise UsageError(
                    f"{self.arg}={shorten(word)} is none of {', '.join(map(repr, self.words))}"
                )
        return [Batch({self.arg: chosen}) if chosen else Batch()]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows with any of the words; all of them for no word."""
        words = fields.get(self.arg) or []
        if not isinstance(words, list) or any(word not in self.words for word in words):
            raise RequestRefused(f"{self.arg} must be a list of {', '.join(self.words)}")
        return rows.filter(pl.col(self.column.name).is_in(words)) if words else rows


ORDERS = ("asc", "desc")


@dataclass(frozen=True)
class SortedBy(Parameter):
    """What to sort by, out of *words*, and which way round."""

    words: tuple[str, ...]

    role = Role.ORDER
    args = ("sort_by", "sort_order")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the two words."""
        for name, words in (("sort_by", self.words), ("sort_order", ORDERS)):
            if values[name] not in words:
                known = ", ".join(map(repr, words))
                raise UsageError(f"{name}={shorten(values[name])} is none of {known}")
        return [Batch({name: values[name] for name in self.args})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return all rows: only what is made of them is sorted. Refuse other words."""
        by, order = fields.get("sort_by", self.words[0]), fields.get("sort_order", "desc")
        if by not in self.words or order not in ORDERS:
            raise RequestRefused(
                f"sort_by must be one of {self.words}, and sort_order one of {ORDERS}"
            )
        return rows

    def apply_to_sums(self, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
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

    role = Role.SUBJECT
    args = ("entity",)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each name."""
        names = dict.fromkeys(worded(name, "entity") for name in iterate_items(values["entity"]))
        return [Batch({"entity": name}) for name in names]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return all rows: shares are of all of them."""
        if not isinstance(fields.get("entity"), str):
            raise RequestRefused("entity must be a text")
        return rows

    def apply_to_sums(self, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
        """Return the rows of the entity."""
        return rows.filter(pl.col("entity") == fields["entity"])


@dataclass(frozen=True)
class Searched(Parameter):
    """A text to look for. How it is looked for is the service's business, and not published."""

    role = Role.FILTER
    args = ("search",)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the text, or nothing."""
        text = values["search"]
        return [Batch() if text is None else Batch({"search": worded(text, "search")})]


@dataclass(frozen=True)
class PartyIn(Parameter):
    """An owner or an operator, by id or path: only who has validators in common with them."""

    arg: str

    role = Role.FILTER

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument, which is also the member's name."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the owner or operator as a set of validators names them, or nothing."""
        if values[self.arg] is None:
            return [Batch()]
        value = party(values[self.arg], self.arg)
        return [Batch(Entities(**{self.arg: value}).member()["entities"])]


@dataclass(frozen=True)
class MachinesIn(Parameter):
    """Some machines by name; all of them when none is named."""

    column: Column

    role = Role.SUBJECT
    args = ("machines",)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the names, each once."""
        asked = values["machines"]
        names = [] if asked is None else list(dict.fromkeys(iterate_items(asked)))
        for name in names:
            if not isinstance(name, str) or not name:
                raise UsageError(f"machines={shorten(name)} is no name of a machine")
        return [Batch({"machines": names} if names else {})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the machines."""
        names = fields.get("machines") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise RequestRefused("machines must be a list of names")
        return rows.filter(pl.col(self.column.name).is_in(names)) if names else rows


@dataclass(frozen=True)
class Between(Parameter):
    """Instants from one to another, both included; left out, all there are."""

    column: Column

    role = Role.FILTER
    args = ("since", "until")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the seconds that are asked for; no range for all of them."""
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch()]
        start = 0 if since is None else second("since", since, last=False)
        end = LAST_SECOND if until is None else second("until", until, last=True)
        if start > end:
            raise UsageError(f"since={shorten(since)} is after until={shorten(until)}")
        return [Batch({"range": {"timestamp": {"start": start, "end": end}}})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows between the instants."""
        asked = fields.get("range", {"timestamp": {}})
        bounds = asked.get("timestamp") if isinstance(asked, dict) else None
        if not isinstance(bounds, dict):
            raise RequestRefused("range must have a timestamp")
        start, end = bounds.get("start", 0), bounds.get("end", LAST_SECOND)
        if not is_natural(start) or not is_natural(end) or start > end:
            raise RequestRefused("range.timestamp must have a start and an end")
        return rows.filter(pl.col(self.column.name).dt.epoch("s").is_between(start, end))


def second(argument: str, moment: Any, *, last: bool) -> int:
    """Return the first or the *last* second that a moment means."""

    def now() -> datetime:
        # A machine's clock is that of its user, whatever the chain's says.
        return datetime.now(UTC)

    return int(instants(argument, moment, now)[last].timestamp())
