"""Validators, slots, names: what the command line and standard input name one by one."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from beaconframes.errors import UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

STANDARD_INPUT = "-"
MOST = 10_000_000
"""What one list may hold: a range that is mistyped must not fill the memory."""

_RANGE = re.compile(r"([0-9]{1,18})(?:-|\.\.)([0-9]{1,18})", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
_SPLIT = re.compile(r"[,\s]+")
_SHOWN = 60


def read(argument: str, texts: Iterable[str], check: Callable[[Any], object]) -> list[int | str]:
    """Return all things that *texts* name: numbers, ranges such as ``1-100``, anything else.

    ``-`` stands for standard input: things with commas or spaces between, on any number of lines,
    with comments from ``#`` on. *check* refuses what is none; there, by the number of the line.
    """
    found: list[int | str] = []
    for text in texts:
        if text == STANDARD_INPUT:
            for number, line in numbered():
                try:
                    add(argument, found, line, check)
                except UsageError as error:
                    raise UsageError(
                        f"line {number:,} of standard input: {error.message}", hint=error.hint
                    ) from None
        else:
            add(argument, found, text, None)
    if not found:
        raise UsageError(f"{argument} names nothing", hint="Give one at least")
    return found


def add(
    argument: str, found: list[int | str], text: str, check: Callable[[Any], object] | None
) -> None:
    """Add what one line or one word of the command line names."""
    for item in filter(None, _SPLIT.split(text)):
        ends = _RANGE.fullmatch(item)
        new = span(argument, int(ends[1]), int(ends[2])) if ends else (single(item),)
        if check is not None:
            check(new[-1])
        found.extend(new)
        if len(found) > MOST:
            raise UsageError(f"{argument} names more than {MOST:,}", hint="Ask in several calls")


def span(argument: str, first: int, last: int) -> Sequence[int]:
    """Return all numbers of a range."""
    if last < first or last - first >= MOST:
        raise UsageError(
            f"{argument}: {first}-{last} is no range",
            hint=f"It goes from the smaller to the larger, {MOST:,} at most",
        )
    return range(first, last + 1)


def single(item: str) -> int | str:
    """Return a number as one, anything else as it is."""
    return int(item) if _NUMBER.fullmatch(item) else item


def numbered() -> Iterator[tuple[int, str]]:
    """Yield the lines of standard input with their numbers, without comments, one at a time."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise UsageError("standard input is closed", hint="Pipe or redirect something into it")
    for number, raw in enumerate(stream, 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"line {number:,} of standard input is not UTF-8") from None
        if text := line.partition("#")[0].strip():
            yield number, text


def a_word(item: Any) -> None:
    """Refuse what is neither a number, nor a word, nor hexadecimal digits."""
    if not isinstance(item, int) and not re.fullmatch(r"[\w.@:/+-]{1,200}", item):
        raise UsageError(f"{visible(repr(item), _SHOWN)} makes no sense")


def a_number(item: Any) -> None:
    """Refuse what is no number, no root and none of the words for one."""
    words = ("latest", "finalized", "head", "genesis", "next", "current")
    if (
        not isinstance(item, int)
        and item not in words
        and not re.fullmatch(r"0x[0-9a-fA-F]{1,96}", item)
    ):
        raise UsageError(f"{visible(repr(item), _SHOWN)} is no number")
