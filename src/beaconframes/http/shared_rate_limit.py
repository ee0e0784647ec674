"""The rate limit that all processes of this machine share for one key.

Each process records in one small SQLite file when it sends a request and when its response begins.
Times are seconds since the machine started: they are the same in all processes, and changes of the
system's date do not affect them. The file identifies a key by a salted hash.

The file has a rollback journal, so that no lock lasts longer than a transaction. A write-ahead log
needs a lock for as long as a connection is open. A forked process has the locks of its parent in
name only, and the log would be removed while it is in use.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

from beaconframes.errors import DatasetError
from beaconframes.http.retry import MAX_RETRY_AFTER
from beaconframes.sqlite_file import DamagedFile, Database, LockedFile, set_aside

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beaconframes.secret import Secret

T = TypeVar("T")

log = logging.getLogger("beaconframes.http")

FILE = "rate_limits.sqlite"
LOCK_TIMEOUT = 2.0
"""Seconds to wait for another process's lock, which normally lasts a fraction of a millisecond."""
REQUEST_LIFETIME = 60.0
"""Seconds after which a request counts as arrived, even if its response was not recorded."""
POLL_INTERVAL = 0.05
TABLES = (
    "CREATE TABLE IF NOT EXISTS salt (one INTEGER PRIMARY KEY CHECK (one = 1), salt BLOB)",
    """CREATE TABLE IF NOT EXISTS requests (
        id INTEGER PRIMARY KEY, account TEXT, process, sent, answered
    )""",
    """CREATE TABLE IF NOT EXISTS limits (
        account TEXT PRIMARY KEY,
        per_second INTEGER, per_minute INTEGER, per_hour INTEGER, per_month INTEGER,
        month TEXT NOT NULL DEFAULT '', remaining INTEGER, used INTEGER NOT NULL DEFAULT 0,
        reported_at INTEGER, paused_until REAL NOT NULL DEFAULT 0
    ) WITHOUT ROWID""",
)
INSERT_SALT = "INSERT INTO salt VALUES (1, ?) ON CONFLICT DO NOTHING"
SELECT_LIMITS = (
    "SELECT per_second, per_minute, per_hour, per_month, month, remaining, used, reported_at"
    " FROM limits WHERE account = ?"
)
SELECT_RATE = "SELECT per_second, paused_until FROM limits WHERE account = ?"
INSERT_REQUEST = "INSERT INTO requests (id, account, process, sent) VALUES (?, ?, ?, ?)"
COUNT_REQUESTS = "SELECT count(*) FROM requests WHERE account = ?"
SELECT_REQUESTS = (
    "SELECT id, process, sent, answered FROM requests WHERE account = ?"
    " ORDER BY answered IS NULL, answered"
)
SET_ANSWERED = "UPDATE requests SET answered = :now WHERE account = :account AND id = :number"
DELETE_EXPIRED = "DELETE FROM requests WHERE account = ? AND (answered <= ? OR sent > ?)"
PAUSE = (
    "INSERT INTO limits (account, paused_until) VALUES (:account, :until)"
    " ON CONFLICT (account) DO UPDATE SET paused_until ="
    " CASE WHEN paused_until > :until + :longest THEN :until ELSE max(paused_until, :until) END"
)
# A new month starts with no request used. Within a month the remaining requests only decrease, in
# whatever order the responses arrive, unless the plan has changed.
UPDATE_LIMITS = (
    "INSERT INTO limits (account, per_second, per_minute, per_hour, per_month, month, remaining,"
    " used, reported_at) VALUES (:account, :per_second, :per_minute, :per_hour, :per_month,"
    " :month, :remaining, :used, :reported_at) ON CONFLICT (account) DO UPDATE SET"
    " per_second = ifnull(:per_second, per_second), per_minute = ifnull(:per_minute, per_minute),"
    " per_hour = ifnull(:per_hour, per_hour),"
    " remaining = CASE WHEN month <> :month THEN :remaining"
    " WHEN :remaining IS NULL THEN remaining"
    " WHEN remaining IS NULL OR per_month IS NOT :per_month THEN :remaining"
    " ELSE min(remaining, :remaining) END,"
    " used = :used + CASE month WHEN :month THEN used ELSE 0 END,"
    " per_month = ifnull(:per_month, per_month), month = :month,"
    " reported_at = ifnull(:reported_at, reported_at)"
)


