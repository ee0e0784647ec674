"""Pagination: lists by offset and limit, lists by cursor, and the guard against endless pages."""

from __future__ import annotations

import threading
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from beaconframes.endpoint.identifiers import UNUSED_NUMBER, drop_invalid_numbers, parse_number
from beaconframes.endpoint.parameter import (
    NATURAL,
    Batch,
    Fields,
    JsonSchema,
    Parameter,
    Role,
    permit_any_text,
)
from beaconframes.errors import PaginationError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.endpoint.request import Page, Request

PAGE_SIZE = 10
"""Largest page size of V2, in records."""
LONGEST_CURSOR = 64 * 2**10
"""Most characters of a cursor. A longer one is a protocol error."""

MAX_PAGES = 10_000
MAX_EMPTY_PAGES = 32

_RECORDS = msgspec.json.Decoder(list[msgspec.Raw] | dict[str, msgspec.Raw])


@dataclass(frozen=True)
class Pages(Parameter):
    """Pages of at most ``at_most`` records, by offset.

    ``default`` is how many records the service sends when a request names no limit.
    """

    _: KW_ONLY
    at_most: int
    default: int

    role = Role.PAGE
    may_shift = True

    @property
    def page_size(self) -> int | None:
        """Return how many records one page has at most."""
        return self.at_most

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the first page."""
        return [Batch({"offset": "0", "limit": str(self.at_most)})]

    def next_fields(self, fields: Fields, page: Page) -> Fields | None:
        """Return the next page, or None after a page that is not full."""
        records = _RECORDS.decode(page.data)
        if isinstance(records, dict) or len(records) < self.at_most:
            return None
        return {**fields, "offset": str(int(fields["offset"]) + len(records))}

    def page_count(self, records: int | None) -> tuple[int, bool]:
        """Return the number of pages; the last one is the first that is not full."""
        return (1, False) if records is None else (records // self.at_most + 1, True)

    def public_fields(self, fields: Fields) -> Fields:
        """Return *fields* with a valid page: the default for no number, the nearest valid limit."""
        fields = drop_invalid_numbers(fields, ("limit", "offset"))
        limit = parse_number(fields.get("limit", "")) if "limit" in fields else self.default
        if limit == 0:
            return {**fields, "limit": "1", "offset": UNUSED_NUMBER}
        return {**fields, "limit": str(min(limit or 0, self.at_most))}

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        limit = {"type": "integer", "minimum": 1, "maximum": self.at_most, "default": self.default}
        return {"offset": NATURAL, "limit": limit}

    def public_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, which can have any value."""
        return permit_any_text(self.field_schemas)


@dataclass(frozen=True)
class Cursor(Parameter):
    """Pages of at most ten records; each response has the cursor of the next page.

    Only the cursor changes from page to page. ``sized`` says that a request states its page size;
    where the page size is not documented it is not sent.
    """

    sized: bool = True

    role = Role.PAGE
    field_schemas: ClassVar = {
        "cursor": {"type": "string", "default": ""},
        "page_size": {"type": "integer", "minimum": 1, "maximum": PAGE_SIZE, "default": PAGE_SIZE},
    }

    @property
    def page_size(self) -> int | None:
        """Return how many records one page has at most; None if that is not documented."""
        return PAGE_SIZE if self.sized else None

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the first page."""
        return [Batch({"page_size": PAGE_SIZE, "cursor": ""} if self.sized else {})]

    def next_fields(self, fields: Fields, page: Page) -> Fields | None:
        """Return the next page, or None if the response has no cursor.

        Only a response that states its paging can end a list with a full page.
        """
        paging = None if page.paging is None else msgspec.json.decode(page.paging)
        if paging is None and self.sized:
            records = _RECORDS.decode(page.data)
            # Some routes return all records on one page, more than the page size.
            if isinstance(records, list) and len(records) == fields["page_size"]:
                raise ProtocolError(
                    f"the page is full ({len(records)} records), but the response has no paging",
                    hint="Try again later: the list may have more pages. Nothing was stored",
                )
        if paging in (None, ""):
            return None
        cursor = paging.get("next_cursor") if isinstance(paging, dict) else paging
        if cursor in (None, "") and isinstance(paging, dict):
            if others := [name for name in paging if "next" in name and paging[name]]:
                raise ProtocolError(f"the next page is in {others[0]!r}, not in next_cursor")
            return None
        if not isinstance(cursor, str) or not isinstance(paging, dict):
            raise ProtocolError(f"the cursor is of type {type(cursor).__name__}, not a text")
        if len(cursor) > LONGEST_CURSOR:
            raise ProtocolError(f"the cursor is too long: {len(cursor)} characters")
        return {**fields, "cursor": cursor}

    def page_count(self, records: int | None) -> tuple[int, bool]:
        """Return the number of pages, if the page size is known."""
        if records is None or not self.sized:
            return 1, False
        return max(-(-records // PAGE_SIZE), 1), True


@dataclass
class EmptyPages:
    """Counts empty pages in a row, over all calls of one load; thread-safe."""

    in_a_row: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, *, is_empty: bool) -> int:
        """Count one more page; return how many empty ones were received in a row."""
        with self.lock:
            self.in_a_row = self.in_a_row + 1 if is_empty else 0
            return self.in_a_row


class PageLoopGuard:
    """Detects pagination that does not end, by the earlier pages of the call."""

    def __init__(self, empty_pages: EmptyPages) -> None:
        """Count *empty_pages* together with the other calls of the load."""
        self._requests: set[Request] = set()
        self._records: set[bytes] = set()
        self._empty_pages = empty_pages

    def check(self, request: Request, page: Page, following: Request) -> None:
        """Record *page*, the response to *request*, before the *following* request is sent.

        Raises
        ------
        PaginationError
            The following request was sent before, the page has only records of earlier pages, too
            many pages in a row are empty, or there are too many pages.
        """
        self._requests.add(request)
        number = len(self._requests)
        records = _RECORDS.decode(page.data)
        new = {page.data} if isinstance(records, dict) else {bytes(record) for record in records}
        empty_count = self._empty_pages.count(is_empty=not new)
        problem = ""
        if following in self._requests:
            problem = f"page {number} leads back to an earlier page"
        elif new and new <= self._records:
            problem = f"page {number} has only records of earlier pages"
        elif empty_count >= MAX_EMPTY_PAGES:
            problem = f"{empty_count} pages in a row are empty, and another one follows"
        elif number >= MAX_PAGES:
            problem = f"there are more than {number} pages"
        if problem:
            raise PaginationError(
                f"{problem}, so the pages do not end",
                endpoint=request.endpoint,
                hint="The service does not paginate as documented. Nothing was stored",
            )
        self._records |= new
