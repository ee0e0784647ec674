"""Where things are: the public service, and the store of what it tells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import platformdirs

from beaconframes.cache.local_store import LocalStore, store_folder
from beaconframes.config import is_loopback
from beaconframes.endpoint import Head
from beaconframes.errors import ConfigError
from beaconframes.http.rate_limiter import RateLimiter
from beaconframes.http.shared_rate_limit import SharedRateLimit

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.config import Secret, Settings

PUBLIC = {"mainnet": "https://beaconcha.in", "hoodi": "https://hoodi.beaconcha.in"}
"""Where the public service answers generation 1, by chain."""

PUBLIC_V2 = PUBLIC["mainnet"]
"""Where it answers generation 2, whose requests name the chain themselves."""


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


def rate_limiter_of(
    settings: Settings, url: str, key: Secret | None, *, public: bool
) -> RateLimiter:
    """Return the pace of *key* at *url*, shared with the other processes of this machine.

    What needs no key, on this machine, mostly has no limits that anybody would have to share.
    """
    state = settings.state
    address = urlsplit(PUBLIC_V2 if public else url)
    host = address.hostname or ""
    folder: Path | None = None
    if state is not False:
        own = platformdirs.user_state_path("beaconframes", appauthor=False)
        folder = state if isinstance(state, Path) else own
    return RateLimiter(
        settings.rate,
        # One key, one allowance: whichever generation and chain of the public service is asked.
        shared_rate_limit=SharedRateLimit(
            folder, f"{host}:{address.port}" if address.port else host, key
        ),
        is_shared=state is True
        or isinstance(state, Path)
        or key is not None
        or not is_loopback(host),
    )


def local_store_of(
    store: Path | bool | None,
    url: str,
    chain: Chain,
    *,
    needed: bool = False,
    simulated: bool = False,
) -> LocalStore | None:
    """Return where to keep what *url* tells, None where it is not kept.

    What a service on this machine tells can be had again at no cost.
    """
    if store is None:
        store = needed or not is_loopback(urlsplit(url).hostname or "")
    if store is False:
        if needed:
            raise ConfigError("offline=True needs a store, and store=False is none")
        return None
    root = store if isinstance(store, Path) else None
    return LocalStore(store_folder(root, url, chain), url=url, chain=chain, simulated=simulated)


def stored_head(local_store: LocalStore | None, chain: Chain) -> Head:
    """Return the end of the chain as the store knows it."""
    finalized = -1 if local_store is None else local_store.finalized
    if finalized < 0:
        raise ConfigError(
            f"offline=True needs a store with something in it, and there is none in {local_store}",
            hint="Load something without offline=True first, or say where: store=...",
        )
    return Head(finalized, finalized, (finalized + 1) * chain.slots_per_epoch - 1)
