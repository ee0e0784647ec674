"""The explorer: a connection to one service, and the entry of every load."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Protocol

from beaconframes.addresses import is_local_url
from beaconframes.cache.read_through import open_rows
from beaconframes.cache.store_folder import find_stored_chain
from beaconframes.cache.validator_epochs import ValidatorEpochsCache
from beaconframes.calendar import Chain, get_chain
from beaconframes.client.defaults import (
    PUBLIC_URLS,
    create_local_store,
    create_rate_limiter,
    create_source,
    public_url,
    read_stored_head,
)
from beaconframes.client.estimate import limit_requests
from beaconframes.client.quota import count_requests_left, read_quota
from beaconframes.config import current as current_settings
from beaconframes.config import (
    document_arguments,
    is_chain_given,
    list_arguments,
    show_arguments,
)
from beaconframes.endpoint import ChainHead, Envelope, Head
from beaconframes.endpoint.chain_metadata import parse_chain_header
from beaconframes.errors import (
    BeaconframesError,
    ConfigError,
    DatasetError,
    MissingRows,
    ServiceError,
    UnreconciledRows,
    UsageError,
    build_interrupt,
    find_caller_level,
)
from beaconframes.fetch.completeness import allow_unfinalized
from beaconframes.fetch.head import (
    HEAD_NOT_SERVED,
    LATEST_STATE,
    HeadV1,
    HeadV2,
)
from beaconframes.fetch.missing_report import LAST_LOAD, list_gaps, report_missing
from beaconframes.fetch.pipeline import MemoryRows, Pipeline
from beaconframes.load_context import LOAD, CallTimeouts, change_load
from beaconframes.pandas_frames import to_pandas
from beaconframes.progress import show_progress
from beaconframes.setting_table import SETTINGS_OF_LOADS
from beaconframes.summary import render_html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Self, Unpack

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.client.quota import Quota
    from beaconframes.endpoint import Endpoint, Request
    from beaconframes.fetch.pipeline import LoadResult
    from beaconframes.fetch.source import Source
    from beaconframes.secret import Secret
    from beaconframes.setting_table import SettingArguments, Settings


class ChainClock(Protocol):
    """The clock of a live chain."""

    def head(self) -> Head:
        """Return the present head."""

    def now(self) -> datetime:
        """Return the current time."""

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds* of this clock."""


default_explorers: list[Explorer] = []
"""The explorers that loaders use by default: the last one. `Explorer.close` removes it."""


