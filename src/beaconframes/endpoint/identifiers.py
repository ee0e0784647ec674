"""Parsers of the numbers and validators in arguments: one or many, of any type."""

from __future__ import annotations

import re
from operator import index
from typing import TYPE_CHECKING, Any, TypeGuard

from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

PUBKEY = re.compile(r"(0[xX])?[0-9a-fA-F]{96}", re.ASCII)
NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
ADDRESS_PATTERN = re.compile(r"(0[xX])?[0-9a-fA-F]{40}", re.ASCII)
CREDENTIALS_PATTERN = re.compile(r"(0[xX])?0[012][0-9a-fA-F]{62}", re.ASCII)
_RANGE = re.compile(r"([0-9]{1,18})(?:-|\.\.)([0-9]{1,18})", re.ASCII)
_SEPARATOR = re.compile(r"[,\s]+")
# A comma at the end of a line is common in files.
_EMPTY_ITEM = re.compile(r"^\s*,|,\s*,")
MAX_ITEMS = 10_000_000
"""Largest number of items in a text or a range: a mistyped one must not fill the memory."""
LARGEST_INDEX = 2**31 - 2
LARGEST_NUMBER = 2**63 - 1
"""The service stores indices in 32 bits and silently drops larger ones."""

LONGEST_NUMBER = 18
"""Most digits of a number that fits into any column."""

UNUSED_NUMBER = "9" * LONGEST_NUMBER
"""A number that no validator, slot or day has."""

LONGEST_IN_A_PATH = 7_500
"""Most characters of identifiers in a URL: proxies accept URLs of 8 KiB."""

ADDRESS_HINT = (
    "For the validators of an address, use bf.load_deposit_origin, bf.load_withdrawal_credentials "
    "or bf.v2.withdrawal"
)
HINT = "A validator is an index such as 1435245, or a public key of 96 hex digits"


def is_pubkey(text: str) -> bool:
    """Return whether *text* is a 48-byte public key, with or without 0x."""
    return PUBKEY.fullmatch(text) is not None


def iterate_items(subject: Any, argument: str | None = None) -> Iterator[Any]:
    """Yield the items of *subject*, or *subject* itself if it is a single value.

    With the name of an *argument*, a text such as ``"1,2,5-9"`` is a list of items.
    """
    if type(subject).__name__ in ("DataFrame", "LazyFrame"):
        if argument in ("validators", "producers") and (validators := list_validators(subject)):
            yield from validators
            return
        raise UsageError(
            f"a {type(subject).__name__} is given instead of one of its columns",
            hint='Give the column, such as frame["validator_index"]',
        )
    if isinstance(subject, range) and argument:
        check_length(argument, subject)
    try:
        items = [subject] if isinstance(subject, str | bytes) else iter(subject)
    except TypeError:  # Also an array of numpy without a dimension.
        items = [subject]
    for item in items:
        if argument and isinstance(item, str) and ("," in item or _RANGE.fullmatch(item)):
            yield from parse_list_text(item, argument) or [item]
        else:
            yield item


def list_validators(frame: Any) -> list[Any]:
    """Return the validators of a frame's rows: the index, or else the public key."""
    from beaconframes.frames import list_column_names, to_polars

    keys = [name for name in ("validator_index", "pubkey") if name in list_column_names(frame)]
    if not keys:
        return []
    rows = to_polars(frame).select(keys).unique(maintain_order=True).iter_rows()
    return [next((key for key in row if key is not None), None) for row in rows]


def parse_lines(
    argument: str, stream: Iterable[bytes], name: str, check: Callable[[Any], object]
) -> list[int | str]:
    """Return the items of all lines of a stream; comments begin with ``#``.

    Errors, also those of *check*, name the line.
    """
    items: list[int | str] = []
    for number, raw in enumerate(stream, 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"line {number:,} of {name} is not UTF-8") from None
        if not (text := line.partition("#")[0].strip()):
            continue
        try:
            new = parse_list_text(text, argument)
            # Of numbers, the largest is enough: a range may have millions of them.
            for item in (item for item in new if isinstance(item, str)):
                check(item)
            check(max((item for item in new if isinstance(item, int)), default=0))
            items += new
            check_length(argument, items)
        except UsageError as error:
            raise UsageError(
                f"line {number:,} of {name}: {error.message}", hint=error.hint
            ) from None
    return items


def check_length(argument: str, items: Sequence[object]) -> None:
    """Refuse a list that would fill the memory."""
    if isinstance(items, range):  # The length of a very large one is an OverflowError.
        items = items[: MAX_ITEMS + 1]
    if len(items) > MAX_ITEMS:
        raise UsageError(
            f"{argument} has more than {MAX_ITEMS:,} items", hint="Split it into several calls"
        )


