"""Sources of rows: the interface, and the explorer API as its first implementation."""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from beaconframes.endpoint import Envelope
from beaconframes.endpoint.chain_metadata import (
    CHAIN_HEADER,
    HEAD_HEADER,
    WINDOWS_HEADER,
    parse_head,
)
from beaconframes.endpoint.request import EMPTY_LIST
from beaconframes.errors import NotServed, ResponseError, TableNotInDataset
from beaconframes.fetch.paginator import IdentifierLimit, Paginator, has_more_than
from beaconframes.fetch.response_warnings import ResponseWarnings
from beaconframes.load_context import LOAD, RequestLimit
from beaconframes.progress import count_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    import polars as pl

    from beaconframes.endpoint import Call, ChainHead, Endpoint, Head, Request
    from beaconframes.endpoint.uncovered import Uncovered
    from beaconframes.fetch.paginator import Pages
    from beaconframes.fetch.served_range import ServedRange
    from beaconframes.http.session import Session

UNKNOWN_PAGES = "the number of pages is unknown until the last page"
FLUSH_SECONDS = 0.25
FLUSH_BYTES = 2**24
"""Received pages are decoded after this time or size, while other requests are under way."""


class FetchedRows(NamedTuple):
    """The rows of some calls, and the calls whose subject the service does not know."""

    calls: list[Call]
    rows: pl.DataFrame
    not_found: list[Call]
    warnings: list[Warning]
    uncovered: Sequence[tuple[Call, Uncovered]] = ()
    """Of a dataset: the calls whose units it does not all cover, with these units."""
    ranges: Collection[bytes] = ()
    """The JSON texts of the parts of the chain that the responses state to cover."""
    empty: Sequence[Call] = ()
    """The calls of which a page has no record, whatever their other pages and other calls have."""
    has_all_validators: bool = True
    """Whether the source knows all validators; a dataset may have some of them only."""
    has_all_rows: bool = False
    """Whether rows that are not uncovered cannot exist, as in an export that lists its gaps."""


@dataclass(frozen=True)
class RequestEstimate:
    """The requests that a source needs for some calls, and what they transfer if it is a node.

    ``requests_without_store`` is the number if nothing were stored. ``byte_count`` and ``seconds``
    are None if they are unknown; ``remarks`` says why, and what they assume. ``unavailable`` is
    what the source cannot answer, with the reasons.
    """

    requests: int
    may_be_more: tuple[str, ...] = ()
    may_be_less: tuple[str, ...] = ()
    requests_without_store: int | None = None
    has_stored: bool = False
    byte_count: int | None = None
    seconds: float | None = None
    remarks: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()


class Source:
    """Where missing rows come from: the explorer API, a dataset on disk, a beacon node.

    A source that sends no requests has no sessions, and drops no old units.
    """

    is_node = False
    """Whether the rows are those of a beacon node."""
    sessions: Collection[Session] = ()
    stated_headers: Mapping[str, str] = {WINDOWS_HEADER: "none"}
    """The headers in which a local explorer describes itself."""

    @property
    def stated_chain(self) -> str:
        """Return the chain as a local explorer states it; empty for other services."""
        return self.stated_headers.get(CHAIN_HEADER, "")

    @property
    def stated_head(self) -> Head | None:
        """Return the head that a local explorer states if it has no table of the latest state."""
        return parse_head(self.stated_headers.get(HEAD_HEADER, ""))

    @property
    def known_head(self) -> Head | None:
        """Return the head of a source that states it without a request."""
        return None

    @property
    def drops_old_units(self) -> bool:
        """Return whether the service drops old units; only a local explorer may drop none."""
        return self.stated_headers.get(WINDOWS_HEADER) != "none"

    def identifier_limit_of(self, envelope: Envelope) -> IdentifierLimit:  # noqa: ARG002
        """Return the limit of validators in a call of the API version that has this envelope."""
        return IdentifierLimit(sys.maxsize, is_known=True)

    def estimate(self, endpoint: Endpoint, calls: Sequence[Call]) -> RequestEstimate:  # noqa: ARG002
        """Return the number of requests for *calls* of *endpoint*, without a request."""
        return RequestEstimate(0)

    def limit_requests(self, most: int) -> RequestLimit | None:  # noqa: ARG002
        """Return the limit of a load of *most* requests; None if its estimate is exact."""
        return None

    def fetch(self, request: Request) -> bytes:
        """Return the data of one response: JSON without its envelope, or an image."""
        raise NotImplementedError  # pragma: no cover

    def fetch_rows(
        self,
        endpoint: Endpoint,
        arguments: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        served: ServedRange,
    ) -> Iterator[FetchedRows]:
        """Yield the rows of *endpoint* for each of the *arguments*, as they are received.

        Units that the service refuses are recorded in *served* instead of being an error.
        """
        raise NotImplementedError  # pragma: no cover


