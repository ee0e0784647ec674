"""Ctrl-C and SIGTERM: they end a command within seconds, with one line on standard error."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

from beaconframes.cli import exit_codes
from beaconframes.cli.messages import STOPPED, print_message

CLEANUP_SECONDS = 1.5
"""Time for cleaning up after a signal; then the process exits immediately."""

REPEAT_SECONDS = 0.5
"""A signal so soon after another is a duplicate: `timeout` also sends it to the process group."""

_hints: list[str] = []
_reported = threading.Event()
_has_report = threading.Event()
_received: list[tuple[int, float]] = []
"""The number and the time of each signal."""


def install_handlers() -> None:
    """Make both signals raise `KeyboardInterrupt`; a thread exits the process if that takes long.

    The main thread may run a library, or wait for threads that wait for a response.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    threading.Thread(target=_exit_after_signal, args=(reader, writer), daemon=True).start()


def prepare_stop(hint: str = "", *, has_report: bool = False) -> None:
    """Set the *hint* at the end of the message of a stopped command.

    With *has_report*, the command prints a report after a signal, which may take longer than other
    cleaning up. Then a second signal ends the process.
    """
    _hints[:] = [hint] if hint else []
    if has_report:
        _has_report.set()


def is_stopped() -> bool:
    """Return whether a signal has arrived."""
    return bool(_received)


def report_stop() -> int:
    """Print that the command was stopped, once for all signals; return its exit code."""
    if not _reported.is_set():
        print_message("; ".join([STOPPED, *_hints]))
    if not _received:
        return exit_codes.INTERRUPTED
    _reported.set()
    return 128 + _received[0][0]


def _interrupt(number: int, _frame: object) -> None:
    now = time.monotonic()
    is_repeated = bool(_received) and now - _received[-1][1] < REPEAT_SECONDS
    _received.append((number, now))
    if not is_repeated:
        raise KeyboardInterrupt


def _exit_after_signal(reader: socket.socket, _writer: socket.socket) -> None:
    """Wait for a signal, then for the cleanup, and exit the process."""
    number, started = reader.recv(1)[0], time.monotonic()
    if _has_report.is_set():
        while reader.recv(1) and time.monotonic() - started < REPEAT_SECONDS:
            pass
    time.sleep(CLEANUP_SECONDS)
    report_stop()
    os._exit(128 + number)
