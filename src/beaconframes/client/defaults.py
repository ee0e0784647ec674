"""The parts of an explorer, and their defaults: addresses, rate limit, source, store."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import platformdirs

from beaconframes.addresses import is_local_url, is_loopback
from beaconframes.cache.local_store import LocalStore
from beaconframes.cache.store_folder import store_folder
from beaconframes.endpoint import Head
from beaconframes.errors import ConfigError
from beaconframes.fetch.source import ApiSource
from beaconframes.http.rate_limiter import RateLimiter
from beaconframes.http.shared_rate_limit import SharedRateLimit

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.secret import Secret
    from beaconframes.setting_table import Settings

KEY_VARIABLE = "BEACONFRAMES_API_KEY"
PUBLIC_URLS = {"mainnet": "https://beaconcha.in", "hoodi": "https://hoodi.beaconcha.in"}
"""The V1 address of the public service, by chain."""

PUBLIC_URL_V2 = PUBLIC_URLS["mainnet"]
"""The V2 address of the public service; V2 requests state the chain."""


def public_url(chain: Chain, *, has_key: bool) -> str:
    """Return the V1 address of the public service for *chain*."""
    if chain.name not in PUBLIC_URLS:
        raise ConfigError(
            f"the public service does not support the chain {chain.name!r}",
            hint="Give the address of its explorer: bf.connect(url, chain=...)",
        )
    if not has_key:
        # The value of a misspelled variable may be a key, so only its name is stated.
        similar = get_close_matches(
            KEY_VARIABLE, os.environ.keys() - {KEY_VARIABLE}, n=1, cutoff=0.8
        )
        found = f" (the variable {similar[0]} is not read)" if similar else ""
        raise ConfigError(
            f"the public service needs an API key and none is set{found}",
            hint="Set BEACONFRAMES_API_KEY or call bf.connect(api_key=...); "
            "without a key, bf.local() serves a simulated chain on this machine",
        )
    return PUBLIC_URLS[chain.name]


def create_rate_limiter(
    settings: Settings, url: str, key: Secret | None, *, public: bool
) -> RateLimiter:
    """Return the rate limiter of *key* at *url*, shared with other processes on this machine.

    A service on this machine that needs no key usually has no limits, so nothing is shared.
    """
    state = settings.state
    address = urlsplit(PUBLIC_URL_V2 if public else url)
    host = address.hostname or ""
    folder: Path | None = None
    if state is not False:
        own = platformdirs.user_state_path("beaconframes", appauthor=False)
        folder = state if isinstance(state, Path) else own
    return RateLimiter(
        settings.rate,
        # The key has one quota for V1 and V2 and for all chains of the public service.
        shared_rate_limit=SharedRateLimit(
            folder, f"{host}:{address.port}" if address.port else host, key
        ),
        is_shared=state is True
        or isinstance(state, Path)
        or key is not None
        or not is_loopback(host),
    )


def create_source(
    url: str, key: Secret | None, rate_limiter: RateLimiter, *, public: bool
) -> ApiSource:
    """Return the API at *url* as a source of rows; V2 of the *public* service has one address."""
    # A dataset on disk does not import it.
    from beaconframes.http.session import Session

    session = session_v2 = Session(url, key, rate_limiter=rate_limiter)
    if public and url != PUBLIC_URL_V2:
        # The key has one quota for V1 and V2.
        session_v2 = Session(
            PUBLIC_URL_V2, key, rate_limiter=rate_limiter, retry_quota=session.retry_quota
        )
    return ApiSource(session, session_v2, public=public)


def create_local_store(
    store: Path | bool | None,
    url: str,
    chain: Chain,
    *,
    needed: bool = False,
    simulated: bool = False,
    limit: int | None = None,
) -> LocalStore | None:
    """Return the store for the rows of the service at *url*; None if they are not stored.

    By default, rows of a service on this machine are not stored, because its requests are free.
    """
    if store is None:
        store = needed or not is_local_url(url)
    if store is False:
        if needed:
            raise ConfigError(
                "offline=True needs a store, and store=False turns it off",
                hint="Give store=True, or the folder of the store",
            )
        return None
    root = store if isinstance(store, Path) else None
    folder = store_folder(root, url, chain)
    return LocalStore(folder, url=url, chain=chain, simulated=simulated, limit=limit)


def read_stored_head(
    local_store: LocalStore | None, chain: Chain, *, needed: bool = True
) -> Head | None:
    """Return the head of the chain as recorded in the store; None if it is not *needed* there."""
    finalized = -1 if local_store is None else local_store.finalized
    if finalized < 0:
        if not needed:
            return None
        path = "" if local_store is None else f" {local_store.path}"
        raise ConfigError(
            f"offline=True needs stored rows, and the store{path} is empty",
            hint="Load rows without offline=True first, or give another folder: store=...",
        )
    return Head(finalized, finalized, chain.last_slot_of(finalized))
