"""The argument --validators of V2: indices and public keys, or one set of validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.cli.argument_texts import SETS, parse_list
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


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
