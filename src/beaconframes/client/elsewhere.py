"""An explorer in another process: it asks the same service, at one pace with the one it is of.

What travels is where to ask, not with which key: that stays where it was given, and is asked for
again from the environment there.
"""

from __future__ import annotations

import os
import platform
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from beaconframes.client.defaults import PUBLIC
from beaconframes.config import current as current_settings
from beaconframes.config import is_loopback
from beaconframes.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.client.explorer import Explorer
    from beaconframes.config import Settings
    from beaconframes.endpoint import Head

MACHINE = platform.node()


@dataclass(frozen=True)
class Carried:
    """What is told of an explorer, so that there is one like it elsewhere."""

    name: str
    """Which explorer it is of: a process makes only one of it."""
    url: str
    chain: Chain
    settings: Settings
    """Those that it was made with; a key does not travel with them."""
    head: Head | None
    keyed: bool
    paced: bool
    """Whether there is a rate to be kept to."""
    machine: str = MACHINE


_known: WeakValueDictionary[tuple[int, str], Explorer] = WeakValueDictionary()
_made: dict[tuple[int, str], Explorer] = {}
_lock = threading.Lock()


def carried(explorer: Explorer, settings: Settings, *, keyed: bool, head: Head | None) -> Carried:
    """Return what is told of *explorer* elsewhere, and keep its pace together from now on.

    Raises
    ------
    UsageError
        It was told not to meet other processes, and so can keep no pace with them.
    """
    host = urlsplit(explorer.url).hostname or ""
    paced = keyed or not is_loopback(host) or explorer.rate_limiter.rate is not None
    if paced:
        if settings.state is False:
            raise UsageError(
                "with state=False other processes cannot keep one pace with this one",
                hint="Leave state away, or use threads: ThreadPoolExecutor",
            )
        explorer.rate_limiter.share()
    with _lock:
        name = next((n for (_, n), e in _known.items() if e is explorer), uuid.uuid4().hex)
        _known[os.getpid(), name] = explorer
    return Carried(name, explorer.url, explorer.chain, settings, head, keyed, paced)


def explorer_of(carried: Carried) -> Explorer:
    """Return the explorer that was carried here: the one itself, or one that keeps its pace.

    Raises
    ------
    ConfigError
        It has a key, and the environment here has none for that address.
    UsageError
        This is another machine: its requests would not be counted with the others.
    """
    here = (os.getpid(), carried.name)
    with _lock:
        explorer = _known.get(here) or _made.get(here)
        if explorer is None:
            explorer = _made[here] = made(carried)
    return explorer


def made(carried: Carried) -> Explorer:
    """Return a new explorer that keeps the pace of the one that was carried here."""
    from beaconframes.client.explorer import Explorer

    if carried.paced and carried.machine != MACHINE:
        raise UsageError(
            f"{carried.url} has limits, and {MACHINE} cannot keep to them together with "
            f"{carried.machine}",
            hint="Use workers of one machine, or load into a store and export that",
        )
    settings = carried.settings
    explorer = Explorer(
        carried.url,
        api_key=key_of(carried),
        chain=carried.chain,
        rate=settings.rate,
        store=settings.store,
        offline=settings.offline,
        max_requests=settings.max_requests,
        progress=False,
        state=settings.state,
        head=carried.head,
    )
    if carried.paced:
        explorer.rate_limiter.share()
    return explorer


def key_of(carried: Carried) -> str | None:
    """Return the key that the environment has for the address, if one was used."""
    if not carried.keyed:
        return None
    settings = current_settings()
    if settings.api_key is None or carried.url != (settings.url or PUBLIC.get(carried.chain.name)):
        raise ConfigError(
            "the key is not carried into another process",
            hint=f"Set BEACONFRAMES_API_KEY for the workers, and BEACONFRAMES_URL={carried.url}",
        )
    return settings.api_key.reveal()
