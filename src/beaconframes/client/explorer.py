"""The explorer: where to ask, with which key, how fast; and the one loop of every loader."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from beaconframes.calendar import Chain, get_chain
from beaconframes.client.again import again
from beaconframes.client.completeness import broken_rows, missing_rows, new_in, only_asked
from beaconframes.client.gaps import certain, gaps
from beaconframes.client.head import Views, Watch
from beaconframes.client.notices import Notices
from beaconframes.client.session import Session
from beaconframes.client.walking import Allowance, Walk
from beaconframes.config import current as current_settings
from beaconframes.endpoint import Envelope, Horizon
from beaconframes.errors import ConfigError, NotServed, ServiceError, UsageError
from beaconframes.units import to_pandas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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

    def horizon_of(self, endpoint: Endpoint) -> Horizon:
        """Return what is known about the end of the chain, by the generation of *endpoint*."""
        return self.horizon_v2 if endpoint.envelope is Envelope.V2 else self.horizon

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
        calls, rows, denied = self.ask(endpoint, [values])
        rows = endpoint.table.arrange(only_asked(endpoint, calls, rows))
        horizon = self.horizon_of(endpoint)
        lost = gaps(endpoint, calls, rows, horizon)
        for asked in again(endpoint, calls, denied, lost):
            if not asked:
                continue
            try:
                more = self.ask(endpoint, [{**values, **part} for part in asked])
            except (UsageError, ServiceError):
                # What came before is worth more; what is still lost is named below.
                break
            found = only_asked(endpoint, more.calls, more.rows)
            found = new_in(endpoint.table.key(), found, rows)
            if found.is_empty():
                break
            rows = endpoint.table.arrange(rows.vstack(found))
            lost = gaps(endpoint, calls, rows, horizon)
        for selector in endpoint.selectors:
            rows = selector.finish(rows, values)
        settings = current_settings(**self._own)
        frame = to_pandas(rows) if settings.frame == "pandas" else rows
        self.tell_missing(
            endpoint,
            certain(lost, horizon),
            frame,
            strict=settings.strict if strict is None else strict,
        )
        return frame

    def ask(self, endpoint: Endpoint, asked: Sequence[Mapping[str, Any]]) -> Came:
        """Return what the arguments in *asked* brought, each of them a selection of rows.

        The specification and the public service name some endpoints differently. Which names a
        service goes by is learned from the first that it does not know, and kept in mind.
        """
        try:
            return self.ask_as(endpoint, asked, public=self._public)
        except NotServed:
            if endpoint.alias is None:
                raise
            came = self.ask_as(endpoint, asked, public=not self._public)
            self._public = not self._public
            return came

    def ask_as(
        self, endpoint: Endpoint, asked: Sequence[Mapping[str, Any]], *, public: bool
    ) -> Came:
        """Return what came, asked by the *public* names or by the specification's."""
        horizon = self.horizon_of(endpoint)
        calls = [call for values in asked for call in endpoint.plan(values, horizon, public=public)]
        session = self._session_v2 if endpoint.envelope is Envelope.V2 else self._session
        notices = Notices(endpoint)
        walk = Walk(endpoint, session, self._allowance, public=public)
        rows = endpoint.decode(notices.along(walk.pages(calls)), self.chain)
        for notice in (notices.moved, notices.ends(self._ends_told)):
            if notice is not None:
                warnings.warn(notice, stacklevel=6)
        return Came(calls, rows, notices.denied)

    def fetch(self, request: Request) -> bytes:
        """Return the data of one answer as it came: JSON out of its envelope, or a picture."""
        session = self._session_v2 if request.envelope is Envelope.V2 else self._session
        return session.fetch(request).data

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


class Came(NamedTuple):
    """What came: for which requests, which rows, and what the service said that there is not."""

    calls: list[Call]
    rows: pl.DataFrame
    denied: list[Call]


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
