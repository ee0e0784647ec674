"""Whether pages come to an end: what a well-behaved service never does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from beaconframes.errors import PaginationError

if TYPE_CHECKING:
    from beaconframes.endpoint.declaration import Call
    from beaconframes.endpoint.request import Page, Request

MOST_PAGES = 10_000
MOST_EMPTY_IN_A_ROW = 32

HINT = "The service does not page as the API says; nothing was kept"

_RECORDS = msgspec.json.Decoder(list[msgspec.Raw] | dict[str, msgspec.Raw])


class PageLoopGuard:
    """The pages of one call so far, remembered to notice when they lead nowhere."""

    def __init__(self) -> None:
        self._asked: set[Request] = set()
        self._seen: set[bytes] = set()
        self._empty = 0

    def check(self, call: Call, page: Page, following: Call) -> None:
        """Take note of *page*, which *call* brought and *following* continues.

        Raises PaginationError when no end is in sight: a request that was sent before, nothing
        but records that came before, one empty page after the other, more pages than can be.
        """
        self._asked.add(call.request)
        number = len(self._asked)
        records = _RECORDS.decode(page.data)
        new = {page.data} if isinstance(records, dict) else {bytes(record) for record in records}
        self._empty = 0 if new else self._empty + 1
        why = ""
        if following.request in self._asked:
            why = f"page {number} leads back to one that was read before"
        elif new and new <= self._seen:
            why = f"page {number} has nothing that did not come before"
        elif self._empty >= MOST_EMPTY_IN_A_ROW:
            why = f"{self._empty} pages in a row are empty, and another is to follow"
        elif number >= MOST_PAGES:
            why = f"{number} pages are no end"
        if why:
            raise PaginationError(
                f"{why}, so there is no end", endpoint=call.request.endpoint, hint=HINT
            )
        self._seen |= new
