"""Going through the pages of calls: to the end, each once, a few calls at a time."""

from __future__ import annotations

import re
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from beaconframes.endpoint import PageLoopGuard
from beaconframes.errors import (
    BadRequest,
    NotFound,
    NotServed,
    PaginationError,
    ServiceError,
    SnapshotMoved,
    TooManyIdentifiers,
    UsageError,
)
from beaconframes.fetch.progress import PROGRESS, Progress
from beaconframes.fetch.request_limit import BUDGET, Budget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.errors import ResponseError
    from beaconframes.http.response import ResponsePage
    from beaconframes.http.session import Session

AT_ONCE = 8
ALLOWED = re.compile(r"limit of ([0-9]{1,3})\b", re.ASCII)

Found = list[tuple["Call", "ResponsePage"]]


@dataclass
class Allowance:
    """How many validators one request may name: it depends on the plan of the key.

    Nobody tells beforehand. It is taken for the most there is until the service refuses that, and
    ``known`` once it has been taken or refused.
    """

    at_once: int = 100
    least: int = 20
    known: bool = False

    def learn(self, refusal: TooManyIdentifiers) -> None:
        """Take the limit from what the service said, or else the least that any plan has."""
        told = ALLOWED.search(refusal.message)
        limit = int(told[1]) if told else self.least
        self.at_once = limit if 0 < limit < self.at_once else min(self.least, self.at_once)
        self.known = True


@dataclass
class Paginator:
    """The way through the pages of one endpoint."""

    endpoint: Endpoint
    session: Session
    allowance: Allowance
    public: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    budget: Budget | None = field(default_factory=BUDGET.get)
    progress: Progress | None = field(default_factory=PROGRESS.get)

    def pages(self, calls: list[Call]) -> Iterator[tuple[Call, ResponsePage]]:
        """Yield every page with its call, in order; a few calls are on at once."""
        first = 0
        if len(calls) <= 1 or self.unsure(calls):
            # One alone, to lose one request at most.
            first = 1
            for call in calls[:1]:
                yield from self.whole(call)
        if len(calls) <= first:
            return
        pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="beaconframes")
        try:
            for found in pool.map(self.whole, calls[first:]):
                yield from found
        finally:
            # After an error or Ctrl-C nothing more is sent, and nobody waits for what was.
            self.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def as_they_come(self, calls: list[Call]) -> Iterator[Found]:
        """Yield the pages of each call when it has all of them, whichever comes first.

        When one fails, those that had come are yielded before its error is raised. No more is on
        its way than twice what is asked at once, so that whoever takes it in sets the pace.
        """
        rest = iter(calls)
        if calls and (len(calls) == 1 or self.unsure(calls)):
            yield self.whole(next(rest))
        pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="beaconframes")
        waiting: set[Future[Found]] = set()
        try:
            while True:
                more = islice(rest, 2 * AT_ONCE - len(waiting))
                waiting |= {pool.submit(self.whole, call) for call in more}
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                good = [future for future in done if future.exception() is None]
                yield from (future.result() for future in good)
                if len(good) < len(done):
                    next(future for future in done if future.exception() is not None).result()
        except (Exception, KeyboardInterrupt):
            came = (future for future in waiting if future.done() and not future.cancelled())
            yield from (future.result() for future in came if future.exception() is None)
            raise
        finally:
            # After an error or Ctrl-C nothing more is sent, and nobody waits for what was.
            self.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def unsure(self, calls: list[Call]) -> bool:
        """Tell whether nobody knows yet if the service takes as many as the first call has."""
        return not self.allowance.known and self.is_large(calls[0])

    def is_large(self, call: Call) -> bool:
        """Tell whether *call* names more validators than every plan allows."""
        try:
            return len(self.endpoint.parts(call, self.allowance.least)) > 1
        except UsageError:
            # So many cannot be parted, and it is not yet known whether they have to be.
            return True

    def whole(self, call: Call) -> Found:
        """Return the pages of *call*, made as many calls as the service's limit wants."""
        found: Found = []
        for part in self.endpoint.parts(call, self.allowance.at_once, public=self.public):
            try:
                found += self.through(part)
            except TooManyIdentifiers as refusal:
                self.allowance.learn(refusal)
                if len(self.endpoint.parts(part, self.allowance.at_once)) == 1:
                    raise
                found += self.whole(part)
            else:
                if not self.allowance.known and self.is_large(part):
                    self.allowance.known = True
        return found

    def through(self, call: Call) -> Found:
        """Return every page of *call*; pages that do not go together cost one more beginning."""
        try:
            return self.once_through(call)
        except BeginAgain:
            try:
                return self.once_through(call)
            except BeginAgain as again:
                raise again.error from None

    def once_through(self, call: Call) -> Found:
        """Return every page of *call*, or raise BeginAgain."""
        found: Found = []
        trail = PageLoopGuard()
        following: Call | None = call
        while following is not None:
            call = following
            if self.budget is not None:
                self.budget.spend(call.request.endpoint)
            try:
                page = self.session.fetch(call.request, stop=self.stop)
            except (BadRequest, NotFound, NotServed) as refusal:
                if not found:
                    raise self.first_refused(refusal) from None
                # The same words without the cursor were good enough, so it is the cursor.
                raise BeginAgain(stale(call, len(found) + 1, refusal)) from None
            if self.progress is not None:
                self.progress.answered()
            found.append((call, page))
            if renewed(found[0][1], page):
                raise BeginAgain(moved(call))
            following = self.endpoint.next_page(call, page, public=self.public)
            if following is not None:
                trail.check(call, page, following)
        return found

    def first_refused(self, refusal: ServiceError) -> ServiceError:
        """Return what it means that the first page was refused.

        Of an endpoint that nobody has described, nobody has seen an answer either: that something
        was not found means first of all that the service does not have the endpoint.
        """
        if not (isinstance(refusal, NotFound) and self.endpoint.table.keeps_every_field):
            return refusal
        return NotServed(
            refusal.message,
            endpoint=refusal.endpoint,
            hint="This service may not have the endpoint yet, or not what was asked for",
            attempts=refusal.attempts,
        )


class BeginAgain(Exception):
    """Pages do not go together, and may when they are read once more.

    ``error`` is what it means if they do not. It never leaves this module.
    """

    def __init__(self, error: ResponseError) -> None:
        super().__init__(error)
        self.error = error


def stale(call: Call, number: int, refusal: ServiceError) -> PaginationError:
    """Return what it means that a page after the first was refused."""
    return PaginationError(
        f"page {number} was refused twice: {refusal.message}",
        endpoint=call.request.endpoint,
        hint="The service forgets where the next page begins; nothing was kept",
    )


def renewed(first: ResponsePage, page: ResponsePage) -> bool:
    """Tell whether the figures were worked out anew since the *first* page."""
    return first.beside.get("last_updated") != page.beside.get("last_updated")


def moved(call: Call) -> SnapshotMoved:
    """Return what it means that figures were worked out anew while they were read."""
    return SnapshotMoved(
        "the figures were worked out anew twice while their pages were read",
        endpoint=call.request.endpoint,
        hint="Ask again in a while; nothing was kept",
    )
