"""A parameter of addresses or ENS names, which the local explorer resolves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.endpoint import RequestRefused, Texts
from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from beaconframes.endpoint import Fields, View


@dataclass(frozen=True)
class AddressOrName(Texts):
    """Hexadecimal values, or names that end in .eth."""

    matches: str
    order: tuple[str, ...]

    def column_values(self, text: str) -> list[str]:
        """Return the values of the column ``matches`` that belong to a resolved *text*."""
        return [text]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of one value, in the order of the service."""
        super().apply(rows, fields, view)
        text = self.canonical(fields[self.wire])
        if not text.startswith("0x"):
            text = self.resolve_name(text, view)
        matching = rows.filter(pl.col(self.matches).is_in(self.column_values(text)))
        return matching.sort(self.order, nulls_last=True)

    def resolve_name(self, name: str, view: View) -> str:
        """Return the address of *name*; refuse an unknown one."""
        try:
            addresses = view.scan("names").filter(requested=name).select("address").collect()
        except DatasetError:
            addresses = pl.DataFrame()
        if addresses.is_empty():
            raise RequestRefused(self.error)
        return str(addresses.item(0, 0)).lower()
