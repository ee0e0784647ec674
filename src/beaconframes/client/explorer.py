"""The explorer: where to ask, with which key, how fast; and the one loop of every loader."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from beaconframes import config
from beaconframes.calendar import Chain, get_chain
from beaconframes.client.completeness import missing_rows, refuse_foreign
from beaconframes.client.head import Watch
from beaconframes.client.session import Session
from beaconframes.endpoint import Horizon
from beaconframes.errors import ConfigError, NotServed
from beaconframes.units import to_pandas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

    import polars as pl

    from beaconframes.endpoint import Call, Endpoint, Head

AT_ONCE = 8
PUBLIC = {"mainnet": "https://beaconcha.in", "hoodi": "https://hoodi.beaconcha.in"}
"""Where the public service answers generation 1, by chain."""


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
        settings = config.current(
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
        return Horizon(self.chain, self._watch.head, lambda: datetime.now(UTC), self._watch.known)

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
        refuse_foreign(endpoint, calls, rows)
        rows = endpoint.table.arrange(rows)
        for selector in endpoint.selectors:
            rows = selector.finish(rows, values) if len(calls) > 1 else rows
        settings = config.current(**self._own)
        self.tell_missing(
            endpoint, calls, rows, strict=settings.strict if strict is None else strict
        )
        return to_pandas(rows) if settings.frame == "pandas" else rows

    def ask(self, endpoint: Endpoint, values: Mapping[str, Any]) -> tuple[list[Call], pl.DataFrame]:
        """Return the requests that *values* took, and the rows that came.

        The specification and the public service name some endpoints differently. Which names a
        service goes by is learned from the first that it does not know, and kept in mind.
        """
        calls = endpoint.plan(values, self.horizon, public=self._public)
        try:
            return calls, endpoint.table.decode(self.answers(calls), self.chain)
        except NotServed:
            if endpoint.alias is None:
                raise
            calls = endpoint.plan(values, self.horizon, public=not self._public)
            rows = endpoint.table.decode(self.answers(calls), self.chain)
            self._public = not self._public
            return calls, rows

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

    def answers(self, calls: list[Call]) -> Iterator[bytes]:
        """Yield the data of each call in order, a few requests under way at once."""
        if len(calls) <= 1:
            yield from (self._session.fetch(call.request).data for call in calls)
            return
        stop = threading.Event()
        pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="beaconframes")
        fetch = partial(self._session.fetch, stop=stop)
        try:
            for answer in pool.map(fetch, (call.request for call in calls)):
                yield answer.data
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


_current: Explorer | None = None


def connect(
    url: str | None = None,
    *,
    api_key: str | None = None,
    chain: str | Chain | None = None,
    rate: float | None = None,
    frame: Literal["polars", "pandas"] | None = None,
    strict: bool | None = None,
) -> Explorer:
    """Make an explorer and let every loader ask it from now on.

    Takes what `Explorer` takes, and returns the explorer. What is left out comes from the
    environment; but a key from there is not sent to an address given here.
    """
    explorer = Explorer(url, api_key=api_key, chain=chain, rate=rate)
    config.configure(frame=frame or "polars", strict=bool(strict))
    use(explorer)
    return explorer


def use(explorer: Explorer | None) -> Explorer | None:
    """Make *explorer* the one that loaders ask; return the one before."""
    global _current
    before, _current = _current, explorer
    return before


def current() -> Explorer:
    """Return the explorer that loaders ask: the connected one, or one made from the environment."""
    if _current is None:
        use(Explorer())
    if _current is None:  # pragma: no cover
        raise ConfigError("no explorer is connected")
    return _current
