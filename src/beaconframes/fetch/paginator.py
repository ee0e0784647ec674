"""The paginator: it fetches all pages of many calls, a few calls at a time."""

from __future__ import annotations

import re
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from beaconframes.endpoint import EmptyPages, PageLoopGuard
from beaconframes.errors import (
    BadRequest,
    NotFound,
    NotServed,
    PaginationError,
    ServiceError,
    SnapshotMoved,
    TierTooLow,
    TooManyIdentifiers,
    UsageError,
)
from beaconframes.load_context import LOAD, LoadContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.fetch.served_range import ServedRange
    from beaconframes.http.response import ResponsePage
    from beaconframes.http.session import Session

CONCURRENCY = 8
"""Concurrent calls."""
MAX_PENDING = 12
"""Calls that are sent or wait for the consumer: large responses have 6 MB each."""
INTERRUPT_INTERVAL = 0.1
"""Seconds after which Ctrl-C is noticed."""
STATED_LIMIT = re.compile(r"limit of ([0-9]{1,3})\b", re.ASCII)

Pages = list[tuple["Call", "ResponsePage"]]


@dataclass
class IdentifierLimit:
    """The maximum number of validators in one request: it depends on the plan of the key.

    The service states it only when it refuses a request. The largest limit is assumed until then.
    ``is_known`` is set once a large request was accepted or refused. ``refuses_ranges`` says that
    the plan includes windows only, no other ranges: a request has shown that too.
    """

    largest: ClassVar = 100
    smallest: ClassVar = 20
    current: int = largest
    is_known: bool = False
    refuses_ranges: bool = False

    def learn(self, refusal: TooManyIdentifiers) -> None:
        """Set the limit that the *refusal* states, or else the smallest limit of all plans."""
        stated = STATED_LIMIT.search(refusal.message)
        limit = int(stated[1]) if stated else self.smallest
        self.current = limit if 0 < limit < self.current else min(self.smallest, self.current)
        self.is_known = True


