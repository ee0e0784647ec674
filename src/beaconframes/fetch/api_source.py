"""Asking: from the arguments of loaders to rows, by whichever names a service goes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from beaconframes.endpoint import Envelope
from beaconframes.errors import NotServed
from beaconframes.fetch.paginator import Allowance, Paginator
from beaconframes.fetch.progress import brought, expect
from beaconframes.fetch.response_warnings import ResponseWarnings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from beaconframes.endpoint import Call, ChainHead, Endpoint, Request
    from beaconframes.fetch.paginator import Found
    from beaconframes.http.session import Session

PIECE_SECONDS = 0.25
PIECE_BYTES = 2**24
"""After which what came is made into rows, though more is to come."""


class FetchedRows(NamedTuple):
    """What came: for which requests, which rows, and what the service said that there is not.

    ``notices`` are the warnings that it came with.
    """

    calls: list[Call]
    rows: pl.DataFrame
    denied: list[Call]
    notices: list[Warning]


class ApiSource:
    """Asks one service in both generations."""

    def __init__(self, session: Session, session_v2: Session, *, public: bool) -> None:
        """Ask by the *public* service's names first, or by the specification's."""
        self.allowance = Allowance()
        self.sessions = {session, session_v2}
        self._session, self._session_v2 = session, session_v2
        self._public = public
        self._ends_told: set[str] = set()

    def fetch(self, request: Request) -> bytes:
        """Return the data of one answer as it came: JSON out of its envelope, or a picture."""
        return self.session_of(request.envelope).fetch(request).data

    def session_of(self, envelope: Envelope) -> Session:
        """Return the session of the generation that has this envelope."""
        return self._session_v2 if envelope is Envelope.V2 else self._session

    def ask(
        self, endpoint: Endpoint, asked: Sequence[Mapping[str, Any]], chain_head: ChainHead
    ) -> FetchedRows:
        """Return what the arguments in *asked* brought, each of them a selection of rows.

        The specification and the public service name some endpoints differently. Which names a
        service goes by is learned from the first that it does not know, and kept in mind.
        """
        try:
            return self.ask_as(endpoint, asked, chain_head, public=self._public)
        except NotServed:
            if endpoint.alias is None:
                raise
            came = self.ask_as(endpoint, asked, chain_head, public=not self._public)
            self._public = not self._public
            return came

    def ask_as(
        self,
        endpoint: Endpoint,
        asked: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        *,
        public: bool,
    ) -> FetchedRows:
        """Return what came, asked by the *public* names or by the specification's."""
        calls = self.calls(endpoint, asked, chain_head, public=public)
        notices = ResponseWarnings(endpoint, chain_head.chain)
        pages = self.walk(endpoint, public=public).pages(calls)
        expect(endpoint, calls, self.allowance.at_once)
        rows = endpoint.decode(notices.along(pages), chain_head.chain)
        brought(rows.height)
        return FetchedRows(calls, rows, notices.denied, notices.all(self._ends_told))

    def pieces(
        self, endpoint: Endpoint, asked: Sequence[Mapping[str, Any]], chain_head: ChainHead
    ) -> Iterator[FetchedRows]:
        """Yield what the arguments in *asked* bring, piece by piece as it comes.

        When something fails, what had come by then is yielded before the error is raised.
        """
        came = False
        try:
            for piece in self.pieces_as(endpoint, asked, chain_head, public=self._public):
                came = True
                yield piece
        except NotServed:
            if came or endpoint.alias is None:
                raise
            yield from self.pieces_as(endpoint, asked, chain_head, public=not self._public)
            self._public = not self._public

    def pieces_as(
        self,
        endpoint: Endpoint,
        asked: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        *,
        public: bool,
    ) -> Iterator[FetchedRows]:
        """Yield what comes, asked by the *public* names or by the specification's."""
        calls = self.calls(endpoint, asked, chain_head, public=public)
        notices = ResponseWarnings(endpoint, chain_head.chain)
        found: Found = []
        size, begun = 0, time.monotonic()
        expect(endpoint, calls, self.allowance.at_once)

        def piece() -> FetchedRows:
            rows = endpoint.decode(notices.along(found), chain_head.chain)
            brought(rows.height)
            by_batches = {id(call.batches): call for call, _ in found}
            denied, notices.denied = notices.denied, []
            return FetchedRows(list(by_batches.values()), rows, denied, [])

        try:
            for answered in self.walk(endpoint, public=public).as_they_come(calls):
                found += answered
                size += sum(len(page.data) for _, page in answered)
                if size >= PIECE_BYTES or time.monotonic() - begun >= PIECE_SECONDS:
                    yield piece()
                    found, size, begun = [], 0, time.monotonic()
        except (Exception, KeyboardInterrupt):
            if found:
                yield piece()
            raise
        last = piece()
        yield last._replace(notices=notices.all(self._ends_told))

    def calls(
        self,
        endpoint: Endpoint,
        asked: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        *,
        public: bool,
    ) -> list[Call]:
        """Return the requests that the arguments in *asked* take."""
        return [
            call for values in asked for call in endpoint.plan(values, chain_head, public=public)
        ]

    def walk(self, endpoint: Endpoint, *, public: bool) -> Paginator:
        """Return the way through the pages of *endpoint*."""
        return Paginator(
            endpoint, self.session_of(endpoint.envelope), self.allowance, public=public
        )
