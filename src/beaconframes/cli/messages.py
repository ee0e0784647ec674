"""Messages on standard error: one line for each error or warning, safe for a terminal."""

from __future__ import annotations

import contextlib
import re
import traceback
from typing import TYPE_CHECKING

import click

from beaconframes.errors import BeaconframesError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

STOPPED = "stopped"
"""The message of a command that a signal ended."""

_PYTHON_CALL = re.compile(r"\b(?:bf\.[\w.]+|[A-Z]\w+)\([^()]*\)")
"""A call, or the repr of an object."""

HINTS = {
    "bf.missing() lists them": "--json lists them",
    'Pass its address, such as bf.node("http://localhost:5052"),': "Give its address with --node,",
    "bf.loaders() lists all loaders": "beaconframes dictionary lists all loaders",
    "or call bf.connect(api_key=...); without a key, bf.local() serves": (
        "or add --key-file or --ask-key; without a key, --local serves"
    ),
    "For the validators of an address, use bf.load_deposit_origin, bf.load_withdrawal_credentials "
    "or bf.v2.withdrawal": (
        "Write the validators of an address to a file, and give its name: beaconframes load "
        "withdrawal-credentials --credentials ADDRESS --out mine.csv"
    ),
}
"""What a hint says in Python, and on the command line."""


def print_message(text: str) -> None:
    """Print one line to standard error; print nothing if standard error is closed."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(f"beaconframes: {visible(' '.join(text.split()))}", err=True)


def print_warning(text: str) -> None:
    """Print a warning as one line to standard error."""
    print_message(f"warning: {text}")


def print_traceback(error: BaseException) -> None:
    """Print the traceback of an error to standard error, with every line escaped."""
    with contextlib.suppress(OSError, ValueError):
        for part in traceback.format_exception(error):
            for line in part.splitlines():
                click.echo(visible(line), err=True)


def format_error(error: Exception, options: Mapping[str, str]) -> str:
    """Return the message of an error; *options* are those of the command."""
    if isinstance(error, BeaconframesError):
        return replace_arguments(str(error), options)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    return f"{type(error).__name__}: {error} (add --debug for a traceback)"


def format_usage_error(error: click.ClickException) -> str:
    """Return the message of an invalid command line."""
    text = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption) and "key" in error.option_name:
        text += ". A key on the command line would be visible in the list of processes"
        return f"{text}. Set BEACONFRAMES_API_KEY, or use --key-file or --ask-key"
    context = getattr(error, "ctx", None)
    end = " " if text.endswith("?") else ". "
    return f"{text}{end}See {context.command_path} --help" if context else text


def replace_arguments(text: str, options: Mapping[str, str]) -> str:
    """Replace arguments such as ``max_requests=`` by *options*, and hints by those of a command.

    *options* are the options of the command by the name of their argument. Python calls such as
    ``bf.connect(api_key=...)`` stay unchanged.
    """
    if not options:
        return text
    for hint, command in HINTS.items():
        text = text.replace(hint, command)
    names = "|".join(map(re.escape, options))
    pattern = re.compile(
        rf"{_PYTHON_CALL.pattern}"
        # since=1, since='1d', wait=True, but neither ?since=1 nor my_since=1
        rf"|(?<![\w.(?&/-])({names})(?:=\(([^()]+)\)|=(True\b)?(?=(\.\.\.|[^\s.,;:)])?)"
        # since (1d, epoch 7) is after until (...), rate is -1; it must be above 0
        r"|(?<=since|until)(?= \()|(?= is [^;]*; it must be ))"
    )

    def replace(match: re.Match[str]) -> str:
        name, items, true, following = match.groups()
        if name is None:
            return match[0]
        if items is not None:
            separator = " " if name == "figsize" else ","
            numbers = (re.sub(r"\.0$", "", item.strip()) for item in items.split(","))
            return f"{options[name]} {separator.join(numbers)}"
        return options[name] + (" " if following and not true else "")

    return pattern.sub(replace, text)
