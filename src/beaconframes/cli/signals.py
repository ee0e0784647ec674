"""Ctrl-C and SIGTERM: they end a command within seconds, with one line on standard error."""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from beaconframes.cli.messages import STOPPED, print_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

CLEANUP_SECONDS = 1.5
"""Time for cleaning up after a signal; then the process exits immediately."""

REPEAT_SECONDS = 0.5
"""The same signal within this time is a duplicate: `timeout` also sends it to the process group."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StoppedBySignal(SystemExit):
    """Raised for a signal; the exit code is 128 plus the number of the signal."""


_hints: list[str] = []
_reported = threading.Event()
_tolerated: dict[int, str] = {}
"""The signals whose first arrival does not end the process, each with the message to print."""
_received: dict[int, float] = {}
"""The signals that the main thread has received, each with its time."""


def install_handlers() -> None:
    """Make both signals raise `StoppedBySignal`; a thread exits the process if that takes too long.

    The main thread may run a library, or wait for threads that wait for a response.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    _raise_on_signals()
    threading.Thread(target=_exit_after_signal, args=(reader, writer), daemon=True).start()


@contextmanager
def handle_first(
    numbers: Iterable[signal.Signals],
    handle: Callable[[int, FrameType | None], object],
    message: str = "",
) -> Iterator[list[int]]:
    """Let *handle* handle the first of these signals, and yield the list of received signals.

    The *message* is printed then. A second signal ends the command like any other, unless it
    repeats the first one.
    """
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)
        _received[number] = time.monotonic()
        _raise_on_signals()
        handle(number, frame)

    if signal.getsignal(signal.SIGINT) is not _stop:  # no handlers are installed
        yield received
        return
    for number in numbers:
        _tolerated[number] = message
        signal.signal(number, receive)
    try:
        yield received
    finally:
        _tolerated.clear()
        _raise_on_signals()


def report_stop() -> None:
    """Print once that the command was stopped."""
    if not _reported.is_set():
        _reported.set()
        print_message("; ".join([STOPPED, *_hints]))


def set_hint(hint: str) -> None:
    """Set the *hint* at the end of the message of a stopped command."""
    _hints[:] = [hint]


def _raise_on_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, _stop)


def _stop(number: int, _frame: object) -> None:
    if not _is_repeated(number, _received):
        raise StoppedBySignal(128 + number)


def _is_repeated(number: int, times: dict[int, float]) -> bool:
    """Return whether the same signal has one of *times* shortly before; otherwise record it."""
    now = time.monotonic()
    if now - times.get(number, -math.inf) < REPEAT_SECONDS:
        return True
    times[number] = now
    return False


def _exit_after_signal(reader: socket.socket, _writer: socket.socket) -> None:
    """Wait for a signal, then for the cleanup, and exit the process."""
    number = reader.recv(1)[0]
    if (message := _tolerated.get(number)) is not None:
        _tolerated.clear()
        if message:
            print_message(message)
        times = {number: time.monotonic()}
        while _is_repeated(number := reader.recv(1)[0], times):
            pass
    time.sleep(CLEANUP_SECONDS)
    report_stop()
    os._exit(128 + number)
