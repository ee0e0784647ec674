"""The slots parameter of endpoints that return the items of a slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beaconframes.endpoint import Batch, ExpectedRows, Numbers
from beaconframes.endpoint.identifiers import parse_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead


@dataclass(frozen=True)
class SlotItems(Numbers):
    """Slots whose items are requested, one slot per request; a slot may have none.

    With ``validates_slot``, the service takes ``latest`` and refuses future slots. The other
    endpoints do neither, although the specification says so: the client sends them a number.
    The service sorts the items of a slot by the column ``order``.
    """

    wire: str = "slot"
    error: str = "invalid block slot provided"
    order: str = "block_index"
    descending: bool = True
    validates_slot: bool = False

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each slot."""
        slots = parse_numbers(values[self.arg], self.arg, self.tags)
        if not self.validates_slot:
            numbers = [chain_head.latest("slot") if item in self.tags else item for item in slots]
            slots = list(dict.fromkeys(numbers))
        return [self.batch(item, chain_head) for item in slots]

    def batch(self, item: int | str, chain_head: ChainHead) -> Batch:
        """Return the fields and the expected rows of one slot, or of a tag such as latest."""
        if not isinstance(item, int):
            return Batch({self.wire: item})
        chain_head.check_not_future("slot", item)
        return Batch(
            {self.wire: str(item)}, (ExpectedRows({self.column.name: [item]}, required=False),)
        )
