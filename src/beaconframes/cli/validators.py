"""Validators on the command line: by index or key, or by a set that the service keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.cli.subjects import read
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

SETS = ("dashboard", "withdrawal", "deposit-address", "entity", "sub-entity", "owner", "operator")


def of_generation_2(argument: str, texts: Sequence[str]) -> Any:
    """Return validators one by one, or as the set that ``dashboard:7`` or ``owner:x`` names."""
    from beaconframes.endpoint.identifiers import identifier

    named: dict[str, str] = {}
    plain = []
    for text in texts:
        kind, colon, value = text.partition(":")
        if not colon or kind not in SETS:
            plain.append(text)
        elif kind in named:
            raise UsageError(f"{argument} names two of {kind}", hint="A request names one set")
        else:
            named[kind] = value
    if not named:
        return read(argument, plain, identifier)
    if plain:
        raise UsageError(
            f"{argument} names single validators beside a set", hint="Ask in two calls"
        )
    return the_set(argument, named)


def the_set(argument: str, named: dict[str, str]) -> Any:
    """Return the set of validators that has these names."""
    from beaconframes import v2

    match sorted(named):
        case ["dashboard"]:
            number, slash, group = named["dashboard"].partition("/")
            return v2.dashboard(whole(number), whole(group) if slash else None)
        case ["withdrawal"]:
            return v2.withdrawal(named["withdrawal"])
        case ["deposit-address"]:
            return v2.deposit_address(named["deposit-address"])
        case ["entity"] | ["entity", "sub-entity"]:
            return v2.entity(named["entity"], named.get("sub-entity"))
        case ["operator"]:
            return v2.operator(number_or_path(named["operator"]))
        case ["owner"] | ["operator", "owner"]:
            operator = named.get("operator")
            return v2.owner(
                number_or_path(named["owner"]),
                None if operator is None else number_or_path(operator),
            )
    raise UsageError(
        f"{argument}: {' and '.join(named)} do not go together",
        hint="A set is dashboard:7, dashboard:7/2, withdrawal:0x..., deposit-address:0x..., "
        "entity:Name with sub-entity:Name or without, owner:path with operator:path or without",
    )


def whole(text: str) -> int:
    """Return a whole number, or refuse the text."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def number_or_path(text: str) -> int | str:
    """Return an owner or operator: a number is its id, any other text its path."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text
