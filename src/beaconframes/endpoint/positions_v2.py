"""Parameters of V2 for positions on the chain: slots, blocks and sync-committee periods."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.identifiers import iterate_items, parse_numbers
from beaconframes.endpoint.parameter import (
    NATURAL,
    Batch,
    ExpectedRows,
    Fields,
    JsonSchema,
    ObjectNotFound,
    Parameter,
    RequestRefused,
    Role,
    SlotNotFinal,
    View,
    describe_object,
)
from beaconframes.endpoint.set_members import is_natural
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

SLOT_VIEWS, PERIOD_VIEWS = ("latest", "finalized"), ("latest", "next")
ROOT_PATTERN = "^(0[xX])?[0-9a-fA-F]{64}$"
ROOT = re.compile(r"(0[xX])?[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True)
class SlotSelector(Parameter):
    """Slots, one per request: by number, by block root, or "latest" and "finalized".

    These two words become a number once, before the first request, so that all pages are of the
    same slot. With ``number_only`` the endpoint accepts neither block roots nor the two words.
    With ``final_only`` it has finalized slots only, and "latest" is the last of them. ``root`` is
    the column of the block root, if rows have it. ``required`` says that each slot must have rows.
    With ``by_epoch`` the rows in a dataset have their epoch, too: it selects rows of other tables
    from which they are derived.
    """

    column: Column
    _: KW_ONLY
    number_only: bool = False
    final_only: bool = False
    root: Column | None = None
    required: bool = False
    by_epoch: bool = False

    role = Role.UNITS
    args = ("slots",)
    joins_batches = True

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

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

    def parse_slot(self, fields: Fields, view: View) -> int:
        """Return the slot that a request selects, or raise RequestRefused."""
        position = fields.get("slot", {} if self.number_only else {"view": "latest"})
        kind, value = "", None
        if isinstance(position, dict) and len(position) == 1:
            ((kind, value),) = position.items()
        if kind == "number" and is_natural(value):
            last = view.head.latest("slot", view.chain, finalized=True)
            if self.final_only and value > last:
                raise SlotNotFinal(
                    f"requested slot {value} is greater than latest finalized slot {last}"
                )
            if value > view.head.slot:
                raise ObjectNotFound(f"slot {value} does not exist yet")
            return value
        if self.number_only:
            raise RequestRefused("slot must have a number, and nothing else")
        if kind == "view" and value in SLOT_VIEWS:
            return view.head.latest("slot", view.chain, finalized=value == "finalized")
        if kind == "root" and isinstance(value, str) and ROOT.fullmatch(value):
            root = f"0x{value.lower().removeprefix('0x')}"
            blocks = view.scan("blocks").filter(pl.col("block_root") == root)
            slots = blocks.select("slot").collect().to_series()
            if slots.is_empty():
                raise ObjectNotFound(f"block {root} does not exist")
            return int(slots[0])
        raise RequestRefused("slot must have exactly one of number, root and view")

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the one slot."""
        slot = self.parse_slot(fields, view)
        return slot, slot

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        number, root = {"number": NATURAL}, {"root": {"type": "string", "pattern": ROOT_PATTERN}}
        kinds = [number] if self.number_only else [number, root, describe_views(SLOT_VIEWS)]
        return {"slot": describe_choice(kinds)}

    def required_fields(self) -> tuple[str, ...]:
        """Return the one field."""
        return ("slot",)

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the slot, or of the one block that is requested by its root."""
        slot = self.parse_slot(fields, view)
        rows = rows.filter(pl.col(self.column.name) == slot)
        if self.by_epoch:
            rows = rows.filter(pl.col("epoch") == slot // view.chain.slots_per_epoch)
        root = fields.get("slot", {}).get("root")
        if self.root is None or root is None:
            return rows
        return rows.filter(pl.col(self.root.name) == f"0x{root.lower().removeprefix('0x')}")

    def find_numbers(self, fields: Fields, view: View) -> list[int] | None:
        """Return the slot; None for a block that is requested by its root."""
        slot = self.parse_slot(fields, view)
        return None if self.root and "root" in fields.get("slot", {}) else [slot]


@dataclass(frozen=True)
class BlockSelector(Parameter):
    """Execution blocks, one per request: by number, or "latest" and "finalized"."""

    column: Column

    role = Role.UNITS
    args = ("blocks",)
    joins_batches = True

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each block."""
        return build_batches("block", values["blocks"], "blocks", SLOT_VIEWS, self.column)

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {"block": describe_choice([{"number": NATURAL}, describe_views(SLOT_VIEWS)])}

    def required_fields(self) -> tuple[str, ...]:
        """Return the one field."""
        return ("block",)

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the block, if it exists."""
        number = pl.col(self.column.name)
        kind, value = parse_position(fields, "block", SLOT_VIEWS)
        if kind == "view":
            if value == "finalized":
                rows = rows.filter(pl.col("finality") == "finalized")
            return rows.filter(number == number.max())
        return rows.filter(number == value)

    def find_numbers(self, fields: Fields, view: View) -> list[int] | None:
        """Return the number; None for a block by name."""
        kind, value = parse_position(fields, "block", SLOT_VIEWS)
        return [value] if kind == "number" else None


@dataclass(frozen=True)
class PeriodSelector(Parameter):
    """Sync-committee periods, one per request: by number, or "latest" and "next"."""

    column: Column

    role = Role.UNITS
    args = ("periods",)
    joins_batches = True

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the unit, if rows have it."""
        return self.column

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each period."""
        return build_batches(PERIOD_FIELD, values["periods"], "periods", PERIOD_VIEWS, self.column)

    def parse_period(self, fields: Fields, view: View) -> int:
        """Return the period that a request selects, or raise RequestRefused."""
        kind, value = parse_position(fields, PERIOD_FIELD, PERIOD_VIEWS)
        latest = view.head.latest("period", view.chain)
        if kind == "number":
            if value > latest + 1:
                raise ObjectNotFound(f"the committee of period {value} is not known yet")
            return int(value)
        return latest + int(value == "next")

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the slots of the period."""
        length = view.chain.epochs_per_sync_period * view.chain.slots_per_epoch
        first = self.parse_period(fields, view) * length
        return first, first + length - 1

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {PERIOD_FIELD: describe_choice([{"number": NATURAL}, describe_views(PERIOD_VIEWS)])}

    def required_fields(self) -> tuple[str, ...]:
        """Return the one field."""
        return (PERIOD_FIELD,)

    def find_numbers(self, fields: Fields, view: View) -> range:
        """Return the one period."""
        period = self.parse_period(fields, view)
        return range(period, period + 1)


