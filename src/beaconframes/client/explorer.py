"""The explorer: where to ask, with which key, how fast; and the one loop of every loader."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from beaconframes.cache.preparation import from_store
from beaconframes.calendar import Chain, get_chain
from beaconframes.client.defaults import (
    PUBLIC,
    PUBLIC_V2,
    local_store_of,
    public_url,
    rate_limiter_of,
    stored_head,
)
from beaconframes.client.estimate import limited
from beaconframes.client.quota import left_of
from beaconframes.config import current as current_settings
from beaconframes.endpoint import ChainHead, Envelope, Head
from beaconframes.errors import UsageError
from beaconframes.fetch.api_source import ApiSource
from beaconframes.fetch.completeness import broken_rows, missing_rows
from beaconframes.fetch.gaps import certain
from beaconframes.fetch.head import Views, Watch
from beaconframes.fetch.pipeline import fresh
from beaconframes.fetch.progress import watched
from beaconframes.http.session import Session
from beaconframes.units import to_pandas

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    import polars as pl

    from beaconframes.endpoint import Endpoint, Request
    from beaconframes.fetch.result import LoadResult


class Explorer:
    """A connection to one explorer: thread-safe, kept open, usable in a ``with`` block.

    It cannot be pickled: create one in each process. They share the rate limit of their key.

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
    store
        Whether what is final is kept and not asked for again: True, False, or in which folder.
        Left out: in the platform's folder for data, but not what a service on this machine tells.
    offline
        Whether to answer from the store alone, and to name what it lacks.
    max_requests
        Most requests of one call of a loader. A call that needs more raises
        `RequestLimitExceeded` before it sends any.
    progress
        Whether to show how far loading is when it takes over a second: rows, requests, time left.
        Left out: where somebody watches, in a terminal or a notebook.
    state
        Where processes that use one key find each other, to keep to its rate together: True,
        False (each keeps to it alone), or in which folder. Left out: in the platform's folder for
        state, but not for a service on this machine that needs no key and has no limits.
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
        store: bool | str | os.PathLike[str] | None = None,
        offline: bool | None = None,
        max_requests: int | None = None,
        progress: bool | None = None,
        state: bool | str | os.PathLike[str] | None = None,
        head: Head | None = None,
    ) -> None:
        """Check the settings; nothing is sent yet."""
        settings = current_settings(
            url=url,
            api_key=api_key,
            chain=chain,
            rate=rate,
            frame=frame,
            strict=strict,
            store=store,
            offline=offline,
            max_requests=max_requests,
            progress=progress,
            state=state,
        )
        # A key belongs to the address that it was given with: never to another one.
        key = settings.api_key if url is None or api_key is not None else None
        self._own = {
            "frame": frame,
            "strict": strict,
            "max_requests": max_requests,
            "progress": progress,
        }
        self.about: Mapping[str, Any] = {}
        """What is known of the service that it does not say itself: is the chain simulated?"""
        self.chain = get_chain(settings.chain)
        self.offline = settings.offline
        self.url = settings.url or public_url(self.chain, has_key=key is not None or self.offline)
        public = self.url in PUBLIC.values()
        self.rate_limiter = rate_limiter_of(settings, self.url, key, public=public)
        self._session = self._session_v2 = Session(self.url, key, rate_limiter=self.rate_limiter)
        if public and self.url != PUBLIC_V2:
            # One key, one allowance: whichever generation is asked.
            retry_quota = self._session.retry_quota
            self._session_v2 = Session(
                PUBLIC_V2, key, rate_limiter=self.rate_limiter, retry_quota=retry_quota
            )
        self.asking = ApiSource(self._session, self._session_v2, public=public)
        self.local_store = local_store_of(settings.store, self.url, self.chain, needed=self.offline)
        if self.offline and head is None:
            head = stored_head(self.local_store, self.chain)
        self._watch = Watch(self.fetch, known=head)
        self._views = Views(self.fetch, self.chain)

    def __repr__(self) -> str:
        """Return where it asks; never with which key."""
        return f"Explorer({self.url!r}, chain={self.chain.name!r})"

    def __reduce__(self) -> NoReturn:
        """Raise a UsageError: connections and locks cannot be pickled, and a key must not be."""
        raise UsageError(
            "an Explorer cannot be pickled or copied", hint="Create an Explorer in each process"
        )

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
        for session in self.asking.sessions:
            session.close()

    @property
    def requests(self) -> int:
        """Return how many requests were sent so far, retries included."""
        return sum(session.request_count for session in self.asking.sessions)

    @property
    def rate(self) -> float | None:
        """Return the requests a second that are kept to; None while no limit is known."""
        return self.rate_limiter.rate

    def chain_head_of(self, endpoint: Endpoint) -> ChainHead:
        """Return what is known about the end of the chain, by the generation of *endpoint*."""
        return self.chain_head_v2 if endpoint.envelope is Envelope.V2 else self.chain_head

    def look_again(self) -> None:
        """Ask where the chain ends when that matters next, however recently it was asked."""
        self._watch.forget()

    def agreed(self, endpoint: Endpoint, *, ask: bool = False) -> int:
        """Return the last epoch that two answers call finalized; with *ask*, ask once more."""
        if (known := self._watch.known) is not None:
            return known.finalized_epoch
        told = self._views if endpoint.envelope is Envelope.V2 else self._watch
        return told.agreed(ask=ask)

    @property
    def chain_head(self) -> ChainHead:
        """Return what is known about the end of the chain."""
        return ChainHead(self.chain, self._watch.head, self.now, self._watch.known)

    @property
    def chain_head_v2(self) -> ChainHead:
        """Return what is known about the end of the chain, by way of generation 2."""
        known = self._watch.known
        end = self._views if known is None else known
        return ChainHead(self.chain, lambda: end, self.now, known, self.asking.allowance.at_once)

    def now(self) -> datetime:
        """Return the present; of a chain that does not move any more, that is its end."""
        known = self._watch.known
        return self.chain.time_of("slot", known.slot) if known else datetime.now(UTC)

    def load(
        self,
        endpoint: Endpoint,
        values: Mapping[str, Any],
        *,
        strict: bool | None = None,
        lazy: bool = False,
        frame: Literal["polars", "pandas"] | None = None,
        max_requests: int | None = None,
    ) -> Any:
        """Return every row that *values* select, as a frame of the kind *frame* or of the settings.

        Raises
        ------
        RequestLimitExceeded
            It would take more than *max_requests* requests.
        BeaconframesError
            The service failed, or what it sent cannot be trusted; see `beaconframes.errors`.
        """
        said = dict(self._own)
        if frame is not None:
            said["frame"] = frame
        if max_requests is not None:
            said["max_requests"] = max_requests
        settings = current_settings(**said)
        if lazy and frame == "pandas":
            raise UsageError(
                'lazy=True returns a polars LazyFrame, and frame="pandas" is given',
                hint="Leave one of them out",
            )
        with (
            limited(self, endpoint, values, settings.max_requests),
            watched(endpoint.name, show=settings.progress, left=lambda: left_of(self.rate_limiter)),
        ):
            found = self._found(endpoint, values)
        if lazy:
            rows: Any = found.as_lazy(endpoint, values)
        else:
            rows = found.as_frame(endpoint, values)
            rows = to_pandas(rows) if settings.frame == "pandas" else rows
        for notice in found.notices:
            warnings.warn(notice, stacklevel=4)
        if strict is None:
            strict = current_settings(**self._own).strict
        lost = certain(found.lost, self.chain_head_of(endpoint))
        self.tell_missing(endpoint, lost, rows, strict=strict)
        return rows

    def _found(self, endpoint: Endpoint, values: Mapping[str, Any]) -> LoadResult:
        found = (
            None
            if self.local_store is None
            else from_store(self, self.local_store, endpoint, values)
        )
        if found is None and self.offline:
            raise UsageError(
                f"load_{endpoint.name} asks for what no store keeps, and this is offline",
                hint="Connect without offline=True",
            )
        return fresh(self, endpoint, values) if found is None else found

    def fetch(self, request: Request) -> bytes:
        """Return the data of one answer as it came: JSON out of its envelope, or a picture."""
        if self.offline:
            raise UsageError(
                "nothing is sent while offline=True", hint="Connect without offline=True"
            )
        return self.asking.fetch(request)

    def tell_missing(
        self, endpoint: Endpoint, lost: pl.DataFrame, frame: Any, *, strict: bool
    ) -> None:
        """Raise for rows that must be there, and warn of others that are lost or raise too."""
        broken, missing = broken_rows(endpoint, lost), missing_rows(endpoint, lost)
        error = broken or (missing if strict else None)
        if error is not None:
            error.rows = frame
            raise error
        if missing is not None:
            warnings.warn(missing, stacklevel=5)
