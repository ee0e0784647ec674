"""Blocks by slot or root."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Batch, Endpoint, ExpectedRows, Finality, Numbers, Shape
from beaconframes.endpoint.identifiers import iterate_items, parse_numbers
from beaconframes.v1._blocks import Blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead, JsonSchema

HAS_BLOCK = pl.col("status").is_in(["proposed", "orphaned"])
ROOT = re.compile(r"(0x)?[0-9a-f]{64}", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class SlotsOrRoots(Numbers):
    """Blocks by slot, by root, or by a tag such as latest, one per request."""

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each slot, root or tag."""
        return list(
            {
                batch.fields[self.wire]: batch
                for item in iterate_items(values[self.arg], self.arg)
                for batch in [self.batch(item, chain_head)]
            }.values()
        )

    def batch(self, item: Any, chain_head: ChainHead) -> Batch:
        """Return the fields and the expected row of one slot, root or tag."""
        if isinstance(item, str) and ROOT.fullmatch(item):
            root = f"0x{item.lower().removeprefix('0x')}"
            return Batch({self.wire: root}, (expect_block(roots=[root]),))
        (slot,) = parse_numbers([item], self.arg, self.tags)
        if slot == "latest":
            # For latest, the service fails if the slot has no block; for a number, it reports none.
            slot = chain_head.latest("slot")
        if isinstance(slot, str):
            return Batch({self.wire: slot})
        chain_head.check_not_future("slot", slot)
        return Batch({self.wire: str(slot)}, (expect_block(slots=[slot]),))

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        (number,) = super().field_schemas.values()
        root = {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]{64}$"}
        return {self.wire: {"anyOf": [number, root]}}


def expect_block(slots: list[int] | None = None, roots: list[str] | None = None) -> ExpectedRows:
    """Return the expected row of a block, by slot or by root."""
    return ExpectedRows({Blocks.slot.name: slots or [], Blocks.block_root.name: roots or []})


SLOTS = Endpoint(
    "slots",
    route="GET /api/v1/slot/{slot}",
    table=Blocks,
    parameters=(
        SlotsOrRoots(
            "slots",
            Blocks.slot,
            wire="slot",
            tags=("latest", "head"),
            error="could not parse slot number",
        ),
    ),
    finality=Finality.AT_FINALITY,
    shape=Shape.OBJECT,
    absent="could not retrieve db results",
)


@loader(SLOTS, missing="slots and roots without a block")
def load_slots(slots: Subjects) -> Values:
    """Load blocks by slot or root, one row per block.

    One request per block. `load_epoch_slots` loads whole epochs, missed slots included, in far
    fewer requests.

    Parameters
    ----------
    slots
        Slots or block roots: one, or a list, range or Series of them, mixed. ``"latest"`` is the
        latest processed slot, ``"head"`` the latest block.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``, ``block_root``. If a slot has an orphaned block beside the canonical
        one, the service returns one of them: ``status`` says which. ``votes`` counts the votes for
        the block.

    Notes
    -----
    ``GET /api/v1/slot/{slotOrHash}``. Final once the epoch of the slot is finalized.
    """
    return {"slots": slots}
