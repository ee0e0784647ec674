"""Finality: the last epoch whose rows may be stored.

Replicas of a service do not always agree, and one wrong response must not make rows final. So an
epoch younger than a day counts as final only if two responses report it. A load up to such an epoch
sends one more request. An older epoch counts as final if one response reports it.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from beaconframes.endpoint import Envelope
from beaconframes.errors import NotFound, NotServed

if TYPE_CHECKING:
    from beaconframes.cache.local_store import LocalStore
    from beaconframes.endpoint import ChainHead, Endpoint
    from beaconframes.endpoint.cache_policy import CachePolicy
    from beaconframes.fetch.source import Connection

log = logging.getLogger("beaconframes.store")

SECOND_RESPONSE_AGE = timedelta(days=1)


class StoredLoad(Protocol):
    """The parts of a load with a store that finality depends on."""

    connection: Connection
    store: LocalStore
    policy: CachePolicy

    @property
    def endpoint(self) -> Endpoint:
        """Return the endpoint of the load."""

    @property
    def chain_head(self) -> ChainHead:
        """Return the chain head."""


def is_known_final(load: StoredLoad, last: int) -> bool:
    """Return whether the unit *last* is known to be final without a request."""
    stored = load.store.finalized
    return stored >= 0 and load.policy.final_until(load.chain_head, stored) >= last


def stated_final_epoch(load: StoredLoad, last: int) -> int:
    """Return the last epoch that is reported as final; send a request if *last* may be later."""
    stored = load.store.finalized
    if is_known_final(load, last):
        return stored
    stated = load.chain_head.latest("epoch", finalized=True)
    if load.endpoint.envelope is not Envelope.V2:
        # At genesis, epoch 0 counts as final while it runs.
        stated = min(stated, load.chain_head.latest("epoch") - 1)
    return max(stored, stated)


def needs_second_response(load: StoredLoad, last: int, stated: int | None = None) -> bool:
    """Return whether only one response reports some units up to *last* as final.

    *stated* is the final epoch in that response, None if it is not requested yet.
    """
    chain_head, final_until = load.chain_head, load.policy.final_until
    confirmed = final_until(chain_head, confirmed_final_epoch(load))
    return last > confirmed and (stated is None or final_until(chain_head, stated) > confirmed)


def confirmed_final_epoch(load: StoredLoad) -> int:
    """Return the last epoch that is final without a second response."""
    chain_head = load.chain_head
    day_ago = chain_head.now() - SECOND_RESPONSE_AGE
    old = chain_head.chain.at("epoch", day_ago) if day_ago >= chain_head.chain.genesis else -1
    return max(load.store.finalized, load.connection.agreed_finality(load.endpoint), old)


def last_final_epoch(load: StoredLoad, last: int) -> int:
    """Return the last epoch whose rows may be stored, for a load up to the unit *last*.

    If the service does not have the endpoint that states it, no more is known than what is stored.
    """
    if is_known_final(load, last):
        return load.store.finalized
    try:
        stated = stated_final_epoch(load, last)
        if needs_second_response(load, last, stated):
            load.connection.agreed_finality(load.endpoint, refresh=True)
    except (NotFound, NotServed) as error:
        log.warning("rows are not stored, because no final epoch is known: %s", error)
        return load.store.finalized
    return min(stated, confirmed_final_epoch(load))
