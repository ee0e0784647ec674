"""What may be stored: final rows, and the absence of rows that a second response confirms.

Replicas of a service do not always agree, and one wrong response must not make rows final. So an
epoch younger than a day counts as final only if two responses report it. A load up to such an epoch
sends one more request. An older epoch counts as final if one response reports it.

A service that fails may return an empty list instead of an error, or a list without some rows. So
the units without rows are only noted, and requested again by the next load. If they have no rows in
that response either, some time later, the rows do not exist.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from beaconframes.dataset import coverage
from beaconframes.endpoint import Envelope
from beaconframes.errors import NotFound, NotServed
from beaconframes.intervals import clip_intervals, merge_intervals, subtract_intervals

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.dataset import Covered
    from beaconframes.endpoint import ChainHead, Endpoint
    from beaconframes.endpoint.cache_policy import CachePolicy
    from beaconframes.fetch.source import Connection
    from beaconframes.sqlite_file import Database

log = logging.getLogger("beaconframes.store")

SECOND_RESPONSE_AGE = timedelta(days=1)
CONFIRMATION_SECONDS = 600
"""Seconds between two responses that together show that rows do not exist."""

CREATE_EMPTY = """
CREATE TABLE IF NOT EXISTS empty_responses (
    table_name TEXT NOT NULL,
    subject TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (table_name, subject, first)
) WITHOUT ROWID
"""


class StoredFinality(Protocol):
    """The part of a store that finality depends on."""

    @property
    def finalized(self) -> int:
        """Return the last epoch that is known to be final; -1 if none is."""


class StoredLoad(Protocol):
    """The parts of a load with a store that finality depends on."""

    connection: Connection
    policy: CachePolicy

    @property
    def store(self) -> StoredFinality:
        """Return the store."""

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


def confirm_empty(connection: Database, table: str, empty: Covered) -> Covered:
    """Note the units *empty* of a table; return those that an earlier response had no rows of."""
    connection.execute(CREATE_EMPTY)
    now = int(time.time())
    confirmed: Covered = {}
    for subject, intervals in empty.items():
        for first, last in intervals:
            noted = connection.execute(
                "SELECT first, last, noted_at FROM empty_responses"
                " WHERE table_name = ? AND subject = ? AND first <= ? AND last >= ?",
                (table, subject, last, first),
            )
            # A time in the future means that the clock was set back.
            old = [part[:2] for part in noted if not 0 <= now - part[2] < CONFIRMATION_SECONDS]
            seen_twice = clip_intervals(old, first, last)
            if seen_twice:
                confirmed[subject] = (*confirmed.get(subject, ()), *seen_twice)
            new = subtract_intervals([(first, last)], merge_intervals(part[:2] for part in noted))
            entries = [(*part, now) for part in new]
            for start, end, at in noted:
                rest = subtract_intervals([(start, end)], seen_twice)
                entries += [(*part, at) for part in rest]
            connection.execute_many(
                "DELETE FROM empty_responses WHERE table_name = ? AND subject = ? AND first = ?",
                [(table, subject, part[0]) for part in noted],
            )
            connection.execute_many(
                "INSERT INTO empty_responses VALUES (?, ?, ?, ?, ?)",
                [(table, subject, *entry) for entry in entries],
            )
    return confirmed


def read_empty(
    connection: Database, table: str, subjects: Collection[str], first: int, last: int
) -> Covered:
    """Return the noted units of *subjects* from *first* to *last*."""
    exists = "SELECT count(*) FROM sqlite_schema WHERE name = 'empty_responses'"
    if connection.execute(exists) == [(0,)]:
        return {}
    return coverage.read(connection, table, subjects, first, last, relation="empty_responses")
