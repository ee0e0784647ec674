"""Parameters of the graffiti wall: a rectangle, a range of slots, and a flag."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from beaconframes.endpoint import (
    NATURAL,
    Batch,
    ColumnParameter,
    ExpectedRows,
    Fields,
    NamedParameter,
    Parameter,
    Role,
    identifiers,
)
from beaconframes.endpoint.parameter import permit_any_text
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.calendar import Unit
    from beaconframes.endpoint import ChainHead, JsonSchema
    from beaconframes.schema import Column
    from beaconframes.time_range import Moment


@dataclass(frozen=True)
class Region(Parameter):
    """A rectangle of the graffiti wall, both corners included."""

    x: Column
    y: Column
    size: int = 1000

    role = Role.FILTER
    filter_storage = "shared"
    has_finish = True
    args = ("region",)
    names: ClassVar = ("startx", "starty", "endx", "endy")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the four coordinates, or nothing for the whole wall."""
        corners = self.corners(values["region"])
        if corners is None:
            return [Batch()]
        left, top, right, bottom = corners
        return [
            Batch(
                dict(zip(self.names, map(str, corners), strict=True)),
                (
                    ExpectedRows({self.x.name: range(left, right + 1)}, required=False),
                    ExpectedRows({self.y.name: range(top, bottom + 1)}, required=False),
                ),
            )
        ]

    def corners(self, region: Any) -> list[int] | None:
        """Return left, top, right and bottom of *region*; None for the whole wall."""
        if region is None:
            return None
        try:
            corners = [identifiers.check_natural(n, "region") for n in region]
        except TypeError:
            corners = []
        if (
            len(corners) != 4
            or max(corners) >= self.size
            or not (corners[0] <= corners[2] and corners[1] <= corners[3])
        ):
            raise UsageError(
                f"region={region!r} is not a rectangle on the wall",
                hint=f"Write region=(left, top, right, bottom), each from 0 to {self.size - 1}",
            )
        return corners

    def public_fields(self, fields: Fields) -> Fields:
        """Return *fields* without invalid coordinates."""
        return identifiers.drop_invalid_numbers(fields, self.names)

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return dict.fromkeys(self.names, NATURAL)

    def public_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, which can have any value."""
        return permit_any_text(self.field_schemas)

    def inside(self, left: int, top: int, right: int, bottom: int) -> pl.Expr:
        """Return whether a pixel is in the rectangle."""
        return pl.col(self.x.name).is_between(left, right) & pl.col(self.y.name).is_between(
            top, bottom
        )

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return the pixels inside; the store has the whole wall."""
        corners = self.corners(values["region"])
        return rows if corners is None else rows.filter(self.inside(*corners))


@dataclass(frozen=True)
class Switch(NamedParameter):
    """A flag that selects rows; always sent, since its default differs between services."""

    arg: str
    _: KW_ONLY
    wire: str
    keep: Callable[[pl.LazyFrame], pl.LazyFrame]
    default: bool = False

    role = Role.FILTER
    filter_storage = "shared"
    unfiltered = False
    has_finish = True

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return ``true`` or ``false``."""
        value = values[self.arg]
        if not isinstance(value, bool):
            raise UsageError(f"{self.arg}={value!r} is not True or False")
        return [Batch({self.wire: "true" if value else "false"})]

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        others = {"type": "string", "pattern": "^([tTfF10]|TRUE|FALSE|True|False)$"}
        return {self.wire: {"anyOf": [{"type": "boolean"}, others], "default": self.default}}

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return the selected rows of several requests."""
        return self.keep(rows.lazy()).collect() if values[self.arg] else rows


@dataclass(frozen=True)
class SlotWindow(ColumnParameter):
    """A range of slots, both ends included: ``startSlot`` and ``slot``.

    The service has no largest range; ``at_most`` limits the size of one response. The service
    raises an end below ``default`` to ``default``; rows after the requested end are dropped here.
    """

    column: Column
    _: KW_ONLY
    default: int = 10_000
    at_most: int = 500_000

    role = Role.RANGE
    args = ("since", "until")
    field_schemas: ClassVar = {"startSlot": NATURAL, "slot": NATURAL}
    unit: Unit = "slot"

    @property
    def window(self) -> int | None:
        """Return how many slots one request covers."""
        return self.at_most

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return windows of the range. Default: none; the service returns the last 10,001 slots."""
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch()]
        span = chain_head.span(since, until, "slot", length=self.default + 1)
        windows = []
        for first in range(span.first, span.last + 1, self.at_most):
            last = min(first + self.at_most - 1, span.last)
            slots = {self.column.name: range(first, last + 1)}
            returned = range(first, self.default + 1) if last < self.default else range(0)
            wanted = ExpectedRows(slots, required=False, trim=returned)
            windows.append(Batch({"startSlot": str(first), "slot": str(last)}, (wanted,)))
        return windows

    def last(self, since: Moment | None, until: Moment | None, chain_head: ChainHead) -> int:
        """Return the last slot of the range."""
        return chain_head.span(since, until, "slot", length=self.default + 1).last
