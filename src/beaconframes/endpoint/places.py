"""Places on the chain as generation 2 names them: slots, blocks, sync periods."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.identifiers import cut, each, numbers
from beaconframes.endpoint.resolving import whole
from beaconframes.endpoint.selection import Absent, Batch, Fields, Refused, Selector, View, Wanted
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.horizon import Horizon
    from beaconframes.schema import Column

ROOT = re.compile(r"(0[xX])?[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True)
class SlotIn(Selector):
    """Slots, one a request: by number, by the root of a block, or by a view of the chain.

    A view is looked up first, once, so that all pages of a call are of one slot. ``roots`` says
    whether the endpoint takes those; ``every`` that each slot must have rows.
    """

    column: Column
    _: KW_ONLY
    roots: bool = True
    every: bool = False

    args = ("slots",)

    def batches(self, values: Mapping[str, Any], horizon: Horizon) -> list[Batch]:
        """Return one batch for each slot, those that are named twice once."""
        found: dict[int | str, None] = {}
        for item in each(values["slots"]):
            if isinstance(item, str) and ROOT.fullmatch(item):
                if not self.roots:
                    raise UsageError(f"slots={cut(item)} is a root", hint="Give the slot's number")
                found[f"0x{item.lower().removeprefix('0x')}"] = None
                continue
            (number,) = numbers(item, "slots", ("latest", "finalized"))
            if isinstance(number, str):
                number = horizon.latest("slot", finalized=number == "finalized")
            else:
                horizon.refuse_future("slot", number)
            found[number] = None
        return [self.batch(item) for item in found]

    def batch(self, item: int | str) -> Batch:
        """Return what one slot sends and selects."""
        if isinstance(item, str):
            return Batch({"slot": {"root": item}})
        return Batch({"slot": {"number": item}}, (Wanted({self.column.name: [item]}, self.every),))

    def number(self, fields: Fields, view: View) -> int:
        """Return the slot that a request names, or refuse it."""
        asked = fields.get("slot", {"view": "latest"})
        if not isinstance(asked, dict) or len(asked) != 1:
            raise Refused("slot must have exactly one of number, root and view")
        ((way, value),) = asked.items()
        if way == "number" and whole(value):
            if value > view.head.slot:
                raise Absent(f"slot {value} is not there yet")
            return value
        if way == "view" and value in ("latest", "finalized"):
            return view.head.latest("slot", view.chain, finalized=value == "finalized")
        if way == "root" and self.roots and isinstance(value, str) and ROOT.fullmatch(value):
            root = f"0x{value.lower().removeprefix('0x')}"
            blocks = view.scan("blocks").filter(pl.col("block_root") == root)
            found = blocks.select("slot").collect().to_series()
            if found.is_empty():
                raise Absent(f"there is no block {root}")
            return int(found[0])
        raise Refused("slot must have exactly one of number, root and view")

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the slot."""
        return rows.filter(pl.col(self.column.name) == self.number(fields, view))