@dataclass
class Paginator:
    """Fetches the pages of calls of one endpoint."""

    endpoint: Endpoint
    session: Session
    identifier_limit: IdentifierLimit
    served: ServedRange
    public: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    context: LoadContext = field(default_factory=LOAD.get)
    empty_pages: EmptyPages = field(default_factory=EmptyPages)

    def fetch(self, calls: list[Call]) -> Iterator[Pages]:
        """Yield the pages of each call, in the order of `ServedRange.sort`.

        When a call fails, the pages of other finished calls are yielded before its error is
        raised. At most `MAX_PENDING` calls are sent ahead of the consumer.
        """
        if len(calls) > 1:
            calls = self.served.sort(calls)
        remaining = iter(calls)
        if calls and (
            len(calls) == 1
            or self.needs_probe(calls[0])
            or self.served.may_be_after_head(calls[:1])
        ):
            call = next(remaining)
            try:
                pages = self.fetch_call(call)
            except (BadRequest, NotFound) as refusal:
                pages = self.fetch_served_part(call, refusal)
            yield pages
        pending: deque[tuple[Call, Future[Pages]]] = deque()
        pool = ThreadPoolExecutor(max_workers=CONCURRENCY, thread_name_prefix="beaconframes")
        try:
            while True:
                for call in islice(remaining, MAX_PENDING - len(pending)):
                    pending.append((call, pool.submit(copy_context().run, self.fetch_call, call)))
                if not pending:
                    return
                call, future = pending[0]
                # Without a timeout, Ctrl-C would not end the wait once polars is imported.
                while not future.done():
                    wait([future], timeout=INTERRUPT_INTERVAL)
                try:
                    pages = future.result()
                except (BadRequest, NotFound) as refusal:
                    pages = self.fetch_served_part(call, refusal)
                pending.popleft()
                yield pages
        except (Exception, KeyboardInterrupt):
            finished = (future for _, future in pending if future.done() and not future.cancelled())
            yield from (future.result() for future in finished if future.exception() is None)
            raise
        finally:
            # After an error or Ctrl-C nothing more is sent, and requests under way are abandoned.
            self.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def fetch_served_part(self, call: Call, refusal: ServiceError) -> Pages:
        """Return the pages of the part of the refused *call* that is still served."""
        while (part := self.served.narrow(call, refusal, public=self.public)) is not None:
            try:
                return self.fetch_call(part)
            except (BadRequest, NotFound) as another:
                call, refusal = part, another
        return []

    def needs_probe(self, call: Call) -> bool:
        """Return whether *call* must be sent alone, to learn how many validators are allowed."""
        limit = self.identifier_limit
        return not limit.is_known and has_more_than(self.endpoint, call, limit.smallest)

    def fetch_call(self, call: Call) -> Pages:
        """Return the pages of *call*, split into requests within the identifier limit."""
        alternative = self.endpoint.find_alternative(call, public=self.public)
        if alternative is not None:
            return self.fetch_permitted(call, alternative)
        limit = self.identifier_limit
        pages: Pages = []
        # A call was planned for the limit known then; only a smaller one divides it again.
        is_divided = limit.current < limit.largest
        parts = (
            self.endpoint.split(call, limit.current, public=self.public) if is_divided else [call]
        )
        for part in parts:
            try:
                pages += self.fetch_pages(part)
            except TooManyIdentifiers as refusal:
                limit.learn(refusal)
                if len(self.endpoint.split(part, limit.current)) == 1:
                    raise
                pages += self.fetch_call(part)
            else:
                if self.needs_probe(part):
                    limit.is_known = True
        return pages

    def fetch_permitted(self, call: Call, alternative: Call) -> Pages:
        """Return the pages of *call*, or of the *alternative* if the key's plan refuses *call*."""
        limit = self.identifier_limit
        if not limit.refuses_ranges:
            with suppress(TierTooLow, BadRequest):
                return self.fetch_pages(call)
        pages = self.fetch_pages(alternative)
        limit.refuses_ranges = True
        return pages

    def fetch_pages(self, call: Call, *, is_retry: bool = False) -> Pages:
        """Return every page of *call*; read all again, once, if they do not belong together."""
        pages: Pages = []
        guard: PageLoopGuard | None = None
        next_call: Call | None = call
        while next_call is not None:
            call = next_call
            if self.context.request_limit is not None:
                self.context.request_limit.count(call.request.endpoint)
            try:
                page = self.session.fetch(call.request, stop=self.stop)
            except (BadRequest, NotFound, NotServed) as refusal:
                if not pages:
                    raise find_first_page_error(self.endpoint, refusal) from None
                # The first page was accepted with the same fields, so the cursor is refused.
                if is_retry:
                    raise PaginationError(
                        f"page {len(pages) + 1} was refused twice: {refusal.message}",
                        endpoint=call.request.endpoint,
                        hint="Try again later: the service refuses its own cursor. "
                        "Nothing was stored",
                    ) from None
                return self.fetch_pages(pages[0][0], is_retry=True)
            if self.context.progress is not None:
                self.context.progress.count_request()
            pages.append((call, page))
            first, last = (p.envelope_fields.get("last_updated") for p in (pages[0][1], page))
            if first != last:
                # The service recomputed its figures since the first page.
                if is_retry:
                    raise SnapshotMoved(
                        "the service recomputed its figures twice while their pages were read",
                        endpoint=call.request.endpoint,
                        hint="Try again later. Nothing was stored",
                    )
                return self.fetch_pages(pages[0][0], is_retry=True)
            next_call = self.endpoint.next_page(call, page, public=self.public)
            if next_call is not None:
                guard = guard or PageLoopGuard(self.empty_pages)
                guard.check(call.request, page, next_call.request)
        return pages


def find_first_page_error(endpoint: Endpoint, refusal: ServiceError) -> ServiceError:
    """Return the error for a refused first page of *endpoint*.

    The responses of some endpoints are not documented. For these, "not found" mostly means that
    the service does not have the endpoint.
    """
    if not (isinstance(refusal, NotFound) and endpoint.table.keeps_every_field):
        return refusal
    return NotServed(
        refusal.message,
        endpoint=refusal.endpoint,
        hint="This service may not have the endpoint yet, or not the requested object",
        attempts=refusal.attempts,
    )


def has_more_than(endpoint: Endpoint, call: Call, at_most: int) -> bool:
    """Return whether *call* has more than *at_most* validators."""
    try:
        return len(endpoint.split(call, at_most)) > 1
    except UsageError:
        # The set cannot be split; only the service can say whether it is too large.
        return True
