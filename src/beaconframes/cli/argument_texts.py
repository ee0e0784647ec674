"""Texts of arguments: times, regions, and lists of validators, slots or names."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beaconframes.errors import DatasetError, UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_REGION = re.compile(r"-?[0-9]{1,9}(?:,-?[0-9]{1,9}){3}", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
STANDARD_INPUT = "-"
FILE_OPTIONS = ("validators", "--validators")
"""Arguments and options whose lists may be files."""
SETS = ("dashboard", "withdrawal", "deposit-address", "entity", "sub-entity", "owner", "operator")
"""Kinds of sets of validators, which loaders of V2 take."""
_SHOWN = 60
_VALIDATORS = re.compile(r"[0-9,.\s-]+|(0x)?[0-9a-fA-F]{96}")
_FILE_NAME = re.compile(r"[/\\]|\.[A-Za-z]\w*$")
"""What only the name of a file has: a folder, or a suffix."""


def parse_list(
    option: str,
    texts: Iterable[str],
    check: Callable[[Any], object],
) -> list[int | str]:
    """Return all items of *texts*: numbers, ranges such as ``1-100``, and other words.

    ``-`` is standard input: items separated by commas or spaces on any number of lines, with
    comments after ``#``. A list of validators may be the name of a file of `bf.validators` as
    well. *check* validates the items; its errors get the line number.
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
        if text == STANDARD_INPUT:
            stream = getattr(sys.stdin, "buffer", None)
            if stream is None:
                raise UsageError("standard input is closed", hint="Redirect a file or a pipe to it")
            items += parse_lines(option, stream, "standard input", check)
        elif option.lower() in FILE_OPTIONS and is_file(text):
            items += list_validators(read_validators(Path(text)))
        else:
            if option.lower() in FILE_OPTIONS:
                _check_word_of_validators(option, text)
            items += parse_list_text(text, option)
        check_length(option, items)
    if not items:
        raise UsageError(f"{option} is empty", hint="Give at least one item")
    return items


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


def parse_validators(option: str, texts: Sequence[str]) -> Any:
    """Return a list of validators, or the set of ``dashboard:7``, ``owner:x`` and others."""
    from beaconframes.endpoint.identifiers import normalize_validator

    sets: dict[str, str] = {}
    single = []
    for text in texts:
        kind, colon, value = text.partition(":")
        if not colon or kind not in SETS:
            single.append(text)
        elif kind in sets:
            raise UsageError(f"{option} has two sets of {kind}", hint="A request has one set")
        else:
            sets[kind] = value
    if not sets:
        return parse_list(option, single, normalize_validator)
    if single:
        raise UsageError(f"{option} has both single validators and a set", hint="Use two calls")
    return build_set(option, sets)


def build_set(option: str, names: dict[str, str]) -> Any:
    """Return the set of validators with these names."""
    from beaconframes import v2

    match sorted(names):
        case ["dashboard"]:
            number, slash, group = names["dashboard"].partition("/")
            return v2.dashboard(parse_integer(number), parse_integer(group) if slash else None)
        case ["withdrawal"]:
            return v2.withdrawal(names["withdrawal"])
        case ["deposit-address"]:
            return v2.deposit_address(names["deposit-address"])
        case ["entity"] | ["entity", "sub-entity"]:
            return v2.entity(names["entity"], names.get("sub-entity"))
        case ["operator"]:
            return v2.operator(parse_id(names["operator"]))
        case ["owner"] | ["operator", "owner"]:
            operator = names.get("operator")
            return v2.owner(
                parse_id(names["owner"]), None if operator is None else parse_id(operator)
            )
    raise UsageError(
        f"{option}: {' and '.join(names)} cannot be combined",
        hint="Valid sets are dashboard:7, dashboard:7/2, withdrawal:0x..., deposit-address:0x..., "
        "entity:Name, entity:Name with sub-entity:Name, owner:path, operator:path, both of these",
    )


def parse_integer(text: str) -> int:
    """Return an integer of 0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"{text!r} is not an integer of 0 or more")
    return int(text)


def parse_id(text: str) -> int | str:
    """Return the id of an owner or operator as an int, and a path unchanged."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text
