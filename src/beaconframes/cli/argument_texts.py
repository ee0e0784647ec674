"""Texts of arguments: times, regions, and lists of validators, slots or names."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from beaconframes.errors import DatasetError, UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_REGION = re.compile(r"-?[0-9]{1,9}(?:,-?[0-9]{1,9}){3}", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
STANDARD_INPUT = "-"
FILE_OPTIONS = ("validators", "--validators")
"""Arguments and options whose lists may be files."""
SETS = ("dashboard", "withdrawal", "deposit-address", "entity", "sub-entity", "owner", "operator")
"""Kinds of sets of validators, which loaders of V2 take."""
_SHOWN = 60
_FILE_NAME = re.compile(r"[/\\]|\.[A-Za-z]\w*$")
"""What only the name of a file has: a folder, or a suffix."""


def parse_list(
    option: str,
    texts: Iterable[str],
    check: Callable[[Any], object],
) -> list[int | str]:
    """Return all items of *texts*: numbers, ranges such as ``1-100``, and other words.

    ``-`` is standard input: items separated by commas or spaces on any number of lines, with
    comments after ``#``. A list of validators may be the name of such a file as well. *check*
    validates the items; its errors get the line number.
    """
    items: list[int | str] = []
    for text in texts:
        if text == STANDARD_INPUT:
            stream = getattr(sys.stdin, "buffer", None)
            if stream is None:
                raise UsageError("standard input is closed", hint="Redirect a file or a pipe to it")
            _parse_lines(option, items, stream, "standard input", check)
        elif option.lower() in FILE_OPTIONS and _is_file(text):
            with Path(text).open("rb") as file:
                _parse_lines(option, items, file, text, check)
        else:
            if option.lower() in FILE_OPTIONS:
                _check_word_of_validators(option, text)
            _parse_items(option, items, text, None)
    if not items:
        raise UsageError(f"{option} is empty", hint="Give at least one item")
    return items


def _is_file(text: str) -> bool:
    """Return whether a text is the name of a file; a list may be too long for one."""
    try:
        return Path(text).is_file()
    except OSError:
        return False


def _check_word_of_validators(option: str, text: str) -> None:
    """Refuse the name of a file that does not exist, and a set of V2."""
    kind, colon, _ = text.partition(":")
    if colon and kind in SETS:
        raise UsageError(
            f"{option} {visible(text, _SHOWN)} is a set of validators, and this command takes none",
            hint="Give indices or public keys; loaders of V2 take sets, with load --v2",
        )
    if "," not in text and _FILE_NAME.search(text):
        raise DatasetError(
            f"{option}: there is no file {visible(text, _SHOWN)}",
            hint="Check its name, or give indices or public keys",
        )


def _parse_items(
    option: str, items: list[int | str], text: str, check: Callable[[Any], object] | None
) -> None:
    """Append the items of one line, or of one word of the command line, to *items*."""
    from beaconframes.endpoint.identifiers import MAX_ITEMS, parse_list_text

    new = parse_list_text(text, option)
    if check is not None:
        # Of numbers, the largest is enough: a range may have millions of them.
        for item in (item for item in new if isinstance(item, str)):
            check(item)
        check(max((item for item in new if isinstance(item, int)), default=0))
    items += new
    if len(items) > MAX_ITEMS:
        raise UsageError(
            f"{option} has more than {MAX_ITEMS:,} items", hint="Split it into several calls"
        )


def _parse_lines(
    option: str,
    items: list[int | str],
    stream: IO[bytes],
    name: str,
    check: Callable[[Any], object],
) -> None:
    """Append the items of all lines of a stream, without comments, to *items*."""
    for number, raw in enumerate(stream, 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"line {number:,} of {name} is not UTF-8") from None
        if not (text := line.partition("#")[0].strip()):
            continue
        try:
            _parse_items(option, items, text, check)
        except UsageError as error:
            raise UsageError(
                f"line {number:,} of {name}: {error.message}", hint=error.hint
            ) from None


def check_word(item: Any) -> None:
    """Refuse an item that is neither a number nor a word of common characters."""
    if not isinstance(item, int) and not re.fullmatch(r"[\w.@:/+-]{1,200}", item):
        raise UsageError(f"{visible(repr(item), _SHOWN)} contains invalid characters")


def check_number(item: Any) -> None:
    """Refuse an item that is neither a number, nor a block root, nor a name such as latest."""
    names = ("latest", "finalized", "head", "genesis", "next", "current")
    if (
        not isinstance(item, int)
        and item not in names
        and not re.fullmatch(r"0x[0-9a-fA-F]{1,96}", item)
    ):
        raise UsageError(f"{visible(repr(item), _SHOWN)} is not a number")


def parse_time(_option: str, text: str) -> int | str:
    """Return a number as an int; loaders parse dates and ``30d`` themselves."""
    return int(text) if _INTEGER.fullmatch(text) else text


def parse_region(option: str, text: str) -> tuple[int, ...]:
    """Return the corners of a region of the graffiti wall."""
    if not _REGION.fullmatch(text):
        raise UsageError(f"{option} {text!r} is not a valid region", hint="Write it as X1,Y1,X2,Y2")
    return tuple(int(part) for part in text.split(","))


def parse_names(_option: str, text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",")]


def check_validator(item: Any) -> None:
    """Refuse an item that is neither an index nor a public key."""
    from beaconframes.endpoint.identifiers import normalize_validator

    normalize_validator(item)


def parse_numbers(option: str, texts: Any) -> list[int | str]:
    """Return numbers, ranges and words; errors of standard input have the number of the line."""
    if option == "--validators":
        return parse_list(option, texts, check_validator)
    check = check_number if option in ("--slots", "--periods") else check_word
    return parse_list(option, texts, check)


def parse_words(option: str, texts: Any) -> list[str]:
    """Return the items of a list as words."""
    return [str(item) for item in parse_numbers(option, texts)]
