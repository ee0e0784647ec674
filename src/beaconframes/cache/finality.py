"""Finality: the last epoch whose rows may be stored.

A single wrong response must not make rows final, and replicas of a service do not always agree. So
an epoch younger than a day counts as final only if two responses say so: one more request, for
loads that reach that far. Older epochs were finalized long ago, unless finality has stalled; then
the smaller epoch of the one response counts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from beaconframes.endpoint import Envelope

if TYPE_CHECKING:
    from beaconframes.cache.local_store import LocalStore
    from beaconframes.endpoint import ChainHead, Endpoint
    from beaconframes.endpoint.cache_policy import CachePolicy
    from beaconframes.fetch.source import Connection

YOUNG = timedelta(days=1)


class StoredLoad(Protocol):
    """A load with a store, as far as finality depends on it."""

    connection: Connection
    store: LocalStore
    policy: CachePolicy

    @property
    def endpoint(self) -> Endpoint:
        """Return the endpoint of the load."""

    @property
    def chain_head(self) -> ChainHead:
        """Return the end of the chain."""


def is_known_final(load: StoredLoad, last: int) -> bool:
    """Return whether the unit *last* is known to be final without a request."""
    known = load.store.finalized
    return known >= 0 and load.policy.final_until(load.chain_head, known) >= last


def stated_final_epoch(load: StoredLoad, last: int) -> int:
    """Return the last epoch that is stated to be final, with a request if *last* may be later."""
    known = load.store.finalized
    if is_known_final(load, last):
        return known
    stated = load.chain_head.latest("epoch", finalized=True)
    if load.endpoint.envelope is not Envelope.V2:
        # At genesis, epoch 0 counts as final while it runs.
        stated = min(stated, load.chain_head.latest("epoch") - 1)
    return max(known, stated)


def needs_second_response(load: StoredLoad, last: int, stated: int | None = None) -> bool:
    """Return whether some units up to *last* are final by one response alone.

    That response stated the epoch *stated*; None if it is still to be requested.
    """
    chain_head, final_until = load.chain_head, load.policy.final_until
    confirmed = final_until(chain_head, confirmed_final_epoch(load))
    return last > confirmed and (stated is None or final_until(chain_head, stated) > confirmed)


def confirmed_final_epoch(load: StoredLoad) -> int:
    """Return the last epoch that needs no second response."""
    chain_head = load.chain_head
    before = chain_head.now() - YOUNG
    old = chain_head.chain.at("epoch", before) if before >= chain_head.chain.genesis else -1
    return max(load.store.finalized, load.connection.agreed_finality(load.endpoint), old)


def last_final_epoch(load: StoredLoad, last: int) -> int:
    """Return the last epoch whose rows may be stored, for a load up to the unit *last*."""
    if is_known_final(load, last):
        return load.store.finalized
    stated = stated_final_epoch(load, last)
    if needs_second_response(load, last, stated):
        load.connection.agreed_finality(load.endpoint, ask=True)
    return min(stated, confirmed_final_epoch(load))
