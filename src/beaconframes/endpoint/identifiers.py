"""Parsers of the numbers and validators in arguments: one or many, of any type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import index
from typing import Any

from beaconframes.errors import UsageError
from beaconframes.text import shorten

PUBKEY = re.compile(r"(0[xX])?[0-9a-fA-F]{96}", re.ASCII)
NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
LARGEST_INDEX = 2**31 - 2
"""The service stores indices in 32 bits and silently drops larger ones."""

LONGEST_NUMBER = 18
"""Most digits of a number that fits into any column."""

HINT = "A validator is an index such as 1435245, or a public key of 96 hex digits"


def is_pubkey(text: str) -> bool:
    """Return whether *text* is a 48-byte public key, with or without 0x."""
    return PUBKEY.fullmatch(text) is not None


def iterate_items(subject: Any) -> Iterator[Any]:
    """Yield the items of *subject*, or *subject* itself if it is a single value."""
    if isinstance(subject, str | bytes) or not isinstance(subject, Iterable):
        yield subject
    else:
        yield from subject


def check_natural(value: Any, argument: str) -> int:
    """Return *value* as a number from 0 up, from any integer type but bool, or raise UsageError."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
        try:
            number = index(value)
        except TypeError:
            pass
        else:
            if number >= 0:
                return number
    raise UsageError(f"{argument} {shorten(value)} is not a whole number from 0 up")


def normalise_validators(subject: Any) -> list[str]:
    """Return validators as the texts to send, each once, in the order given.

    Takes an index, a public key (with or without ``0x``), a list, range or Series of them, mixed.
    """
    return list(dict.fromkeys(normalise_validator(item) for item in iterate_items(subject)))


def normalise_validator(item: Any) -> str:
    """Return one validator as the text to send, or raise UsageError."""
    if isinstance(item, str):
        if is_pubkey(item):
            return f"0x{item.lower().removeprefix('0x')}"
        if not NUMBER.fullmatch(item):
            raise UsageError(f"{shorten(item)} is not a validator", hint=HINT)
        number = int(item)
    else:
        try:
            number = check_natural(item, "validator")
        except UsageError:
            raise UsageError(f"{shorten(item)} is not a validator", hint=HINT) from None
    if number > LARGEST_INDEX:
        raise UsageError(f"{shorten(item)} is too large for a validator index", hint=HINT)
    return str(number)


def parse_number(text: str) -> int | None:
    """Return the number in a *text* of a request; None if it is not a number.

    A number too large for a column becomes the largest one: no row has it either way.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= LONGEST_NUMBER else 10**LONGEST_NUMBER


def parse_numbers(subject: Any, argument: str, tags: tuple[str, ...]) -> list[int | str]:
    """Return numbers from 0 up, or words of *tags*, each once, in the order given."""
    numbers: dict[int | str, None] = {}
    for item in iterate_items(subject):
        if isinstance(item, str) and item in tags:
            numbers[item] = None
        elif isinstance(item, str) and NUMBER.fullmatch(item):
            numbers[int(item)] = None
        elif isinstance(item, str):
            words = ", ".join(map(repr, tags))
            raise UsageError(
                f"{argument}={shorten(item)} is not a number"
                + (f" or one of {words}" if tags else "")
            )
        else:
            numbers[check_natural(item, argument)] = None
    return list(numbers)


def split_into_batches(items: list[str], at_most: int, longest: int | None) -> Iterator[list[str]]:
    """Yield *items* in batches of *at_most*, none longer than *longest* characters when joined."""
    batch: list[str] = []
    length = 0
    for item in items:
        length += len(item) + 1
        if batch and (len(batch) == at_most or (longest is not None and length > longest)):
            yield batch
            batch, length = [], len(item) + 1
        batch.append(item)
    if batch:
        yield batch
