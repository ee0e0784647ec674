"""Selectors of the graffiti wall: a rectangle, and whether only the newest paint counts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from beaconframes.endpoint.identifiers import natural, numeral
from beaconframes.endpoint.parameter import Batch, Fields, Parameter, Refused, View, Wanted
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column


@dataclass(frozen=True)
class Region(Parameter):
    """A rectangle of the graffiti wall, both corners included."""

    x: Column
    y: Column
    size: int = 1000

    args = ("region",)
    names: ClassVar = ("startx", "starty", "endx", "endy")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the four coordinates, or nothing for the whole wall."""
        region = values["region"]
        if region is None:
            return [Batch()]
        try:
            corners = [natural(n, "region") for n in region]
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
        left, top, right, bottom = corners
        return [
            Batch(
                dict(zip(self.names, map(str, corners), strict=True)),
                (
                    Wanted({self.x.name: range(left, right + 1)}, every=False),
                    Wanted({self.y.name: range(top, bottom + 1)}, every=False),
                ),
            )
        ]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the pixels inside; a corner that makes no sense is the corner of the wall."""
        last = self.size - 1
        left, top, right, bottom = (
            default if (corner := numeral(fields.get(name, ""))) is None else min(corner, last)
            for name, default in zip(self.names, (0, 0, last, last), strict=True)
        )
        if left > right or top > bottom:
            raise Refused("invalid area provided by the coordinates")
        return rows.filter(
            pl.col(self.x.name).is_between(left, right), pl.col(self.y.name).is_between(top, bottom)
        )


@dataclass(frozen=True)
class Switch(Parameter):
    """A yes or no that changes which rows are kept; always sent, since its default is disputed."""

    arg: str
    _: KW_ONLY
    wire: str
    keep: Callable[[pl.LazyFrame], pl.LazyFrame]
    default: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return ``true`` or ``false``."""
        value = values[self.arg]
        if not isinstance(value, bool):
            raise UsageError(f"{self.arg}={value!r} is neither True nor False")
        return [Batch({self.wire: "true" if value else "false"})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the kept rows when the switch is on."""
        text = fields.get(self.wire, str(self.default)).lower()
        if text not in ("true", "false", "t", "f", "1", "0"):
            raise Refused(f"invalid value for {self.wire} provided")
        return self.keep(rows) if text in ("true", "t", "1") else rows

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return what is kept of several requests' rows together."""
        return self.keep(rows.lazy()).collect() if values[self.arg] else rows
