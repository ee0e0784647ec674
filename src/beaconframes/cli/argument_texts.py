"""Texts of arguments: times, regions, and lists of validators, slots or names."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beaconframes.errors import DatasetError, UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_REGION = re.compile(r"-?[0-9]{1,9}(?:,-?[0-9]{1,9}){3}", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
STANDARD_INPUT = "-"
FILE_OPTIONS = ("validators", "--validators")
"""Arguments and options whose lists may be files."""
SETS = ("dashboard", "withdrawal", "deposit-address", "entity", "sub-entity", "owner", "operator")
"""Kinds of sets of validators, which loaders of V2 take."""
_COMBINED = {"entity": "sub-entity", "owner": "operator"}
"""Sets of which the second selects a part."""
_WITH_IDS = ("dashboard", "owner", "operator")
"""Sets that may be numbers."""
_SHOWN = 60
_VALIDATORS = re.compile(r"[0-9,.\s-]+|(0x)?[0-9a-fA-F]{96}")
_FILE_NAME = re.compile(r"[/\\]|\.[A-Za-z]\w*$")
"""What only the name of a file has: a folder, or a suffix."""
_WORD = re.compile(r"[\w.@:/+-]{1,200}")
_SLOT = re.compile(r"latest|finalized|head|genesis|next|current|0x[0-9a-fA-F]{1,96}")
"""A block root, or a name of slots and periods."""


def parse_list(option: str, texts: Iterable[str]) -> list[int | str]:
    """Return all items of *texts*: numbers, ranges such as ``1-100``, and other words.

    ``-`` is standard input: items separated by commas or spaces on any number of lines, with
    comments after ``#``; errors have the number of the line. A list of validators may be the name
    of a file of `bf.validators` as well.
    """
    from beaconframes.endpoint.identifiers import (
        check_length,
        list_validators,
        parse_lines,
        parse_list_text,
    )
    from beaconframes.validator_files import read_validators

    items: list[int | str] = []
    for text in texts:
        has_validators = option.lower() in FILE_OPTIONS
        if text == STANDARD_INPUT:
            stream = getattr(sys.stdin, "buffer", None)
            if stream is None:
                raise UsageError("standard input is closed", hint="Redirect a file or a pipe to it")
            items += parse_lines(option, stream, "standard input", partial(check_item, option))
        elif has_validators and is_file(text):
            items += list_validators(read_validators(Path(text)))
        else:
            if has_validators:
                _check_word_of_validators(option, text)
            items += parse_list_text(text, option)
        check_length(option, items)
    if not items:
        raise UsageError(f"{option} is empty", hint="Give at least one item")
    return items


def check_item(option: str, item: int | str) -> None:
    """Refuse a validator that is none, and a word that no other list can have."""
    from beaconframes.endpoint.identifiers import normalize_validator

    if option.lower() in FILE_OPTIONS:
        normalize_validator(item)
        return
    words = _SLOT if option in ("--slots", "--periods") else _WORD
    if isinstance(item, str) and not words.fullmatch(item):
        raise UsageError(f"{visible(repr(item), _SHOWN)} is not valid in {option}")


def is_file(text: str) -> bool:
    """Return whether a text is the name of a file or folder; a list may be too long for one.

    Numbers, ranges and public keys are what they are, whatever files there are.
    """
    if not text.strip() or _VALIDATORS.fullmatch(text):
        return False
    try:
        return Path(text).exists()
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


def parse_words(option: str, texts: Sequence[str]) -> list[str]:
    """Return the items of a list as words."""
    return [str(item) for item in parse_list(option, texts)]


def parse_validators(option: str, texts: Sequence[str]) -> Any:
    """Return a list of validators, or the set of ``dashboard:7``, ``owner:x`` and others."""
    parts = [text.partition(":") for text in texts]
    sets = {kind: name for kind, colon, name in parts if colon and kind in SETS}
    if not sets:
        return parse_list(option, texts)
    if len(sets) < len(texts):
        raise UsageError(
            f"{option} has a set beside single validators, or two sets of one kind",
            hint="Use two calls: a request has one set",
        )
    return build_set(option, sets)


def build_set(option: str, sets: dict[str, str]) -> Any:
    """Return the set of validators with these names; two combined ones are one set."""
    from beaconframes import v2

    first, *rest = sorted(sets, key=SETS.index)
    if first == "sub-entity" or rest not in ([], [_COMBINED.get(first)]):
        raise UsageError(
            f"{option}: {' and '.join(sets)} cannot be combined",
            hint="Valid sets are dashboard:7, dashboard:7/2, withdrawal:0x..., "
            "deposit-address:0x..., entity:Name, entity:Name with sub-entity:Name, owner:path, "
            "operator:path, both of these",
        )
    function = getattr(v2, first.replace("-", "_"))
    names = sets[first].split("/", 1) if first == "dashboard" else [sets[k] for k in (first, *rest)]
    return function(*(map(parse_id, names) if first in _WITH_IDS else names))


def parse_id(text: str) -> int | str:
    """Return the id of an owner or operator as an int, and a path unchanged."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text