class Connection(Protocol):
    """The part of an explorer that the cache uses."""

    offline: bool
    """Whether no request may be sent."""

    @property
    def chain_head(self) -> ChainHead:
        """Return the chain head, as V1 reports it."""

    def chain_head_of(self, endpoint: Endpoint) -> ChainHead:
        """Return the chain head, as the API version of *endpoint* reports it."""

    def request_head(self, chain_head: ChainHead) -> None:
        """Request *chain_head*, unless it is fresh."""

    def agreed_finality(self, endpoint: Endpoint, *, refresh: bool = False) -> int:
        """Return the last epoch that two responses call final; with *refresh*, request one more."""

    def fetch(self, request: Request) -> bytes:
        """Return the data of one response."""


class ApiSource(Source):
    """The explorer API in both versions."""

    def __init__(self, session: Session, session_v2: Session, *, public: bool) -> None:
        """Try the *public* service's paths first, or those of the specification."""
        # V1 documents its limit of 100; in V2 it depends on the plan of the key.
        self._limit_v1, self._limit_v2 = IdentifierLimit(is_known=True), IdentifierLimit()
        self.sessions = {session, session_v2}
        session_v2.stated_headers = self.stated_headers = session.stated_headers
        self._session, self._session_v2 = session, session_v2
        self._public = public
        self._reported_sunsets: set[str] = set()

    def fetch(self, request: Request) -> bytes:
        """Return the data of one response: JSON without its envelope, or an image."""
        return self.session_of(request.envelope).fetch(request).data

    def session_of(self, envelope: Envelope) -> Session:
        """Return the session of the API version that has this envelope."""
        return self._session_v2 if envelope is Envelope.V2 else self._session

    def identifier_limit_of(self, envelope: Envelope) -> IdentifierLimit:
        """Return the limit of the API version that has this envelope."""
        return self._limit_v2 if envelope is Envelope.V2 else self._limit_v1

    def estimate(self, endpoint: Endpoint, calls: Sequence[Call]) -> RequestEstimate:
        """Return the number of requests for *calls* of *endpoint*, without a request."""
        limit = self.identifier_limit_of(endpoint.envelope)
        parts = [part for call in calls for part in endpoint.split(call, limit.current)]
        counts = [endpoint.count_pages(part) for part in parts]
        may_be_more = [] if all(is_certain for _, is_certain in counts) else [UNKNOWN_PAGES]
        if not limit.is_known and any(has_more_than(endpoint, p, limit.smallest) for p in parts):
            may_be_more.append(
                "the maximum number of validators per request is unknown; "
                f"{limit.current} are assumed"
            )
        if any(endpoint.find_alternative(part) is not None for part in parts):
            may_be_more.append(
                "the plan of the key may not include ranges other than windows that end now"
            )
        return RequestEstimate(sum(number for number, _ in counts), tuple(may_be_more))

    def _expect_requests(self, endpoint: Endpoint, calls: Sequence[Call]) -> None:
        """Add the requests for *calls* to the progress."""
        if (progress := LOAD.get().progress) is not None:
            planned = self.estimate(endpoint, calls)
            is_known = UNKNOWN_PAGES not in planned.may_be_more
            progress.expect(planned.requests if is_known else None)

    def limit_requests(self, most: int) -> RequestLimit | None:
        """Return the limit of a load of *most* requests; None if its estimate is exact."""
        return RequestLimit(most)

    def fetch_rows(
        self,
        endpoint: Endpoint,
        arguments: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        served: ServedRange,
    ) -> Iterator[FetchedRows]:
        """Yield the rows of *endpoint* for each of the *arguments*, as they are received.

        A range that ends after the head is refused without a request for its rows.
        When a request fails, the rows received so far are yielded before the error is raised. The
        specification and the public service have different paths for some endpoints. The first
        unknown path shows which ones the service has.
        """
        # If columns are inferred from the records, all pages must be decoded together.
        may_flush = not endpoint.table.keeps_every_field
        limit = self.identifier_limit_of(endpoint.envelope)
        first = self._public
        for public in (first, not first):
            calls = plan_calls(endpoint, arguments, chain_head, public=public)
            until = served.values.get("until")
            # An old epoch exists, so its load does not need the head.
            if isinstance(until, int) and chain_head.may_be_unfinalized("epoch", until):
                served.check_not_future(calls)
            self._expect_requests(endpoint, calls)
            session = self.session_of(endpoint.envelope)
            paginator = Paginator(endpoint, session, limit, served, public=public)
            warnings = ResponseWarnings(endpoint, chain_head.chain)
            decode = partial(decode_pages, endpoint, session, chain_head, warnings, {})
            pages: Pages = []
            has_rows, size, last_flush = False, 0, time.monotonic()
            try:
                for received in paginator.fetch(calls):
                    pages += received
                    for _, page in received:
                        size += len(page.data)
                    is_due = size >= FLUSH_BYTES or time.monotonic() - last_flush >= FLUSH_SECONDS
                    if may_flush and is_due:
                        fetched = decode(pages)
                        # The responses are released before the rows are used; the paginator has
                        # the list that it returned last.
                        received.clear()
                        has_rows, pages, size = True, [], 0
                        yield fetched
                        last_flush = time.monotonic()
            except (Exception, KeyboardInterrupt) as error:
                if pages:
                    yield decode(pages)
                is_unknown = isinstance(error, NotServed) and not (pages or has_rows)
                is_unknown &= not isinstance(error, TableNotInDataset)
                if not is_unknown or endpoint.alias is None or public is not first:
                    raise
            else:
                fetched = decode(pages)
                yield fetched._replace(warnings=warnings.all(self._reported_sunsets))
                self._public = public
                return


