"""Docstrings of Python functions as help texts: their sections, and their markup as a shell has it.

Only two parts of the numpydoc format occur: sections with a line of dashes, and the list of
parameters.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_MARKUP = re.compile(
    r"``(?P<code>[^`]+)``|`(?P<name>[^`]+)`"
    r'|\*(?P<argument>[a-z_]+)\*(?: ``"(?P<value>\w+)"``)?'
)
"""Code, a public name, or an argument, maybe with its value."""
_CALL = re.compile(r"(?P<path>\w+(?:\.\w+)*)(?:\(\.*\))?")
"""A function, with or without parentheses."""
_TITLE = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)
"""The title of a section, with a line of dashes below it."""
_BOTH_ENDS = "First and last "

PHRASES = {
    "A Timestamp is one instant": "A datetime is one instant",
    ", range or Series of": " or range of",
    " or Series of": " of",
    # A chart is a file, not an object.
    ", ``ax.figure.axes[-1]``": "",
    "; the second is ``ax.figure.axes[-1]``": "",
    " or ``bf.wall.from_blocks(...)``": "",
    ', or *groups* of them such as ``{"ours": range(250)}``': "",
    "``(x0, y0, x1, y1)``": "X1,Y1,X2,Y2",
}
"""Words about objects of Python, and what the help has instead."""
PYTHON_ONLY = (
    "computes eagerly",
    "since* and *until*, dates or times, are that range",
    "*kwargs* go to",
    "*title*, *figsize*",
    "penalties after an exit are no missed votes",
    "is the result of ``bf.index(...)``",
    "range(0, 1000)",
)
"""Sentences that are about Python only have these words."""


def split_sections(function: Callable[..., Any]) -> dict[str, str]:
    """Return the text of each section of a docstring; the text before them has the name ""."""
    before, *sections = _TITLE.split(inspect.getdoc(function) or "")
    return {"": before, **dict(zip(sections[::2], sections[1::2], strict=True))}


def list_parameters(section: str) -> dict[str, str]:
    """Return the description of each parameter in the text of their section."""
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in section.split("\n"):
        if line and not line.startswith(" "):
            names = line.split(", ")
        else:
            texts |= {name: f"{texts.get(name, '')}{line.strip()} " for name in names}
    return texts


def describe_arguments(
    function: Callable[..., Any], options: Collection[str] | None = None
) -> dict[str, str]:
    """Return the help of each argument; *options* are those that the command has, or all."""
    parameters = list_parameters(split_sections(function).get("Parameters", ""))
    texts = {n: translate(text, function, options) for n, text in parameters.items()}
    if texts.get("until", "").startswith(_BOTH_ENDS):
        # Two options have two texts; the forms of a time are with the first.
        rest = texts["until"].removeprefix(_BOTH_ENDS)
        unit = rest.split()[0].rstrip(",")
        texts["since"] = f"First {rest}"
        forms = 'as a number, a date, a datetime or an age such as "30d"'
        if options is None or "since" in options:
            forms = "in the same forms as --since"
        texts["until"] = f"Last {unit}, inclusive, {forms}."
    return texts


def describe(function: Callable[..., Any], options: Collection[str] | None = None) -> str:
    """Return the text before the sections."""
    return translate(split_sections(function)[""], function, options)


def translate(
    text: str, function: Callable[..., Any], options: Collection[str] | None = None
) -> str:
    """Return text of the docstring of a *function* with options, commands and values of a shell."""
    names = inspect.signature(function).parameters if options is None else options
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    text = "\n\n".join(filter(None, map(drop_python, paragraphs)))
    for words, replacement in PHRASES.items():
        text = text.replace(words, replacement)
    version = "v2." if ".v2." in function.__module__ else ""

    def replace(found: re.Match[str]) -> str:
        if found["argument"] is None:
            return translate_code(found["code"] or found["name"], version)
        return " ".join(filter(None, (name_option(found["argument"], names), found["value"])))

    return _MARKUP.sub(replace, text)


def drop_python(paragraph: str) -> str:
    """Return a paragraph without the sentences that are about Python only."""
    if not any(words in paragraph for words in PYTHON_ONLY):
        return paragraph
    sentences = re.split(r"(?<=\.) ", paragraph)
    return " ".join(s for s in sentences if not any(words in s for words in PYTHON_ONLY))


def name_option(name: str, options: Collection[str]) -> str:
    """Return the option of an argument; the name itself if the command has no such option."""
    return f"--{name.replace('_', '-')}" if name in options else name


def translate_code(code: str, version: str) -> str:
    """Return the option, the command or the value that a piece of Python stands for."""
    name, equals, value = code.partition("=")
    if equals and name.isidentifier():
        option = f"--{name.replace('_', '-')}"
        if value.startswith("pd.Timestamp("):
            value = value.split('"')[1] + "T00:00"
        value = value.strip('"').replace("_", "")
        return option if value == "True" else f"{option} {value}"
    call = _CALL.fullmatch(code)
    return name_command(call["path"], version) or code if call else code


def name_command(path: str, version: str) -> str:
    """Return the command that calls a function; empty if none does."""
    package, _, name = path.removeprefix("beaconframes.").removeprefix("bf.").rpartition(".")
    is_public = path.startswith(("bf.", "beaconframes."))
    command = name.removeprefix("load_").replace("_", "-")
    if name.startswith("load_") and package in ("", "v2"):
        # A loader without its package is of the same version.
        return f"load {'v2.' if package else '' if is_public else version}{command}"
    if not is_public or not name.islower():
        return ""
    package = "analyse" if package == "analysis" else package
    return " ".join(filter(None, (*package.split("."), command)))