@dataclass(frozen=True)
class ReportedLimits:
    """The limits of one key that the service has reported, and the requests used this month.

    The limits are permitted requests per window, None if unknown. ``remaining`` are those of
    ``month``, such as ``"2026-11"``. ``reported_at`` is the Unix time of the service's latest
    report. The limits in one response have the same type: ``used`` is then 0 or 1.
    """

    per_second: int | None = None
    per_minute: int | None = None
    per_hour: int | None = None
    per_month: int | None = None
    month: str = ""
    remaining: int | None = None
    used: int = 0
    reported_at: int | None = None


class SharedRateLimit:
    """The rate limit of one key at one service, shared by the processes of this machine.

    Without a folder, or if the file cannot be used, the limit holds for this process alone. Not
    thread-safe.
    """

    def __init__(self, folder: Path | None, host: str, key: Secret | None) -> None:
        self.host = host
        self._folder, self._key = folder, key
        self.account = ""
        """The name of key and host in the file; it does not reveal the key."""
        self._database: Database | None = None
        self._inode = 0

    def reported_limits(self) -> ReportedLimits:
        """Return the limits that any process has learned."""
        rows = self._transaction(lambda it: it.execute(SELECT_LIMITS, (self.account,)))
        return ReportedLimits(*rows[0]) if rows else ReportedLimits()

    def acquire(self, rate: float | None, now: Callable[[], float]) -> tuple[float, int]:
        """Return 0 and the number of a new permit, or the seconds until the next try and 0.

        *rate* is the limit that the user set for this process. The limit that the service
        reported is read from the file.
        """
        # The clock is read inside the transaction, so that no recorded time lies ahead of it.
        return self._transaction(lambda database: self._acquire(database, rate, now()))

    def start_window(self, number: int, now: float) -> None:
        """Record that the response to request *number* began at *now*."""
        self._write(SET_ANSWERED, now=now, number=number)

    def pause(self, until: float) -> None:
        """Stop all requests until this time."""
        self._write(PAUSE, until=until, longest=MAX_RETRY_AFTER)

    def update(self, limits: ReportedLimits) -> None:
        """Record the *limits* that a response reports, and count the request."""
        self._write(UPDATE_LIMITS, **vars(limits))

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _acquire(self, database: Database, rate: float | None, now: float) -> tuple[float, int]:
        rows = database.execute(SELECT_RATE, (self.account,))
        reported, paused_until = rows[0] if rows else (None, 0.0)
        # A time further ahead was recorded before the machine restarted.
        if now < paused_until <= now + MAX_RETRY_AFTER:
            return paused_until - now, 0
        permitted = max(rate or 0.0, reported or 0.0) or math.inf
        delay = self._delay(database, permitted, now)
        if delay > 0:
            return delay, 0
        # Random, so that it is not the number of another request in a new file.
        number = secrets.randbits(62) + 1
        database.execute(INSERT_REQUEST, (number, self.account, os.getpid(), now))
        return 0.0, number

    def _delay(self, database: Database, rate: float, now: float) -> float:
        """Return the seconds until *rate* permits another request."""
        window = 1.0 if math.isinf(rate) else max(1.0, 1 / rate)
        database.execute(DELETE_EXPIRED, (self.account, now - window, now))
        if math.isinf(rate):
            return 0.0
        permits = max(1, math.floor(rate))
        ((count,),) = database.execute(COUNT_REQUESTS, (self.account,))
        if count < permits:
            return 0.0
        rows = database.execute(SELECT_REQUESTS, (self.account,))
        for number, process, sent, answered in rows:
            if answered is None and (sent < now - REQUEST_LIFETIME or not is_alive(process)):
                # The request may have arrived at any time until now.
                values = {"account": self.account, "now": now, "number": number}
                database.execute(SET_ANSWERED, values)
        # If more requests are recorded than permitted, a later response frees a permit.
        freed_by = rows[len(rows) - permits][3]
        return POLL_INTERVAL if freed_by is None else max(freed_by + window - now, 1e-4)

    def _write(self, statement: str, **values: object) -> None:
        # The account is known once the file is open: its salt is in it.
        self._transaction(
            lambda database: database.execute(statement, {"account": self.account, **values})
        )

    def _transaction(self, work: Callable[[Database], T]) -> T:
        """Return the result of *work*, run in an exclusive transaction."""
        try:
            try:
                return self._locked(work)
            except DatasetError as error:
                if self._folder is not None and isinstance(error, DamagedFile):
                    self.close()
                    move_damaged_file(self._folder / FILE)
                elif not self._is_replaced():
                    raise
                return self._locked(work)
        except (DatasetError, OSError) as error:
            if self._folder is None:
                raise
            log.warning(
                "cannot use %s (%s): the rate limit is not shared with other processes. "
                "Set BEACONFRAMES_STATE to another folder",
                self._folder / FILE,
                error,
            )
            self.close()
            self._folder = None
        return self._locked(work)

    def _locked(self, work: Callable[[Database], T]) -> T:
        if self._database is not None and self._is_replaced():
            self.close()
        database = self._database = self._database or self._open_with_retries()
        with database.transaction():
            return work(database)

    def _is_replaced(self) -> bool:
        """Return whether another process has moved the open file aside, or removed it."""
        if self._folder is None:
            return False
        try:
            return (self._folder / FILE).stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def _open_with_retries(self) -> Database:
        """Open the file, also while other processes open it."""
        from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

        # SQLite does not wait for other processes when it replaces the write-ahead log that files
        # of earlier versions have.
        attempts = Retrying(
            retry=retry_if_exception_type(LockedFile),
            stop=stop_after_delay(LOCK_TIMEOUT),
            wait=wait_random(0.001, 0.02),
            reraise=True,
        )
        return attempts(self._open)

    def _open(self) -> Database:
        """Open the file, readable for this user only, and look up the name of the key in it."""
        file = None
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._folder / FILE
        database = Database(file, timeout=LOCK_TIMEOUT)
        try:
            if file is not None:
                file.chmod(0o600)
                self._inode = file.stat().st_ino
            # A power failure may lose the last entries, which the next responses report again.
            database.execute("PRAGMA synchronous = OFF")
            database.execute("PRAGMA journal_mode = TRUNCATE")
            with database.transaction():
                for statement in TABLES:
                    database.execute(statement)
                database.execute(INSERT_SALT, (secrets.token_bytes(16),))
                ((salt,),) = database.execute("SELECT salt FROM salt")
            key = b"" if self._key is None else self._key.reveal().encode()
            name = blake2b(key, digest_size=12, salt=salt).hexdigest() if key else "anonymous"
            self.account = f"{name}@{self.host}"
        except BaseException:
            database.close()
            raise
        return database


def move_damaged_file(file: Path) -> None:
    """Rename a damaged *file*, once: of several processes that notice it, the first one does so."""
    if moved := set_aside(file, timeout=LOCK_TIMEOUT):
        log.warning(
            "%s was damaged, and is now %s. A new file counts the requests of this month from now "
            "on, until the service reports the remaining ones",
            file,
            moved,
        )


def is_alive(process: int) -> bool:
    """Return whether the *process* with this id runs on this machine; True if that is unknown."""
    if os.name != "posix":
        # On Windows os.kill would end the process.
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
