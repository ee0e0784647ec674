"""Lists on the command line and on standard input: validators, slots, names."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from beaconframes.errors import UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

STANDARD_INPUT = "-"
_SHOWN = 60


def parse_list(
    option: str, texts: Iterable[str], check: Callable[[Any], object]
) -> list[int | str]:
    """Return all items of *texts*: numbers, ranges such as ``1-100``, and other words.

    ``-`` is standard input: items separated by commas or spaces on any number of lines, with
    comments after ``#``. *check* validates them; its errors get the line number.
    """
    items: list[int | str] = []
    for text in texts:
        if text == STANDARD_INPUT:
            for number, line in read_standard_input():
                try:
                    _parse_items(option, items, line, check)
                except UsageError as error:
                    raise UsageError(
                        f"line {number:,} of standard input: {error.message}", hint=error.hint
                    ) from None
        else:
            _parse_items(option, items, text, None)
    if not items:
        raise UsageError(f"{option} is empty", hint="Give at least one item")
    return items


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


def read_standard_input() -> Iterator[tuple[int, str]]:
    """Yield the lines of standard input with their numbers, without comments, one at a time."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise UsageError("standard input is closed", hint="Redirect a file or a pipe to it")
    for number, raw in enumerate(stream, 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"line {number:,} of standard input is not UTF-8") from None
        if text := line.partition("#")[0].strip():
            yield number, text


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
