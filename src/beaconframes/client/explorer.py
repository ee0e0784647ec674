"""The explorer: where to ask, with which key, how fast; and the one loop of every loader."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from beaconframes.calendar import Chain, get_chain
from beaconframes.client.completeness import missing_rows, only_asked
from beaconframes.client.head import Views, Watch
from beaconframes.client.notices import Notices
from beaconframes.client.session import Session
from beaconframes.client.walking import Allowance, Walk
from beaconframes.config import current as current_settings
from beaconframes.endpoint import Envelope, Horizon
from beaconframes.errors import ConfigError, NotServed
from beaconframes.units import to_pandas

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    import polars as pl

    from beaconframes.endpoint import Call, Endpoint, Head, Request

PUBLIC = {"mainnet": "https://beaconcha.in", "hoodi": "https://hoodi.beaconcha.in"}
"""Where the public service answers generation 1, by chain."""

PUBLIC_V2 = PUBLIC["mainnet"]
"""Where it answers generation 2, whose requests name the chain themselves."""


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
        self._session = self._session_v2 = Session(self.url, key, rate=settings.rate)
        if self._public and self.url != PUBLIC_V2:
            # One key, one allowance: whichever generation is asked.
            self._session_v2 = Session(PUBLIC_V2, key, pacer=self._session.pacer)
        self._watch = Watch(self.fetch, known=head)
        self._views = Views(self.fetch, self.chain)
        self._allowance = Allowance()
        self._ends_told: set[str] = set()

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
        for session in {self._session, self._session_v2}:
            session.close()

    @property
    def requests(self) -> int:
        """Return how many requests were sent so far, retries included."""
        return sum(session.requests for session in {self._session, self._session_v2})

    @property
    def horizon(self) -> Horizon:
        """Return what is known about the end of the chain."""
        return Horizon(self.chain, self._watch.head, self.now, self._watch.known)

    @property
    def horizon_v2(self) -> Horizon:
        """Return what is known about the end of the chain, by way of generation 2."""
        known = self._watch.known
        end = self._views if known is None else known
        return Horizon(self.chain, lambda: end, self.now, known, self._allowance.at_once)

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
        second = endpoint.envelope is Envelope.V2
        calls = endpoint.plan(values, self.horizon_v2 if second else self.horizon, public=public)
        session = self._session_v2 if second else self._session
        notices = Notices(endpoint)
        walk = Walk(endpoint, session, self._allowance, public=public)
        rows = endpoint.decode(notices.along(walk.pages(calls)), self.chain)
        for notice in (notices.moved, notices.ends(self._ends_told)):
            if notice is not None:
                warnings.warn(notice, stacklevel=6)
        return calls, rows

    def fetch(self, request: Request) -> bytes:
        """Return the data of one answer as it came: JSON out of its envelope, or a picture."""
        session = self._session_v2 if request.envelope is Envelope.V2 else self._session
        return session.fetch(request).data

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
