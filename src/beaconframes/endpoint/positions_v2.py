"""Parameters of V2 that name a position of the chain: slots, blocks, periods, spans of time."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.calendar import resolve_span
from beaconframes.endpoint.identifiers import iterate_items, parse_numbers
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
from beaconframes.endpoint.set_members import is_natural
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

ROOT = re.compile(r"(0[xX])?[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True)
class SlotIn(Parameter):
    """Slots, one a request: by number, by the root of a block, or by a view of the chain.

    A view is looked up first, once, so that all pages of a call are of one slot. ``roots`` says
    whether the endpoint takes those; ``root`` is where the rows say which block they are of, if
    they do; ``required`` that each slot must have rows.
    """

    column: Column
    _: KW_ONLY
    roots: bool = True
    root: Column | None = None
    required: bool = False

    role = Role.UNITS
    args = ("slots",)

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each slot, those that are named twice once."""
        found: dict[int | str, None] = {}
        for item in iterate_items(values["slots"]):
            if isinstance(item, str) and ROOT.fullmatch(item):
                if not self.roots:
                    raise UsageError(
                        f"slots={shorten(item)} is a root", hint="Give the slot's number"
                    )
                found[f"0x{item.lower().removeprefix('0x')}"] = None
                continue
            (number,) = parse_numbers(item, "slots", ("latest", "finalized"))
            if isinstance(number, str):
                number = chain_head.latest("slot", finalized=number == "finalized")
            else:
                chain_head.check_not_future("slot", number)
            found[number] = None
        return [self.batch(item) for item in found]

    def batch(self, item: int | str) -> Batch:
        """Return what one slot sends and selects."""
        by_root = isinstance(item, str)
        fields = {"slot": {"root" if by_root else "number": item}}
        if self.root is not None:
            both = {self.column.name: [item][by_root:], self.root.name: [item][: int(by_root)]}
            return Batch(fields, (ExpectedRows(both, self.required),))
        return Batch(
            fields, () if by_root else (ExpectedRows({self.column.name: [item]}, self.required),)
        )

    def number(self, fields: Fields, view: View) -> int:
        """Return the slot that a request names, or refuse it."""
        asked = fields.get("slot", {"view": "latest"})
        if not isinstance(asked, dict) or len(asked) != 1:
            raise RequestRefused("slot must have exactly one of number, root and view")
        ((way, value),) = asked.items()
        if way == "number" and is_natural(value):
            if value > view.head.slot:
                raise ObjectNotFound(f"slot {value} is not there yet")
            return value
        if way == "view" and value in ("latest", "finalized"):
            return view.head.latest("slot", view.chain, finalized=value == "finalized")
        if way == "root" and self.roots and isinstance(value, str) and ROOT.fullmatch(value):
            root = f"0x{value.lower().removeprefix('0x')}"
            blocks = view.scan("blocks").filter(pl.col("block_root") == root)
            found = blocks.select("slot").collect().to_series()
            if found.is_empty():
                raise ObjectNotFound(f"there is no block {root}")
            return int(found[0])
        raise RequestRefused("slot must have exactly one of number, root and view")

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the one slot."""
        slot = self.number(fields, view)
        return slot, slot

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the slot, of one block only if that was asked for by its root."""
        rows = rows.filter(pl.col(self.column.name) == self.number(fields, view))
        root = fields.get("slot", {}).get("root")
        if self.root is None or root is None:
            return rows
        return rows.filter(pl.col(self.root.name) == f"0x{root.lower().removeprefix('0x')}")


@dataclass(frozen=True)
class BlockIn(Parameter):
    """Execution blocks, one a request: by number, or by a view of the chain."""

    column: Column

    role = Role.UNITS
    args = ("blocks",)

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each block."""
        return batches_of("block", values["blocks"], "blocks", ("latest", "finalized"), self.column)

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the block, if there is one."""
        number = pl.col(self.column.name)
        way, value = parse_position(fields, "block", ("latest", "finalized"))
        if way == "view":
            if value == "finalized":
                rows = rows.filter(pl.col("finality") == "finalized")
            return rows.filter(number == number.max())
        return rows.filter(number == value)


