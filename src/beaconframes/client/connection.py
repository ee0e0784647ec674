"""Which explorer loaders ask when they are not told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from beaconframes.client.explorer import Explorer
from beaconframes.client.quota import Quota, quota_of
from beaconframes.config import configure

if TYPE_CHECKING:
    import os

    from beaconframes.calendar import Chain

_current: Explorer | None = None


def connect(
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
) -> Explorer:
    """Make an explorer and let every loader ask it from now on.

    Takes what `Explorer` takes, and returns the explorer. What is left out comes from the
    environment; but a key from there is not sent to an address given here.
    """
    explorer = Explorer(
        url,
        api_key=api_key,
        chain=chain,
        rate=rate,
        store=store,
        offline=offline,
        state=state,
    )
    said = {"frame": frame, "strict": strict, "max_requests": max_requests, "progress": progress}
    configure(**{name: value for name, value in said.items() if value is not None})
    use(explorer)
    return explorer


def use(explorer: Explorer | None) -> Explorer | None:
    """Make *explorer* the one that loaders ask; return the one before."""
    global _current
    before, _current = _current, explorer
    return before


def current() -> Explorer:
    """Return the explorer that loaders ask: the connected one, or one made from the environment."""
    explorer = Explorer() if _current is None else _current
    use(explorer)
    return explorer


def quota(explorer: Explorer | None = None) -> Quota:
    """Return what the key of *explorer*, or of the connected one, may ask for, and what is left.

    Nothing is sent: the figures are those that came with earlier answers, to whatever process of
    this machine.
    """
    return quota_of((current() if explorer is None else explorer).rate_limiter)