def parse_list_text(text: str, argument: str) -> list[int | str]:
    """Return the items of a text: numbers, ranges such as ``1-100`` or ``1..100``, and words."""
    items: list[int | str] = []
    if _EMPTY_ITEM.search(text):
        raise UsageError(
            f"{argument} has an empty item: {shorten(text)}",
            hint="Remove the comma, or add the missing item",
        )
    for word in _SEPARATOR.split(text):
        if not word:
            continue
        if ends := _RANGE.fullmatch(word):
            items += parse_range(argument, int(ends[1]), int(ends[2]))
        else:
            is_number = word.isascii() and word.isdigit() and len(word) <= LONGEST_NUMBER
            items.append(int(word) if is_number else word)
        check_length(argument, items)
    return items


def parse_range(argument: str, first: int, last: int) -> range:
    """Return all numbers of a range."""
    if last < first or last - first >= MAX_ITEMS:
        raise UsageError(
            f"{argument}: {first}-{last} is not a valid range",
            hint=f"Write the smaller number first; a range has at most {MAX_ITEMS:,} numbers",
        )
    return range(first, last + 1)


def check_not_missing(subject: Any, items: list[Any], argument: str) -> None:
    """Raise UsageError if the items of a *subject* have a missing value of pandas or polars.

    It explains other errors: a missing value turns a column of pandas into floats.
    """
    for item in items:
        is_nan = is_float(item) and item != item  # noqa: PLR0124 - NaN is not equal to itself
        is_missing = item is None or is_nan or type(item).__name__ in ("NAType", "NaTType")
        if is_missing and item is not subject:
            raise UsageError(
                f"{argument} has a missing value ({item})",
                hint='Remove it: column.dropna().astype("int64") in pandas, '
                "column.drop_nulls() in polars",
            )


def is_float(value: object) -> bool:
    """Return whether *value* is a floating-point number, numpy's included."""
    return type(value).__name__.startswith("float")


def check_word(value: Any, words: Collection[str], argument: str, *, hint: str = "") -> str:
    """Return *value*, one of *words*, or raise UsageError."""
    if not isinstance(value, str) or value not in words:
        known = ", ".join(map(repr, words))
        raise UsageError(f"{argument}={shorten(value)} is not one of {known}", hint=hint)
    return str(value)


def check_natural(value: Any, argument: str) -> int:
    """Return *value* as a number from 0 up, from any integer type but bool, or raise UsageError."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
        try:
            number = index(value)
        except TypeError:
            pass
        else:
            if number > LARGEST_NUMBER:
                raise UsageError(f"{argument} {shorten(value)} is too large")
            if number >= 0:
                return number
    raise UsageError(f"{argument} {shorten(value)} is not a whole number from 0 up")


def normalize_validators(subject: Any) -> list[str]:
    """Return validators as the texts to send, each once, in the order given.

    Takes an index, a public key (with or without ``0x``), a list, range or Series of them, mixed,
    or a text such as ``"1,2,5-9"``.
    """
    items = list(iterate_items(subject, "validators"))
    try:
        return list(dict.fromkeys(map(normalize_validator, items)))
    except UsageError:
        check_not_missing(subject, items, "validators")
        raise


def normalize_validator(item: Any) -> str:
    """Return one validator as the text to send, or raise UsageError."""
    if type(item) is int and 0 <= item <= LARGEST_INDEX:
        return str(item)  # As in nearly all long lists.
    if isinstance(item, str):
        if is_pubkey(item):
            return f"0x{item.lower().removeprefix('0x')}"
        if ADDRESS_PATTERN.fullmatch(item) or CREDENTIALS_PATTERN.fullmatch(item):
            raise UsageError(f"{item} is an address, not a validator", hint=ADDRESS_HINT)
        if not NUMBER.fullmatch(item):
            raise UsageError(f"{shorten(item)} is not a validator", hint=HINT)
        number = int(item)
    else:
        try:
            number = check_natural(item, "validator")
        except UsageError:
            if is_float(item):
                raise UsageError(
                    f"{item} is a floating-point number, not a validator",
                    hint='Convert the column: column.astype("int64")',
                ) from None
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


def is_natural(value: Any) -> TypeGuard[int]:
    """Return whether a JSON value is a whole number from 0 up that fits into a column."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def drop_invalid_numbers(fields: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return *fields* without those of the *names* that are not numbers."""
    return {
        name: text
        for name, text in fields.items()
        if name not in names or parse_number(text) is not None
    }


def parse_numbers(subject: Any, argument: str, tags: tuple[str, ...]) -> list[int | str]:
    """Return numbers from 0 up, or words of *tags*, each once, in the order given."""

    def parse_item(item: Any) -> int | str:
        if not isinstance(item, str):
            return check_natural(item, argument)
        if item in tags:
            return item
        if NUMBER.fullmatch(item):
            return int(item)
        words = ", ".join(map(repr, tags))
        raise UsageError(
            f"{argument}={shorten(item)} is not a number" + (f" or one of {words}" if tags else "")
        )

    items = list(iterate_items(subject, argument))
    try:
        return list(dict.fromkeys(map(parse_item, items)))
    except UsageError:
        check_not_missing(subject, items, argument)
        raise


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
