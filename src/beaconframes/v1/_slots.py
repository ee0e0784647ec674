"""What the endpoints of a slot's items share: which slots, and the columns of an item's place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint import Batch, ExpectedRows, Refused, Values
from beaconframes.endpoint.identifiers import numbers, numeral

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead, Fields, View


@dataclass(frozen=True)
class ItemsOf(Values):
    """Slots whose items are asked for, one request each; a slot without any is no gap.

    With ``judged`` the service takes ``latest`` and refuses the future. The others do neither,
    though the specification says that they take it: so the client sends them a number.
    """

    wire: str = "slot"
    error: str = "invalid block slot provided"
    order: str = "block_index"
    descending: bool = True
    judged: bool = False

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each slot."""
        asked = numbers(values[self.arg], self.arg, self.tags)
        if not self.judged:
            known = [chain_head.latest("slot") if item in self.tags else item for item in asked]
            asked = list(dict.fromkeys(known))
        return [self.batch(item, chain_head) for item in asked]

    def batch(self, item: int | str, chain_head: ChainHead) -> Batch:
        """Return what one slot, or the word for it, sends and selects."""
        if not isinstance(item, int):
            return Batch({self.wire: item})
        chain_head.refuse_future("slot", item)
        return Batch(
            {self.wire: str(item)}, (ExpectedRows({self.column.name: [item]}, required=False),)
        )

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the items of the slot, in the order in which the service gives them."""
        text = fields[self.wire]
        if self.judged and text.startswith("-") and text[1:].isdigit():
            raise Refused("slot must be a positive number")
        if self.judged and (numeral(text) or 0) > view.head.slot:
            raise Refused(f"slot is in the future. The latest slot is {view.head.slot}")
        return (
            super().apply(rows, fields, view).sort(pl.col(self.order), descending=self.descending)
        )
