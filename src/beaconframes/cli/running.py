"""How a command runs and ends: one line for an error, no traceback, a status that tells which."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import traceback
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from beaconframes import errors
from beaconframes.cli import exits
from beaconframes.cli.spelling import on_the_command_line
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOTICES = (
    errors.MissingRows,
    errors.WindowMoved,
    errors.EndpointDeprecated,
    errors.StoreUnavailable,
)


@dataclass
class State:
    """What a run of the command has come to so far."""

    debug: bool = False
    incomplete: bool = False
    notices: list[Warning] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Tell whether nothing that was asked for is missing."""
        return not self.incomplete and not self.missing

    @property
    def missing(self) -> list[errors.MissingRows]:
        """Return the notices of missing rows."""
        return [notice for notice in self.notices if isinstance(notice, errors.MissingRows)]


def state() -> State:
    """Return the state of the command that is running."""
    found: State = click.get_current_context().find_root().obj
    return found


def run(command: Callable[[], Any], now: State) -> int:
    """Run *command* and return the exit status; what went wrong is one line on standard error."""
    try:
        if sys.stdout is None:
            raise errors.UsageError("standard output is closed", hint="Send it to /dev/null")
        with told(now):
            command()
        flush()
    except click.exceptions.Exit as ended:
        return _ended(ended.exit_code, now)
    except (click.Abort, KeyboardInterrupt, EOFError):
        say("stopped")
        return exits.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        say(_usage(error))
        return error.exit_code
    except BrokenPipeError:
        _forget_output()
        return exits.PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - whatever happens, a user sees one line
        if now.debug:
            show_traceback(error)
        else:
            say(_line(error))
        _forget_output()
        return exits.status_of(error)
    return _ended(exits.DONE, now)


def _ended(status: int, now: State) -> int:
    """Return the status of a command that came to its end: a part is never success."""
    try:
        flush()
    except OSError as error:
        _forget_output()
        if error.errno == errno.EPIPE:
            return exits.PIPE_CLOSED
        say(_line(error))
        return exits.FILES
    return exits.PARTIAL if status == exits.DONE and not now.complete else status


def flush() -> None:
    """Write out what was said; only now does a full disk show."""
    with contextlib.suppress(ValueError):
        sys.stdout.flush()


def say(text: str) -> None:
    """Say one line on standard error; where that is closed too, nobody can be told."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(f"beaconframes: {visible(' '.join(text.split()))}", err=True)


def _line(error: Exception) -> str:
    if isinstance(error, errors.BeaconframesError):
        return on_the_command_line(str(error))
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    return f"{type(error).__name__}: {error} (--debug shows where)"


def _usage(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption) and "key" in error.option_name:
        text += ". A key is never an argument: everybody who lists the processes sees those"
        return f"{text}. Set BEACONFRAMES_API_KEY, or use --key-file or --ask-key"
    context = getattr(error, "ctx", None)
    return f"{text}. See {context.command_path} --help" if context else text


def show_traceback(error: BaseException) -> None:
    """Show where an error comes from, line by line, each made safe for a terminal."""
    with contextlib.suppress(OSError, ValueError):
        for part in traceback.format_exception(error):
            for line in part.splitlines():
                click.echo(visible(line), err=True)


def _forget_output() -> None:
    """Send what is still to be written nowhere, or Python would complain at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def told(now: State) -> Iterator[None]:
    """Say each warning as one line, and remember it."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        notice = message if isinstance(message, Warning) else category(message)
        now.notices.append(notice)
        say(f"warning: {on_the_command_line(str(notice))}")

    logger, handler = logging.getLogger("beaconframes"), Said(logging.WARNING)
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            for category in NOTICES:
                warnings.filterwarnings("always", category=category)
            warnings.showwarning = show
            yield
    finally:
        logger.removeHandler(handler)


class Said(logging.Handler):
    """Says what is logged as one line, as warnings are."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, but for what a warning says as well."""
        if (record.name, record.funcName) != ("beaconframes.store", "_warn"):
            say(f"warning: {record.getMessage()}")
