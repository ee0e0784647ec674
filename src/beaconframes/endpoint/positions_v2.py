"""Parameters of V2 for positions on the chain: slots, blocks and sync-committee periods."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from beaconframes.endpoint.identifiers import iterate_items, parse_numbers
from beaconframes.endpoint.parameter import (
    NATURAL,
    Batch,
    ColumnParameter,
    ExpectedRows,
    JsonSchema,
    Role,
    describe_object,
)
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

PERIOD_FIELD = "sync_committee_period"
SLOT_VIEWS, PERIOD_VIEWS = ("latest", "finalized"), ("latest", "next")
ROOT_PATTERN = "^(0[xX])?[0-9a-fA-F]{64}$"
ROOT = re.compile(r"(0[xX])?[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True)
class SlotSelector(ColumnParameter):
    """Slots, one per request: by number, by block root, or "latest" and "finalized".

    These two words become a number once, before the first request, so that all pages are of the
    same slot. With ``number_only`` the endpoint accepts neither block roots nor the two words.
    With ``final_only`` it has finalized slots only, and "latest" is the last of them. ``root`` is
    the column of the block root, if rows have it. ``required`` says that each slot must have rows.
    """

    column: Column
    _: KW_ONLY
    number_only: bool = False
    final_only: bool = False
    root: Column | None = None
    required: bool = False

    role = Role.UNITS
    args = ("slots",)
    required_fields = ("slot",)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each slot, without duplicates."""
        positions: dict[int | str, None] = {}
        for item in iterate_items(values["slots"], "slots"):
            if isinstance(item, str) and ROOT.fullmatch(item):
                if self.number_only:
                    raise UsageError(
                        f"slots={shorten(item)} is a block root, not a slot",
                        hint="Give the number of the slot",
                    )
                positions[f"0x{item.lower().removeprefix('0x')}"] = None
                continue
            (number,) = parse_numbers([item], "slots", SLOT_VIEWS)
            if isinstance(number, str):
                is_final = self.final_only or number == "finalized"
                number = chain_head.latest("slot", finalized=is_final)
            else:
                chain_head.check_not_future("slot", number, finalized=self.final_only)
            positions[number] = None
        return [self.batch(item) for item in positions]

    def batch(self, item: int | str) -> Batch:
        """Return the fields that request one slot, and the rows that they select."""
        is_root = isinstance(item, str)
        fields = {"slot": {"root" if is_root else "number": item}}
        if self.root is not None:
            numbers, roots = ([], [item]) if is_root else ([item], [])
            by_column = {self.column.name: numbers, self.root.name: roots}
            return Batch(fields, (ExpectedRows(by_column, self.required),))
        if is_root:
            return Batch(fields)
        return Batch(fields, (ExpectedRows({self.column.name: [item]}, self.required),))

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        number, root = {"number": NATURAL}, {"root": {"type": "string", "pattern": ROOT_PATTERN}}
        kinds = [number] if self.number_only else [number, root, describe_views(SLOT_VIEWS)]
        return {"slot": describe_choice(kinds)}


@dataclass(frozen=True)
class PositionSelector(ColumnParameter):
    """Positions, one per request: by number, or by the names in ``views``."""

    column: Column

    role = Role.UNITS
    views: ClassVar[tuple[str, str]]

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each position."""
        (field,), (argument,) = self.required_fields, self.args
        return [
            Batch({field: {"number": item}}, (ExpectedRows({self.column.name: [item]}),))
            if isinstance(item, int)
            else Batch({field: {"view": item}})
            for item in parse_numbers(values[argument], argument, self.views)
        ]

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        kinds = [{"number": NATURAL}, describe_views(self.views)]
        return dict.fromkeys(self.required_fields, describe_choice(kinds))


@dataclass(frozen=True)
class BlockSelector(PositionSelector):
    """Execution blocks, one per request: by number, or "latest" and "finalized"."""

    args = ("blocks",)
    required_fields = ("block",)
    views = SLOT_VIEWS


@dataclass(frozen=True)
class PeriodSelector(PositionSelector):
    """Sync-committee periods, one per request: by number, or "latest" and "next"."""

    args = ("periods",)
    required_fields = (PERIOD_FIELD,)
    views = PERIOD_VIEWS


def describe_views(views: tuple[str, ...]) -> JsonSchema:
    """Return the field of a position by name."""
    return {"view": {"type": "string", "enum": list(views)}}


def describe_choice(kinds: list[JsonSchema]) -> JsonSchema:
    """Return the JSON Schema of an object with exactly one of the fields in *kinds*."""
    forms = [describe_object(kind, *kind) for kind in kinds]
    return forms[0] if len(forms) == 1 else {"oneOf": forms}
