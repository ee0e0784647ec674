"""Responses without rows: the absence of rows is stored once a later response confirms it.

A service that fails may return an empty list instead of an error, or a list without some rows. So
the units without rows are only noted, and requested again by the next load. If they have no rows in
that response either, some time later, the rows do not exist.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from beaconframes.endpoint.intervals import clip_intervals, merge_intervals, subtract_intervals

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.dataset import Covered
    from beaconframes.dataset.ledger import LedgerConnection

CONFIRMATION_SECONDS = 600
"""Seconds between two responses that together show that rows do not exist."""

CREATE = """
CREATE TABLE IF NOT EXISTS empty_responses (
    table_name TEXT NOT NULL,
    subject TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (table_name, subject, first)
) WITHOUT ROWID
"""


def confirm(connection: LedgerConnection, table: str, empty: Covered) -> Covered:
    """Note the units *empty* of a table; return those that an earlier response had no rows of."""
    connection.execute(CREATE)
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


def read(
    connection: LedgerConnection, table: str, subjects: Collection[str], first: int, last: int
) -> Covered:
    """Return the noted units of *subjects* from *first* to *last*."""
    exists = "SELECT count(*) FROM sqlite_schema WHERE name = 'empty_responses'"
    if connection.execute(exists) == [(0,)]:
        return {}
    rows = connection.execute(
        "SELECT subject, first, last FROM empty_responses"
        " WHERE table_name = :table AND first <= :last AND last >= :first"
        " AND subject IN (SELECT value FROM json_each(:subjects)) ORDER BY subject, first",
        {"table": table, "first": first, "last": last, "subjects": json.dumps(list(subjects))},
    )
    noted: dict[str, list[tuple[int, int]]] = {}
    for subject, start, end in rows:
        noted.setdefault(subject, []).append((max(start, first), min(end, last)))
    return {subject: tuple(parts) for subject, parts in noted.items()}
