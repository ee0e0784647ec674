"""Help texts of commands: docstrings of Python functions, translated to the syntax of a shell."""

from __future__ import annotations

import inspect
import re
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_PART = re.compile(r"^(?P<names>[a-z_]+(?:, [a-z_]+)*)\n(?P<text>(?:    .*\n?)+)", re.MULTILINE)
_ROWS = re.compile(r", (?:one|a) row|[.;:(]")
_TRANSLATIONS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"A Timestamp is one instant", "A datetime is one instant"),
        (r'``(since|until)=pd\.Timestamp\("([\d-]+)"\)``', r"--\1 \2T00:00"),
        (r'``(since|until)="?(-?\d[\d_-]*)"?``', r"--\1 \2"),
        (r"(?<=\d)_(?=\d)", ""),
        (r"``strict=True``", "--strict"),
        (r", range or Series of", " or range of"),
        (r" or Series of", " of"),
        (r"\s*This computes eagerly[^.]*\.", ""),
        (r" \*since\* and \*until\*, dates or times, are that range[^.]*\.", ""),
        # A chart is a file, not an object.
        (r"(,|; the second is) ``ax\.figure\.axes\[-1\]``", ""),
        (r" \(``pl\.concat``\)| or ``bf\.wall\.from_blocks\(\.\.\.\)``", ""),
        (r", or \*groups\* of them such as ``[^`]*``", ""),
        (r"``\(x0, y0, x1, y1\)``", "X1,Y1,X2,Y2"),
    )
]
"""Expressions of Python in docstrings, and what the help has instead."""
_COMMANDS = [
    (re.compile(rf"`+{pattern}(\w+)(?:\((?:\.\.\.)?\))?`+"), command)
    for pattern, command in (
        (r"(?:bf|beaconframes)\.load_", r"load \1"),
        (r"(?:bf|beaconframes)\.analysis\.", r"analyse \1"),
        (r"(?:bf|beaconframes)\.(?=[a-z])", r"\1"),
    )
]
"""Functions in docstrings, and the command of each."""
_RANGE = re.compile(r"First and last (\w+)")
_LOADER = re.compile(r"`load_(\w+)`")
_ARGUMENT = re.compile(r"\*([a-z_]+)\*(?: ``\"(\w+)\"``)?")


def parse_argument_help(
    function: Callable[..., Any], options: Collection[str] | None = None
) -> dict[str, str]:
    """Return the description of each argument in the docstring."""
    _, _, rest = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")
    help_texts: dict[str, str] = {}
    for part in _PART.finditer(rest.partition("\n\n")[0] + "\n"):
        for name in part["names"].split(", "):
            help_texts[name] = translate_docstring(part["text"], function, options)
        if ends := _RANGE.match(help_texts.get("until", "")):
            # Two options have two texts; the forms of a time are with the first.
            help_texts["since"] = _RANGE.sub(r"First \1", help_texts["since"], count=1)
            help_texts["until"] = f"Last {ends[1]}, inclusive, in the same forms as --since."
    return help_texts


def parse_summary(function: Callable[..., Any], options: Collection[str] | None = None) -> str:
    """Return the text of the docstring before the arguments."""
    text = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")[0]
    return translate_docstring(text, function, options)


def parse_title(loader: Callable[..., Any]) -> str:
    """Return the contents of the rows in a few words, for a list of loaders."""
    title = _ROWS.split(parse_summary(loader), maxsplit=1)[0]
    return title.removeprefix("Load ").removeprefix("the ")


def translate_docstring(
    text: str, function: Callable[..., Any], options: Collection[str] | None = None, file: str = ""
) -> str:
    """Return a docstring of *function* as help: options, commands and values of a shell.

    The *options* are the arguments that the command has; by default, all. The argument
    *file* is the frame that the command reads from its argument FILE.
    """
    names = inspect.signature(function).parameters if options is None else options

    def name_option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name == file:
            return "FILE"
        shown = f"--{name.replace('_', '-')}" if name in names else name
        return shown if value is None else f"{shown} {value}"

    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    text = "\n\n".join(filter(None, paragraphs))
    for pattern, replacement in _TRANSLATIONS:
        text = pattern.sub(replacement, text)
    # A loader without its package is of the same version.
    loader = r"load v2.\1" if ".v2." in function.__module__ else r"load \1"
    for pattern, command in (*_COMMANDS, (_LOADER, loader)):
        text = pattern.sub(partial(name_command, command), text)
    return re.sub(r"`{1,2}([^`]*)`{1,2}", r"\1", _ARGUMENT.sub(name_option, text))


def name_command(command: str, found: re.Match[str]) -> str:
    """Return the *command* of a function: a pattern in which the name of the function is."""
    return found.expand(command).replace("_", "-")
