"""Faults of SQLite statements: the n-th one fails, as on a disk that is full or broken."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

FAULTS = {
    "disk I/O error": sqlite3.SQLITE_IOERR,
    "database or disk is full": sqlite3.SQLITE_FULL,
    "unable to open database file": sqlite3.SQLITE_CANTOPEN,
}


class Statements:
    """The statements so far, and the one that fails."""

    def __init__(self):
        self.count, self.at, self.message, self.failed = 0, None, "", ""

    def step(self, statement):
        self.count += 1
        if self.count == self.at:
            self.failed = statement
            error = sqlite3.OperationalError(self.message)
            error.sqlite_errorcode = FAULTS[self.message]
            raise error

    @contextmanager
    def failing(self, at, message):
        """Let statement number *at* of the block fail with *message*; connections count too."""
        self.count, self.at, self.message, self.failed = 0, at, message, ""
        try:
            yield self
        finally:
            self.at = None


def plant(monkeypatch, folder):
    """Return the statements on the files in *folder*, of this process from now on."""
    statements, connect = Statements(), sqlite3.connect

    def connect_counted(path, *args, factory=sqlite3.Connection, **more):
        if str(folder) not in str(path):
            return connect(path, *args, factory=factory, **more)

        class Counted(factory):
            def execute(self, statement, *values):
                statements.step(statement)
                return super().execute(statement, *values)

            def executemany(self, statement, rows):
                statements.step(statement)
                return super().executemany(statement, rows)

        statements.step("connect")
        return connect(path, *args, factory=Counted, **more)

    monkeypatch.setattr(sqlite3, "connect", connect_counted)
    return statements
