"""Ctrl-C and SIGTERM end the command soon, with one line, whatever it is doing."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from beaconframes.cli.running import say

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 1.5
"""Seconds for tidying up, after which the process ends as it is."""

TWICE = 0.5
"""Seconds in which the same signal again is the same one: timeout sends it to a group as well."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_said = ["stopped"]
_told = threading.Event()
_obeying = threading.Event()
_gentle = threading.Event()
_first: list[tuple[int, float]] = []


class Stopped(SystemExit):
    """A signal came; its status is 128 and the number of the signal."""


def obey() -> None:
    """Let both signals raise `Stopped`, and end the process where that is not enough.

    The main thread may be inside of a library, or waiting for threads that wait for an answer.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    _stop_on_signals()
    _obeying.set()
    threading.Thread(target=_watch, args=(reader, writer), daemon=True).start()


@contextmanager
def gently() -> Iterator[list[int]]:
    """Let the first signal raise KeyboardInterrupt, for what ends on Ctrl-C; yield which came.

    The second one ends the command as everywhere, if it is not the first one told twice.
    """
    came: list[int] = []
    if not _obeying.is_set():
        yield came
        return

    def interrupt(number: int, _frame: object) -> None:
        came.append(number)
        _first[:] = [(number, time.monotonic())]
        _stop_on_signals()
        raise KeyboardInterrupt

    _gentle.set()
    for number in SIGNALS:
        signal.signal(number, interrupt)
    try:
        yield came
    finally:
        _gentle.clear()
        _stop_on_signals()


def tell() -> None:
    """Say that the command was stopped, once."""
    if not _told.is_set():
        _told.set()
        say("; ".join(_said))


def add(hint: str) -> None:
    """Let what is said of a command that was stopped end with a *hint*."""
    _said[1:] = [hint]


def _stop_on_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, _stop)


def _stop(number: int, _frame: object) -> None:
    if not _is_same(number):
        _first[:] = [(number, time.monotonic())]
        raise Stopped(128 + number)


def _is_same(number: int) -> bool:
    """Tell whether a signal is the one that came just before, told twice."""
    return any(number == n and time.monotonic() - at < TWICE for n, at in _first)


def _watch(reader: socket.socket, _writer: socket.socket) -> None:
    number = reader.recv(1)[0]
    if _gentle.is_set():
        _gentle.clear()
        first, at = number, time.monotonic()
        number = reader.recv(1)[0]
        while number == first and time.monotonic() - at < TWICE:
            number = reader.recv(1)[0]
    time.sleep(PATIENCE)
    tell()
    os._exit(128 + number)