def plan_calls(
    endpoint: Endpoint,
    arguments: Iterable[Mapping[str, Any]],
    chain_head: ChainHead,
    *,
    public: bool = False,
) -> list[Call]:
    """Return the calls for the *arguments*, by *public* paths or those of the specification."""
    return [
        call for values in arguments for call in endpoint.plan(values, chain_head, public=public)
    ]


def decode_pages(
    endpoint: Endpoint,
    session: Session,
    chain_head: ChainHead,
    warnings: ResponseWarnings,
    answered: dict[int, Call],
    pages: Pages,
) -> FetchedRows:
    """Return the rows of *pages*, which *session* has received.

    *answered* has the calls of the earlier pages of the load, as for `Endpoint.check_rows`.
    """
    not_found = warnings.observe(pages)
    try:
        rows = endpoint.decode(pages, chain_head.chain)
        endpoint.check_rows(pages, rows, chain_head.chain, answered)
    except ResponseError as error:
        # It may quote text in which the service repeats a key.
        error.message = session.redact(error.message)
        error.args = (error.message,)
        raise
    rows = endpoint.mark_open_rows(rows, chain_head)
    count_rows(rows.height)
    # The pages of a call share its batches.
    calls = {id(call.batches): call for call, _ in pages}
    empty = {id(call.batches) for call, page in pages if EMPTY_LIST.fullmatch(page.data)}
    return FetchedRows(
        list(calls.values()),
        rows,
        not_found,
        warnings=[],
        uncovered=warnings.uncovered,
        empty=[call for key, call in calls.items() if key in empty],
        ranges=[*itertools.chain.from_iterable(warnings.ranges.values())],
        has_all_validators=warnings.has_all_validators,
        has_all_rows=warnings.has_all_rows,
    )
