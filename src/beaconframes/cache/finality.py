"""What counts as final, so that its rows may be stored.

Replicas of a service do not always agree, and one wrong response must not make rows final. So an
epoch younger than a day counts as final only if two responses report it. A load up to such an epoch
sends one more request. An older epoch counts as final if one response reports it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from beaconframes.endpoint import Envelope
from beaconframes.errors import NotFound, NotServed

if TYPE_CHECKING:
    from beaconframes.cache.local_store import LocalStore
    from beaconframes.endpoint import ChainHead, Endpoint
    from beaconframes.endpoint.cache_policy import CachePolicy
    from beaconframes.fetch.source import Connection

log = logging.getLogger("beaconframes.store")

SECOND_RESPONSE_AGE = timedelta(days=1)


@dataclass
class StoredLoad:
    """A load whose final rows are stored."""

    connection: Connection
    store: LocalStore
    policy: CachePolicy

    @property
    def endpoint(self) -> Endpoint:
        """Return the endpoint of the load."""
        return self.policy.endpoint

    @property
    def chain_head(self) -> ChainHead:
        """Return the chain head."""
        return self.connection.chain_head_of(self.endpoint)

    def is_known_final(self, last: int) -> bool:
        """Return whether the unit *last* is known to be final without a request."""
        stored = self.store.finalized
        return stored >= 0 and self.policy.final_until(self.chain_head, stored) >= last

    def stated_final_epoch(self, last: int) -> int:
        """Return the last epoch reported as final; send a request if *last* may be later."""
        stored = self.store.finalized
        if self.is_known_final(last):
            return stored
        stated = self.chain_head.latest("epoch", finalized=True)
        if self.endpoint.envelope is not Envelope.V2:
            # At genesis, epoch 0 counts as final while it runs.
            stated = min(stated, self.chain_head.latest("epoch") - 1)
        return max(stored, stated)

    def needs_second_response(self, last: int, stated: int | None = None) -> bool:
        """Return whether only one response reports some units up to *last* as final.

        *stated* is the final epoch in that response, None if it is not requested yet.
        """
        chain_head, final_until = self.chain_head, self.policy.final_until
        confirmed = final_until(chain_head, self.confirmed_final_epoch())
        return last > confirmed and (stated is None or final_until(chain_head, stated) > confirmed)

    def confirmed_final_epoch(self) -> int:
        """Return the last epoch that is final without a second response."""
        chain_head = self.chain_head
        day_ago = chain_head.now() - SECOND_RESPONSE_AGE
        old = chain_head.chain.at("epoch", day_ago) if day_ago >= chain_head.chain.genesis else -1
        return max(self.store.finalized, self.connection.agreed_finality(self.endpoint), old)

    def last_final_epoch(self, last: int) -> int:
        """Return the last epoch whose rows may be stored, for a load up to the unit *last*.

        If the service does not have the endpoint that states it, no more is known than what is
        stored.
        """
        if self.is_known_final(last):
            return self.store.finalized
        try:
            stated = self.stated_final_epoch(last)
            if self.needs_second_response(last, stated):
                self.connection.agreed_finality(self.endpoint, refresh=True)
        except (NotFound, NotServed) as error:
            log.warning("rows are not stored, because no final epoch is known: %s", error)
            return self.store.finalized
        return min(stated, self.confirmed_final_epoch())