@dataclass(frozen=True)
class PeriodIn(Parameter):
    """Sync-committee periods, one a request: by number, or by a view of the chain."""

    column: Column

    role = Role.UNITS
    args = ("periods",)

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each period."""
        return batches_of(MEMBER, values["periods"], "periods", ("latest", "next"), self.column)

    def number(self, fields: Fields, view: View) -> int:
        """Return the period that a request names, or refuse it."""
        way, value = parse_position(fields, MEMBER, ("latest", "next"))
        if way == "number":
            return int(value)
        return view.head.latest("period", view.chain) + int(value == "next")

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the slots of the period."""
        length = view.chain.epochs_per_sync_period * view.chain.slots_per_epoch
        first = self.number(fields, view) * length
        return first, first + length - 1

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the period."""
        return rows.filter(pl.col(self.column.name) == self.number(fields, view))


MEMBER = "sync_committee_period"


def batches_of(
    member: str, asked: Any, what: str, views: tuple[str, ...], column: Column
) -> list[Batch]:
    """Return a batch for each number, and for each view, that was *asked* for."""
    return [
        Batch({member: {"number": item}}, (ExpectedRows({column.name: [item]}),))
        if isinstance(item, int)
        else Batch({member: {"view": item}})
        for item in parse_numbers(asked, what, views)
    ]


def parse_position(fields: Fields, member: str, views: tuple[str, ...]) -> tuple[str, Any]:
    """Return which of number and view a request names, and its value; refuse anything else."""
    asked = fields.get(member)
    if isinstance(asked, dict) and len(asked) == 1:
        ((way, value),) = asked.items()
        if (way == "number" and is_natural(value)) or (way == "view" and value in views):
            return way, value
    raise RequestRefused(f"{member} must have exactly one of number and view")


LAST_SECOND = 2**31 - 1
"""What the service takes for the end where none is given."""


@dataclass(frozen=True)
class TimestampsIn(Parameter):
    """The slots of a span of time, all of it at once; of these, the service tells what is final.

    The end is always sent, though it need not be: an open one would move from page to page.
    ``column`` is where the rows say their slot, if they do.
    """

    column: Column | None = None

    role = Role.RANGE
    args = ("since", "until")

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the one span; left out, it is everything until now."""
        for bound in (values["since"], values["until"]):
            if isinstance(bound, int) and not isinstance(bound, bool) and bound >= 0:
                chain_head.check_not_future("slot", bound)
        span = resolve_span(
            values["since"],
            values["until"],
            unit="slot",
            chain=chain_head.chain,
            latest=lambda: chain_head.latest("slot"),
            now=chain_head.now,
            default_until=lambda: current_slot(chain_head),
        )
        start, after = (chain_head.chain.time_of("slot", n) for n in (span.first, span.last + 1))
        seconds = {"start": int(start.timestamp()), "end": int(after.timestamp()) - 1}
        slots = range(span.first, span.last + 1)
        wanted = (
            ()
            if self.column is None
            else (ExpectedRows({self.column.name: slots}, required=False),)
        )
        return [Batch({"range": {"timestamp": seconds}}, wanted)]

    def slots(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the first and the last slot that a request selects, or refuse it."""
        asked = fields.get("range") or {}
        bounds = asked.get("timestamp", {}) if isinstance(asked, dict) else None
        if not isinstance(bounds, dict) or set(asked) - {"timestamp"}:
            raise RequestRefused("range must have a timestamp, and nothing else")
        start, end = bounds.get("start", 0), bounds.get("end", LAST_SECOND)
        if not (is_natural(start) and is_natural(end) and start <= end <= LAST_SECOND):
            raise RequestRefused(
                "range.timestamp must have a start, and an end that is not before it"
            )
        genesis, length = int(view.chain.genesis.timestamp()), view.chain.seconds_per_slot
        last = view.head.latest("slot", view.chain, finalized=True)
        first = max(-((genesis - start) // length), 0)
        return first, max(min((end - genesis) // length, last), first - 1)

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the slots of the span."""
        return self.slots(fields, view)

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the span's slots."""
        return rows.filter(pl.col("slot").is_between(*self.slots(fields, view)))


def current_slot(chain_head: ChainHead) -> int:
    """Return the slot that is running, by the clock if that tells."""
    if chain_head.is_live or chain_head.known is not None:
        return chain_head.chain.at("slot", chain_head.now())
    return chain_head.latest("slot")