PERIOD_FIELD = "sync_committee_period"


def describe_views(views: tuple[str, ...]) -> JsonSchema:
    """Return the field of a position by name."""
    return {"view": {"type": "string", "enum": list(views)}}


def describe_choice(kinds: list[JsonSchema]) -> JsonSchema:
    """Return the JSON Schema of an object with exactly one of the fields in *kinds*."""
    forms = [describe_object(kind, *kind) for kind in kinds]
    return forms[0] if len(forms) == 1 else {"oneOf": forms}


def build_batches(
    field: str, positions: Any, argument: str, views: tuple[str, ...], column: Column
) -> list[Batch]:
    """Return a batch for each of the *positions*: numbers, or names out of *views*."""
    return [
        Batch({field: {"number": item}}, (ExpectedRows({column.name: [item]}),))
        if isinstance(item, int)
        else Batch({field: {"view": item}})
        for item in parse_numbers(positions, argument, views)
    ]


def parse_position(fields: Fields, field: str, views: tuple[str, ...]) -> tuple[str, Any]:
    """Return "number" or "view", and its value, from a request, or raise RequestRefused."""
    position = fields.get(field)
    if isinstance(position, dict) and len(position) == 1:
        ((kind, value),) = position.items()
        if (kind == "number" and is_natural(value)) or (kind == "view" and value in views):
            return kind, value
    raise RequestRefused(f"{field} must have exactly one of number and view")
