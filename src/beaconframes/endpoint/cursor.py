"""Cursors: pages of at most ten, each of which tells where the next one begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint.parameter import Batch, Fields, Parameter, View
from beaconframes.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.endpoint.request import Page

PAGE_SIZE = 10
"""Records of a page: the most that the service gives."""

LONGEST = 64 * 2**10
"""Characters of a cursor. What is longer is no place in a list."""


@dataclass(frozen=True)
class Cursor(Parameter):
    """A list in pages; everything but the cursor stays as it was from page to page.

    ``sized`` says that the request has a size of pages: where nobody has seen one, it is not sent.
    """

    sized: bool = True

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the first page."""
        return [Batch({"page_size": PAGE_SIZE, "cursor": ""} if self.sized else {})]

    def follow(self, fields: Fields, page: Page) -> Fields | None:
        """Return the next page, if the service says where it begins."""
        paging = None if page.paging is None else msgspec.json.decode(page.paging)
        if paging in (None, ""):
            return None
        cursor = paging.get("next_cursor") if isinstance(paging, dict) else paging
        if cursor in (None, "") and isinstance(paging, dict):
            if others := [name for name in paging if "next" in name and paging[name]]:
                raise ProtocolError(f"the next page is told by {others[0]!r}, not by a cursor")
            return None
        if not isinstance(cursor, str) or not isinstance(paging, dict):
            raise ProtocolError(f"the next page begins at {type(cursor).__name__}, not at a cursor")
        if len(cursor) > LONGEST:
            raise ProtocolError(f"a cursor of {len(cursor)} characters is no cursor")
        return {**fields, "cursor": cursor}

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return all rows: the local explorer cuts what it has found into pages itself."""
        return rows
