"""Ctrl-C and SIGTERM end the command soon, with one line, whatever it is doing."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

from beaconframes.cli.running import say

PATIENCE = 1.5
"""Seconds for tidying up, after which the process ends as it is."""

_told = threading.Event()


class Stopped(SystemExit):
    """A signal came; its status is 128 and the number of the signal."""


def obey() -> None:
    """Let both signals raise `Stopped`, and end the process where that is not enough.

    The main thread may be inside of a library, or waiting for threads that wait for an answer.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    threading.Thread(target=_watch, args=(reader, writer), daemon=True).start()


def tell() -> None:
    """Say that the command was stopped, once."""
    if not _told.is_set():
        _told.set()
        say("stopped")


def _stop(number: int, _frame: object) -> None:
    raise Stopped(128 + number)


def _watch(reader: socket.socket, _writer: socket.socket) -> None:
    number = reader.recv(1)[0]
    time.sleep(PATIENCE)
    tell()
    os._exit(128 + number)
