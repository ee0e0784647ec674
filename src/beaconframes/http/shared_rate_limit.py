"""What all processes of this machine that use one key know of each other.

They keep to its rate together, because each writes into one small database when it sends and when
it hears the answer. The time in it is that since the machine started, which is the same for all
processes and goes on evenly whatever becomes of the date. A key is in it as a salted hash.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import sqlite3
import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from beaconframes.http.retry import LONGEST_WAIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beaconframes.config import Secret
    from beaconframes.http.rate_limit_headers import RateLimitHeaders

T = TypeVar("T")

log = logging.getLogger("beaconframes.client")

FILE = "allowance.sqlite"
BUSY = 2.0
"""Seconds: so long another process may take, whose turns last a fraction of a millisecond."""
FORGOTTEN = 60.0
"""Seconds after which a request has surely arrived, though nobody has said that it was answered."""
POLL = 0.05
TABLES = (
    "CREATE TABLE IF NOT EXISTS salt (one INTEGER PRIMARY KEY CHECK (one = 1), salt BLOB)",
    "CREATE TABLE IF NOT EXISTS sent (id INTEGER PRIMARY KEY, whose TEXT, process, sent, answered)",
    """CREATE TABLE IF NOT EXISTS allowance (
        whose TEXT PRIMARY KEY, second INTEGER, minute INTEGER, hour INTEGER, monthly INTEGER,
        month TEXT NOT NULL DEFAULT '', left INTEGER, used INTEGER NOT NULL DEFAULT 0,
        told INTEGER, held REAL NOT NULL DEFAULT 0
    ) WITHOUT ROWID""",
)
SALT = "INSERT INTO salt VALUES (1, ?) ON CONFLICT DO NOTHING"
KNOWN = (
    "SELECT second, minute, hour, monthly, month, left, used, told FROM allowance WHERE whose = ?"
)
LIMITS = "SELECT second, held FROM allowance WHERE whose = ?"
SEND = "INSERT INTO sent (whose, process, sent) VALUES (?, ?, ?)"
COUNT = "SELECT count(*) FROM sent WHERE whose = ?"
TAKEN = (
    "SELECT id, process, sent, answered FROM sent WHERE whose = ?"
    " ORDER BY answered IS NULL, answered"
)
FREE = "DELETE FROM sent WHERE whose = ? AND (answered <= ? OR sent > ?)"
HOLD = (
    "INSERT INTO allowance (whose, held) VALUES (?1, ?2) ON CONFLICT (whose)"
    " DO UPDATE SET held = CASE WHEN held > ?2 + ?3 THEN ?2 ELSE max(held, ?2) END"
)
# A new month begins with nothing used. Within one, less is left and never more, whatever order
# answers come in, unless the plan has changed.
LEARN = (
    "INSERT INTO allowance (whose, second, minute, hour, monthly, month, left, used, told)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (whose) DO UPDATE SET"
    " second = ifnull(?2, second), minute = ifnull(?3, minute), hour = ifnull(?4, hour),"
    " left = CASE WHEN month <> ?6 THEN ?7 WHEN ?7 IS NULL THEN left"
    " WHEN left IS NULL OR monthly IS NOT ?5 THEN ?7 ELSE min(left, ?7) END,"
    " used = ?8 + CASE month WHEN ?6 THEN used ELSE 0 END,"
    " monthly = ifnull(?5, monthly), month = ?6, told = ifnull(?9, told)"
)


@dataclass(frozen=True)
class Known:
    """What is known of one allowance; ``told`` is when the service last spoke of it (Unix time)."""

    second: int | None = None
    minute: int | None = None
    hour: int | None = None
    monthly: int | None = None
    month: str = ""
    left: int | None = None
    used: int = 0
    told: int | None = None


class SharedRateLimit:
    """The allowance of one key with one service, shared by the processes of this machine.

    With no folder, or a file that cannot be used, each process keeps to the rate alone. Used by one
    thread at a time.
    """

    def __init__(self, folder: Path | None, host: str, key: Secret | None) -> None:
        """Open nothing yet."""
        self.host = host
        self._folder, self._key = folder, key
        self.whose = ""
        """The name of the allowance in the file, from which the key cannot be told."""
        self._database: sqlite3.Connection | None = None

    def known(self) -> Known:
        """Return what is known."""
        return self._turn(self._known)

    def take(self, rate: float | None, now: Callable[[], float]) -> tuple[float, int]:
        """Take a slot; return 0 and its number, or for how long there is none, and 0.

        *rate* is what the user permits to this process; what the service permits is known here.
        """
        # What time it is, is asked in turn: what was written before must not lie ahead of it.
        return self._turn(lambda database: self._take(database, rate, now()))

    def answered(self, number: int, now: float) -> None:
        """Say that the answer of the request that has this *number* began at *now*."""
        if number:
            self._write("UPDATE sent SET answered = ?2 WHERE whose = ?1 AND id = ?3", now, number)

    def hold(self, until: float) -> None:
        """Let nobody send before *until*."""
        self._write(HOLD, until, LONGEST_WAIT)

    def learn(self, told: RateLimitHeaders) -> None:
        """Remember what the service *told*, and count the request."""
        self._write(
            LEARN,
            *(told.second, told.minute, told.hour, told.monthly),
            *(told.month, told.left, int(told.counts)),
            int(time.time()) if told.anything else None,
        )

    def close(self) -> None:
        """Close the file; what comes later opens it again."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _known(self, database: sqlite3.Connection) -> Known:
        row = database.execute(KNOWN, (self.whose,)).fetchone()
        return Known() if row is None else Known(*row)

    def _take(
        self, database: sqlite3.Connection, rate: float | None, now: float
    ) -> tuple[float, int]:
        row = database.execute(LIMITS, (self.whose,)).fetchone()
        second, held = row or (None, 0.0)
        # What lies further ahead was said before the machine was started anew.
        if now < held <= now + LONGEST_WAIT:
            return held - now, 0
        permitted = max(rate or 0.0, second or 0.0) or math.inf
        delay = self._delay(database, permitted, now)
        if delay > 0:
            return delay, 0
        sent = database.execute(SEND, (self.whose, os.getpid(), now))
        return 0.0, sent.lastrowid or 0

    def _delay(self, database: sqlite3.Connection, permitted: float, now: float) -> float:
        """Return the seconds until one of the *permitted* slots may be free."""
        window = 1.0 if math.isinf(permitted) else max(1.0, 1 / permitted)
        database.execute(FREE, (self.whose, now - window, now))
        if math.isinf(permitted):
            return 0.0
        slots = max(1, math.floor(permitted))
        (count,) = database.execute(COUNT, (self.whose,)).fetchone()
        if count < slots:
            return 0.0
        rows = database.execute(TAKEN, (self.whose,)).fetchall()
        for number, process, sent, answered in rows:
            if answered is None and (sent < now - FORGOTTEN or not is_alive(process)):
                # Its request may have arrived until now.
                database.execute("UPDATE sent SET answered = ? WHERE id = ?", (now, number))
        # With more taken than there are slots the answer that frees one is further down.
        freeing = rows[len(rows) - slots][3]
        return POLL if freeing is None else max(freeing + window - now, 1e-4)

    def _write(self, statement: str, *values: object) -> None:
        self._turn(lambda database: database.execute(statement, (self.whose, *values)))

    def _turn(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what *work* does while no other process is in the file."""
        try:
            return self._once(work)
        except (sqlite3.Error, OSError) as error:
            if self._folder is None:
                raise
            log.warning(
                "what other processes send is not known, for %s cannot be used (%s): this one "
                "keeps to the rate alone. BEACONFRAMES_STATE can name another folder",
                self._folder / FILE,
                error,
            )
            self.close()
            self._folder = None
        return self._once(work)

    def _once(self, work: Callable[[sqlite3.Connection], T]) -> T:
        database = self._database = self._database or self._opened_in_turn()
        database.execute("BEGIN IMMEDIATE")
        try:
            return work(database)
        finally:
            database.execute("COMMIT")

    def _opened_in_turn(self) -> sqlite3.Connection:
        """Open the file, however many do so at the same moment."""
        # SQLite itself does not wait for another one that is about to begin the log of a file.
        attempts = Retrying(
            retry=retry_if_exception(is_busy),
            stop=stop_after_delay(BUSY),
            wait=wait_random(0.001, 0.02),
            reraise=True,
        )
        return attempts(self._opened)

    def _opened(self) -> sqlite3.Connection:
        """Open the file, made for this user alone, and learn under which name the key is in it."""
        file: Path | str = ":memory:"
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._folder / FILE
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            file.chmod(0o600)
        database = sqlite3.connect(
            file, timeout=BUSY, isolation_level=None, check_same_thread=False
        )
        try:
            # What a power cut takes away is learned anew.
            database.execute("PRAGMA synchronous = OFF")
            if self._folder and database.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                database.execute("PRAGMA journal_mode = WAL")
            database.execute("BEGIN IMMEDIATE")
            for statement in TABLES:
                database.execute(statement)
            database.execute(SALT, (secrets.token_bytes(16),))
            (salt,) = database.execute("SELECT salt FROM salt").fetchone()
            database.execute("COMMIT")
            key = b"" if self._key is None else self._key.reveal().encode()
            mark = blake2b(key, digest_size=12, salt=salt).hexdigest() if key else "nobody"
            self.whose = f"{mark}@{self.host}"
        except BaseException:
            database.close()
            raise
        return database


def is_busy(error: BaseException) -> bool:
    """Tell whether another process has the file for the moment."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def is_alive(process: int) -> bool:
    """Tell whether a *process* of this machine still runs, as far as can be known."""
    if os.name != "posix":
        # Elsewhere asking would end it.
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
