"""A parameter that takes addresses or ENS names, and how the local explorer resolves names."""

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
    """Hexadecimal values, or names that end in .eth; ``keys`` maps an address to column values."""

    matches: str
    order: tuple[str, ...]

    def keys(self, text: str) -> list[str]:
        """Return the values of the column ``matches`` for a resolved *text*."""
        return [text]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of one value, in the order of the service."""
        super().apply(rows, fields, view)
        text = self.canonical(fields[self.wire])
        if not text.startswith("0x"):
            text = self.resolved(text, view)
        found = rows.filter(pl.col(self.matches).is_in(self.keys(text)))
        return found.sort(self.order, nulls_last=True)

    def resolved(self, name: str, view: View) -> str:
        """Return the address of *name*; refuse an unknown one."""
        try:
            known = view.scan("names").filter(asked=name).select("address").collect()
        except DatasetError:
            known = pl.DataFrame()
        if known.is_empty():
            raise RequestRefused(self.error)
        return str(known.item(0, 0)).lower()
