"""Execution of one command: its state, its warnings, its errors and its exit code."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from beaconframes import errors
from beaconframes.cli import exit_codes, signals
from beaconframes.cli.messages import (
    format_error,
    format_usage_error,
    print_message,
    print_traceback,
    print_warning,
    replace_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class RunState:
    """The state of the command that is running."""

    debug: bool = False
    as_json: bool = False
    """Whether the command prints JSON instead of text."""
    incomplete: bool = False
    warnings: list[Warning] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    """The options of the command by the name of their argument, for messages."""

    @property
    def is_complete(self) -> bool:
        """Return whether all requested rows were returned, and no balance contradicts them."""
        is_reconciled = not any(isinstance(each, errors.UnreconciledRows) for each in self.warnings)
        return not self.incomplete and not self.missing and is_reconciled

    @property
    def missing(self) -> list[errors.MissingRows]:
        """Return the warnings of missing rows."""
        return [warning for warning in self.warnings if isinstance(warning, errors.MissingRows)]


def current_state() -> RunState:
    """Return the state of the command that is running."""
    state: RunState = click.get_current_context().find_root().obj
    return state


def run_command(command: Callable[[], Any], state: RunState) -> int:
    """Run *command*, print an error as one line to standard error, and return the exit code."""
    try:
        if sys.stdout is None:
            raise errors.UsageError("standard output is closed", hint="Send it to /dev/null")
        with print_warnings(state):
            command()
        flush_output()
    except click.exceptions.Exit as ended:
        return _finish(ended.exit_code, state)
    except (click.Abort, KeyboardInterrupt, EOFError):
        return signals.report_stop()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        print_message(format_usage_error(error))
        return error.exit_code
    except BrokenPipeError:
        _discard_output()
        return exit_codes.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - every error becomes one line
        if isinstance(error, ModuleNotFoundError) and error.name:
            error = errors.build_package_error(error.name, "this command")
        if state.debug:
            print_traceback(error)
        else:
            print_message(format_error(error, state.options))
        _discard_output()
        return exit_codes.exit_code_of(error)
    return _finish(exit_codes.SUCCESS, state)


def _finish(code: int, state: RunState) -> int:
    """Return the exit code of a finished command; missing rows have their own."""
    try:
        flush_output()
    except OSError as error:
        _discard_output()
        if error.errno == errno.EPIPE:
            return exit_codes.BROKEN_PIPE
        print_message(format_error(error, state.options))
        return exit_codes.FILE_ERROR
    if code in (exit_codes.SUCCESS, exit_codes.PROBLEMS_FOUND) and not state.is_complete:
        return exit_codes.MISSING_ROWS
    return code


def flush_output() -> None:
    """Flush standard output; only now does a full disk raise an error."""
    with contextlib.suppress(ValueError):
        sys.stdout.flush()


def _discard_output() -> None:
    """Discard buffered output, which Python would otherwise fail to write at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


@contextlib.contextmanager
def print_warnings(state: RunState) -> Iterator[None]:
    """Print each warning once, and each logged warning, as one line; record the warnings."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        warning = message if isinstance(message, Warning) else category(message)
        # Several loads of one command may miss the same rows.
        if str(warning) not in map(str, state.warnings):
            print_warning(replace_arguments(str(warning), state.options))
            state.warnings.append(warning)

    logger, handler = logging.getLogger("beaconframes"), MessageHandler(logging.WARNING)
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            # Python would show each place in the code once only.
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield
    finally:
        logger.removeHandler(handler)


class MessageHandler(logging.Handler):
    """Log handler that prints each record as one line to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        print_warning(record.getMessage())
