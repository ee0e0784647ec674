"""Pages: ``limit`` records from ``offset`` on, until a page is not full."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint.identifiers import numeral
from beaconframes.endpoint.parameter import Batch, Fields, Parameter, View

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.endpoint.request import Page


@dataclass(frozen=True)
class Pages(Parameter):
    """A list in pages of ``at_most`` records; a bad number is what it would be by default.

    ``default`` is how many records the service gives to those who do not say.
    """

    _: KW_ONLY
    at_most: int
    default: int

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the first page."""
        return [Batch({"offset": "0", "limit": str(self.at_most)})]

    def follow(self, fields: Fields, page: Page) -> Fields | None:
        """Return the next page, unless this one was not full."""
        records = msgspec.json.decode(page.data, type=list[msgspec.Raw] | dict[str, msgspec.Raw])
        if isinstance(records, dict) or len(records) < self.at_most:
            return None
        return {**fields, "offset": str(int(fields["offset"]) + len(records))}

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the page; a limit above the largest is the largest."""
        limit = lenient(fields.get("limit", ""), self.default)
        return rows.slice(lenient(fields.get("offset", ""), 0), min(limit, self.at_most))


def lenient(text: str, default: int) -> int:
    """Return the number that *text* is, or else the default."""
    number = numeral(text)
    return default if number is None else number