@document_arguments
class Explorer:
    """A connection to one service: thread-safe, kept open, usable in a ``with`` block.

    It cannot be pickled: create one in each process. They share the rate limit of their key.

    Parameters
    ----------
    {settings}
    head
        The chain head, if it is fixed: for a dataset that is served locally. A function, if the
        dataset may grow.
    """

    shown_names: ClassVar[tuple[str, ...]] = (
        *("about", "chain", "close", "offline", "rate", "read_quota"),
        *("requests", "settings", "store_path", "url"),
    )
    """The names that Tab offers in a notebook; the others are for the package."""
    _sends_requests = True
    """False for an explorer that needs neither a key nor stored rows."""

    @show_arguments
    def __init__(
        self,
        url: str | None = None,
        *,
        head: Head | Callable[[], Head] | None = None,
        **given: Unpack[SettingArguments],
    ) -> None:
        """Check the settings; no request is sent."""
        list_arguments(given)
        settings = current_settings(url=url, **given)
        # A key is sent only to the address that it was given with.
        key = settings.api_key if url is None or given.get("api_key") is not None else None
        self._given = {name: given.get(name) for name in SETTINGS_OF_LOADS}
        """The settings of loads as given here; the others may change between loads."""
        self.clock: ChainClock | None = None
        """The clock of a live local explorer, which may be faster; None is the system's."""
        self.about: Mapping[str, Any] = {}
        """Facts that the service does not state itself, such as whether its chain is simulated."""
        self._default_chain = get_chain(settings.chain)
        self.offline = settings.offline
        can_send = self._sends_requests and not self.offline
        self.url = settings.url or public_url(
            self._default_chain, has_key=key is not None or not can_send
        )
        self.has_key = key is not None or self.url not in PUBLIC_URLS.values()
        """Whether it has a key, or a service that may need none."""
        self._open_source(settings, key)
        self.validator_epochs = ValidatorEpochsCache(self)
        self._store_setting, self._store_limit = settings.store, settings.store_limit
        if is_chain_given(given.get("chain")):
            self.chain = self._default_chain
        elif not can_send:
            self.chain = find_stored_chain(settings.store, self.url) or self._default_chain
        elif not is_local_url(self.url):
            self.chain = self._default_chain
        # Otherwise the first use of `chain` requests it.
        if self.offline and head is None:
            head = read_stored_head(self.local_store, self.chain, needed=self._sends_requests)
        self._read_head = head if callable(head) else None
        head = head() if callable(head) else head
        self._head = HeadV1(self.fetch, lambda: self.source.stated_head)
        self._head.fixed = head
        self._chain_error: BeaconframesError | None = None
        """Why the service did not state its chain."""

    def _open_source(self, settings: Settings, key: Secret | None) -> None:
        """Set the source of rows and its rate limiter; no request is sent."""
        public = self.url in PUBLIC_URLS.values()
        self.rate_limiter = create_rate_limiter(settings, self.url, key, public=public)
        self.source: Source = create_source(self.url, key, self.rate_limiter, public=public)

    def __dir__(self) -> list[str]:
        """Return the names that users need, and those with an underscore."""
        return [*self.shown_names, *(name for name in super().__dir__() if name.startswith("_"))]

    def __repr__(self) -> str:
        """Return the address, and the chain if it is known; never the key."""
        chain = f", chain={self.chain.name!r}" if "chain" in vars(self) else ""
        return f"Explorer({self.url!r}{chain})"

    def _repr_html_(self) -> str:
        """Return address, chain, store and requests, for a notebook; sends no request."""
        return render_html(f"Explorer {self.url}", self._describe())

    def _describe(self) -> list[tuple[str, str]]:
        """Return the facts that need neither a request nor the store, each with its name."""
        is_known = "chain" in vars(self)
        rate = self.rate
        lines = [
            ("chain", self.chain.name if is_known else "unknown until the first request"),
            ("frames", self.settings.frame),
            ("store", self._describe_store()),
            ("rate limit", "unknown" if rate is None else f"{rate:g} requests per second"),
            ("requests sent", f"{self.requests:,}"),
        ]
        if self.offline:
            lines.append(("offline", "reads stored rows only"))
        if not self.has_key:
            lines.append(("API key", "missing"))
        return lines

    def _describe_store(self) -> str:
        """Return the folder of the store, unless a request would be needed to know it."""
        if self._store_setting and "chain" not in vars(self):
            return "on"
        return "off" if self.store_path is None else str(self.store_path)

    @cached_property
    def chain(self) -> Chain:
        """Return the chain: a given one, or the one that a local explorer states, or mainnet.

        A local explorer states its chain in a header of each response, so the first use sends a
        request: for the chain head, which most loads need anyway.
        """
        return self._request_chain()

    @cached_property
    def local_store(self) -> LocalStore | None:
        """Return the store; None if rows are not stored."""
        setting = self._store_setting
        chain = self.chain if setting or self.offline else self._default_chain
        return create_local_store(
            setting, self.url, chain, needed=self.offline, limit=self._store_limit
        )

    @property
    def store_path(self) -> Path | None:
        """Return the folder of the store; None if rows are not stored."""
        return None if self.local_store is None else self.local_store.path

    @cached_property
    def _head_v2(self) -> HeadV2:
        return HeadV2(self.fetch, self.chain, lambda: self.source.stated_head)

    def _request_chain(self) -> Chain:
        """Return the chain that the service states, or the default chain if it states none."""
        self._chain_error = None
        try:
            if self._head.fixed is None:
                self._head.head()
            else:
                self.fetch(LATEST_STATE)
        except HEAD_NOT_SERVED as error:
            # A load raises its own errors.
            self._chain_error = error
        except ServiceError as error:
            raise error.with_traceback(None) from None
        header = self.source.stated_chain
        return parse_chain_header(header) if header else self._default_chain

    def __reduce__(self) -> NoReturn:
        """Raise a UsageError: connections and locks cannot be pickled, and a key must not be."""
        raise UsageError(
            "an Explorer cannot be pickled or copied", hint="Create an Explorer in each process"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; loaders use the previous explorer again.

        A later load with ``explorer=`` opens the connections again.
        """
        # Another thread may close it at the same time.
        with suppress(ValueError):
            while True:
                default_explorers.remove(self)
        for session in self.source.sessions:
            session.close()

    @property
    def requests(self) -> int:
        """Return the number of requests sent so far, including retries."""
        return sum(session.request_count for session in self.source.sessions)

    @property
    def settings(self) -> Settings:
        """Return the settings in force for its loads."""
        return current_settings(**self._given)

    def read_quota(self) -> Quota:
        """Return the permitted and the remaining requests, from earlier responses."""
        return read_quota(self.rate_limiter, has_key=self.has_key)

    @property
    def rate(self) -> float | None:
        """Return the permitted requests per second; None until a limit is known."""
        return self.rate_limiter.rate

    @property
    def chain_head(self) -> ChainHead:
        """Return the chain head, as reported by V1."""
        return self._build_chain_head(Envelope.V1)

    @property
    def chain_head_v2(self) -> ChainHead:
        """Return the chain head, as reported by V2."""
        return self._build_chain_head(Envelope.V2)

    def _build_chain_head(self, envelope: Envelope) -> ChainHead:
        """Return the chain head, as reported by the API version with this envelope."""
        head = self._head_v2 if envelope is Envelope.V2 else self._head
        limit, fixed = self.source.identifier_limit_of(envelope), self._head.fixed
        is_moving = fixed is None
        return ChainHead(
            self.chain,
            head.head if fixed is None else lambda: fixed,
            self._read_clock,
            fixed=fixed,
            present=self.now,
            batch_limit=limit.current,
            refuses_ranges=limit.refuses_ranges,
            reread=head.reread if is_moving else None,
            recent=head.recent if is_moving else None,
            last_reported=(lambda: head.last) if is_moving else None,
            drops_old_units=lambda: self.source.drops_old_units,
        )

    def chain_head_of(self, endpoint: Endpoint) -> ChainHead:
        """Return the chain head, as reported by the API version of *endpoint*."""
        return self._build_chain_head(endpoint.envelope)

    def expire_head(self) -> None:
        """Discard the cached chain head, so that the next use requests it."""
        self._head.expire()

    def request_head(self, chain_head: ChainHead) -> None:
        """Request *chain_head*, unless it is fresh."""
        chain_head.latest("epoch", finalized=True)

    def agreed_finality(self, endpoint: Endpoint, *, refresh: bool = False) -> int:
        """Return the last epoch that is final in two responses; with *refresh*, request another."""
        if (fixed := self._head.fixed) is not None:
            return fixed.finalized_epoch
        head = self._head_v2 if endpoint.envelope is Envelope.V2 else self._head
        return head.agreed(refresh=refresh)

    def now(self) -> datetime:
        """Return the current time; of a dataset, also of a served one, the time of its last slot.

        Such a chain may have ended long ago. A local explorer states its chain.
        """
        is_served = self.source.stated_chain or not self.chain_head.is_live
        if self._head.fixed is None and self.clock is None and is_served:
            with suppress(*HEAD_NOT_SERVED):
                return self.chain.time_of("slot", self._head.head().slot)
        return self._read_clock()

    def _read_clock(self) -> datetime:
        """Return the current time without a request; for a fixed head, the time of its slot."""
        fixed = self._head.fixed
        if fixed is not None:
            return self.chain.time_of("slot", fixed.slot)
        return datetime.now(UTC) if self.clock is None else self.clock.now()

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
        """Load the rows that *values* select, as a frame of the kind *frame* or of the settings.

        Raises
        ------
        RequestLimitExceeded
            The load needs more than *max_requests* requests.
        BeaconframesError
            The service failed, or its response is invalid; see `beaconframes.errors`.
        """
        arguments = {"frame": frame, "strict": strict, "max_requests": max_requests}
        settings = current_settings(
            **{**self._given, **{n: value for n, value in arguments.items() if value is not None}}
        )
        if lazy and frame == "pandas":
            raise UsageError(
                'lazy=True returns a polars LazyFrame, so frame="pandas" is not possible',
                hint="Leave one of them out",
            )
        try:
            with self._limit_load(endpoint, values, settings):
                result = self._load(endpoint, values, is_lazy=lazy)
        except KeyboardInterrupt as interrupt:
            kept = "no rows are kept, because the store is off"
            if self._describe_store() != "off":
                kept = "received final rows are stored; the same call requests the others"
            raise build_interrupt(str(interrupt) or f"load interrupted; {kept}") from None
        if lazy:
            rows: Any = result.to_lazy(endpoint, values)
        else:
            rows = result.to_frame(endpoint, values)
            rows = to_pandas(rows) if settings.frame == "pandas" else rows
        # For the captions of charts. pandas has this attribute, and polars accepts it.
        rows.attrs = {"simulated": True} if self.about.get("simulated") else {}
        self._report_gaps(endpoint, result, rows, is_strict=settings.strict)
        return rows

    @contextmanager
    def _limit_load(
        self, endpoint: Endpoint, values: Mapping[str, Any], settings: Settings
    ) -> Iterator[None]:
        """Limit the requests and the time of one load, pin the chain head, and show progress."""
        context = LOAD.get()
        if self._read_head is not None and context.heads is None:
            # The dataset may have grown since the last load.
            self._head.fixed = self._read_head()
        timeouts = None
        if isinstance(settings.timeout, tuple):
            timeouts = CallTimeouts.start(settings.timeout, self.rate_limiter.clock.now())
        most = settings.max_requests
        limit = nullcontext() if most is None else limit_requests(self, endpoint, values, most)
        progress = show_progress(
            endpoint.name,
            show=settings.progress,
            requests_left=lambda: count_requests_left(self.rate_limiter),
        )
        heads = {} if context.heads is None else context.heads
        token = LOAD.set(replace(context, heads=heads, timeouts=timeouts))
        try:
            with limit, progress:
                LAST_LOAD.missing = None
                yield
        finally:
            LOAD.reset(token)

    @contextmanager
    def pin_head(self) -> Iterator[None]:
        """Use one chain head for all loads of the block, as within one load."""
        if self._read_head is not None:
            self._head.fixed = self._read_head()
        with change_load(heads={}):
            yield

    def _report_gaps(
        self, endpoint: Endpoint, result: LoadResult, rows: Any, *, is_strict: bool
    ) -> None:
        """Warn of the gaps in the *rows* of a load, and of doubts; if *is_strict*, raise one."""
        for warning in result.warnings:
            is_error = result.gaps.missing.is_empty()
            if isinstance(warning, MissingRows):
                LAST_LOAD.missing, is_error = warning.missing, True
            if is_strict and is_error and isinstance(warning, MissingRows | UnreconciledRows):
                warning.rows = rows
                raise warning
            warnings.warn(warning, stacklevel=find_caller_level())
        if not result.gaps.missing.is_empty():
            missing = allow_unfinalized(result.gaps.missing, self.chain_head_of(endpoint))
            gaps = result.gaps._replace(missing=missing)
            warning = report_missing(
                endpoint, gaps, result.required, rows, self.chain, strict=is_strict
            )
            warnings.warn(warning, stacklevel=find_caller_level())
        elif not result.gaps.inactive.is_empty() and not result.warnings:
            LAST_LOAD.missing = list_gaps(endpoint, result.gaps, result.required)[0]

    def _load(self, endpoint: Endpoint, values: Mapping[str, Any], *, is_lazy: bool) -> LoadResult:
        """Load the rows: read stored ones, and fetch the rest."""
        chain_head = self.chain_head_of(endpoint)
        store = self.local_store
        stored = None
        if store is not None:
            stored = open_rows(self, store, endpoint, values, is_lazy=is_lazy)
        try:
            if store is not None and stored is not None:
                pipeline = Pipeline(
                    self.source, endpoint, stored, chain_head, self.validator_epochs
                )
                try:
                    return pipeline.load_stored(is_lazy=is_lazy)
                except DatasetError as error:
                    if self.offline:
                        raise
                    store.warn_unusable(error)
            if self.offline:
                raise UsageError(
                    f"load_{endpoint.name} needs requests, and this explorer is offline",
                    hint="Connect without offline=True",
                )
            rows = MemoryRows(endpoint, values, chain_head)
            pipeline = Pipeline(self.source, endpoint, rows, chain_head, self.validator_epochs)
            return pipeline.load_rows()
        except ConfigError as error:
            raise self._explain_chain_error(error) from self._chain_error

    def _explain_chain_error(self, error: ConfigError) -> ConfigError:
        """Return *error* with the reason why the service did not state its chain, if there is one.

        Then the chain was assumed, and the next load requests it again.
        """
        if self._chain_error is not None:
            error.message += f". It was assumed, because of this error: {self._chain_error}"
            error.hint = "Try again: the next load requests the chain again"
            for name in ("chain", "local_store", "_head_v2"):
                vars(self).pop(name, None)
        return error

    def fetch(self, request: Request) -> bytes:
        """Return the data of one response: JSON without its envelope, or an image."""
        if self.offline:
            raise UsageError("offline=True sends no requests", hint="Connect without offline=True")
        return self.source.fetch(request)


class RequestlessExplorer(Explorer):
    """An explorer for plans, quotas and stores: it sends no request, so it needs no key."""

    _sends_requests = False
