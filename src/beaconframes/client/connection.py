"""The explorer that loaders use by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from beaconframes.client.explorer import Explorer, RequestlessExplorer
from beaconframes.config import configure

if TYPE_CHECKING:
    import os

    from beaconframes.calendar import Chain
    from beaconframes.client.quota import Quota

_explorer: Explorer | None = None


def connect(
    url: str | None = None,
    *,
    api_key: str | None = None,
    chain: str | Chain | None = None,
    rate: float | None = None,
    frame: Literal["polars", "pandas"] | None = None,
    strict: bool | None = None,
    store: bool | str | os.PathLike[str] | None = None,
    store_limit: int | str | None = None,
    offline: bool | None = None,
    max_requests: int | None = None,
    timeout: float | tuple[float | None, float | None] | None = None,
    progress: bool | None = None,
    state: bool | str | os.PathLike[str] | None = None,
) -> Explorer:
    """Create an explorer, make it the default of all loaders, and return it.

    Takes the arguments of `Explorer`. Defaults come from the environment; but a key from the
    environment is not sent to an address given here.
    """
    explorer = Explorer(
        url,
        api_key=api_key,
        chain=chain,
        rate=rate,
        store=store,
        store_limit=store_limit,
        offline=offline,
        state=state,
    )
    options = {
        "frame": frame,
        "strict": strict,
        "max_requests": max_requests,
        "timeout": timeout,
        "progress": progress,
    }
    configure(**{name: value for name, value in options.items() if value is not None})
    set_explorer(explorer)
    return explorer


def set_explorer(explorer: Explorer | None) -> Explorer | None:
    """Make *explorer* the default of all loaders; return the previous one."""
    global _explorer
    previous, _explorer = _explorer, explorer
    return previous


def get_explorer() -> Explorer:
    """Return the default explorer: the connected one, or a new one from the environment."""
    explorer = Explorer() if _explorer is None else _explorer
    set_explorer(explorer)
    return explorer


def get_explorer_without_key() -> Explorer:
    """Return the default explorer, or one for calls that send no request and need no key."""
    return RequestlessExplorer() if _explorer is None else _explorer


def quota(explorer: Explorer | None = None) -> Quota:
    """Return the quota of *explorer*, or of the connected one: permitted and remaining requests.

    Sends no request: the figures are from earlier responses to any process on this machine.
    """
    used = get_explorer_without_key() if explorer is None else explorer
    return used.read_quota()
