"""The explorer: where to ask, with which key, how fast; and the one loop of every loader."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from beaconframes.calendar import Chain, get_chain
from beaconframes.client.completeness import missing_rows, only_asked
from beaconframes.client.head import Watch
from beaconframes.client.session import Session
from beaconframes.config import current as current_settings
from beaconframes.endpoint import Horizon
from beaconframes.errors import ConfigError, NotServed, PaginationError
from beaconframes.units import to_pandas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    import polars as pl

    from beaconframes.endpoint import Call, Endpoint, Head, Request

AT_ONCE = 8
PUBLIC = {"mainnet": "https://beaconcha.in", "hoodi": "https://hoodi.beaconcha.in"}
"""Where the public service answers generation 1, by chain."""


Following: TypeAlias = "Callable[[Call, bytes], Call | None]"
"""What comes after a page of a call."""


class Explorer:
    """A connection to one explorer: thread-safe, kept open, usable in a ``with`` block.

    Parameters
    ----------
    url
        Address of the service; it may carry a path prefix. Left out: the public service.
    api_key
        Sent in a header, only to this address, and shown nowhere.
    chain
        ``"mainnet"``, ``"hoodi"`` or a `beaconframes.Chain`.
    rate
        Most requests a second. Left out: what the service says it permits.
    frame
        ``"polars"`` or ``"pandas"``: what loaders return.
    strict
        Whether missing rows are an error instead of a warning.
    head
        The end of the chain, where it cannot move any more (a dataset served locally).
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        chain: str | Chain | None = None,
        rate: float | None = None,
        frame: Literal["polars", "pandas"] | None = None,
        strict: bool | None = None,
        head: Head | None = None,
    ) -> None:
        """Check the settings; nothing is sent yet."""
        settings = current_settings(
            url=url, api_key=api_key, chain=chain, rate=rate, frame=frame, strict=strict
        )
        # A key belongs to the address that it was given with: never to another one.
        key = settings.api_key if url is None or api_key is not None else None
        self._own = {"frame": frame, "strict": strict}
        self.chain = get_chain(settings.chain)
        self.url = settings.url or public_url(self.chain, has_key=key is not None)
        self._public = self.url in PUBLIC.values()
        self._session = Session(self.url, key, rate=settings.rate)
        self._watch = Watch(lambda request: self._session.fetch(request).data, known=head)

    def __repr__(self) -> str:
        """Return where it asks; never with which key."""
        return f"Explorer({self.url!r}, chain={self.chain.name!r})"

    def __enter__(self) -> Self:
        """Return the explorer itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens them again."""
        self._session.close()

    @property
    def requests(self) -> int:
        """Return how many requests were sent so far, retries included."""
        return self._session.requests

    @property
    def horizon(self) -> Horizon:
        """Return what is known about the end of the chain."""
        return Horizon(self.chain, self._watch.head, self.now, self._watch.known)

    def now(self) -> datetime:
        """Return the present; of a chain that does not move any more, that is its end."""
        known = self._watch.known
        return self.chain.time_of("slot", known.slot) if known else datetime.now(UTC)

    def load(
        self, endpoint: Endpoint, values: Mapping[str, Any], *, strict: bool | None = None
    ) -> Any:
        """Return every row that *values* select, as the frame of the settings.

        Raises
        ------
        BeaconframesError
            The service failed, or what it sent cannot be trusted; see `beaconframes.errors`.
        """
        calls, rows = self.ask(endpoint, values)
        rows = endpoint.table.arrange(only_asked(endpoint, calls, rows))
        for selector in endpoint.selectors:
            rows = selector.finish(rows, values)
        settings = current_settings(**self._own)
        self.tell_missing(
            endpoint, calls, rows, strict=settings.strict if strict is None else strict
        )
        return to_pandas(rows) if settings.frame == "pandas" else rows

    def ask(self, endpoint: Endpoint, values: Mapping[str, Any]) -> tuple[list[Call], pl.DataFrame]:
        """Return the requests that *values* took, and the rows that came.

        The specification and the public service name some endpoints differently. Which names a
        service goes by is learned from the first that it does not know, and kept in mind.
        """
        try:
            return self.ask_as(endpoint, values, public=self._public)
        except NotServed:
            if endpoint.alias is None:
                raise
            answered = self.ask_as(endpoint, values, public=not self._public)
            self._public = not self._public
            return answered

    def ask_as(
        self, endpoint: Endpoint, values: Mapping[str, Any], *, public: bool
    ) -> tuple[list[Call], pl.DataFrame]:
        """Return requests and rows, by the *public* names or by the specification's."""
        calls = endpoint.plan(values, self.horizon, public=public)
        found = self.pages(calls, partial(endpoint.next_page, public=public))
        return calls, endpoint.decode(found, self.chain)

    def fetch(self, request: Request) -> bytes:
        """Return the data of one answer as it came: JSON out of its envelope, or a picture."""
        return self._session.fetch(request).data

    def tell_missing(
        self, endpoint: Endpoint, calls: list[Call], rows: pl.DataFrame, *, strict: bool
    ) -> None:
        """Warn about rows that did not come back, or raise when *strict*."""
        missing = missing_rows(endpoint, calls, rows)
        if missing is None:
            return
        if strict:
            raise missing
        warnings.warn(missing, stacklevel=5)

    def pages(self, calls: list[Call], following: Following) -> Iterator[tuple[Call, bytes]]:
        """Yield every page with its call, in order; a few calls are on at once."""
        stop = threading.Event()

        def walk(call: Call | None) -> list[tuple[Call, bytes]]:
            found: list[tuple[Call, bytes]] = []
            while call is not None:
                data = self._session.fetch(call.request, stop=stop).data
                if any(data == page for _, page in found):
                    raise PaginationError(
                        f"page {len(found) + 1} is one that came before, so there is no end",
                        endpoint=call.request.endpoint,
                        hint="The service does not page as the API says; nothing was kept",
                    )
                found.append((call, data))
                call = following(call, data)
            return found

        if len(calls) <= 1:
            for call in calls:
                yield from walk(call)
            return
        pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="beaconframes")
        try:
            for pages in pool.map(walk, calls):
                yield from pages
        finally:
            # After an error or Ctrl-C nothing more is sent, and nobody waits for what was.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def public_url(chain: Chain, *, has_key: bool) -> str:
    """Return the public service's address for *chain*."""
    if chain.name not in PUBLIC:
        raise ConfigError(
            f"the public service does not know the chain {chain.name!r}",
            hint="Say where its explorer is: bf.connect(url, chain=...)",
        )
    if not has_key:
        raise ConfigError(
            "the public service needs an API key and none is set",
            hint="Set BEACONFRAMES_API_KEY or call bf.connect(api_key=...); "
            "without a key, bf.local() serves a simulated chain on this machine",
        )
    return PUBLIC[chain.name]
