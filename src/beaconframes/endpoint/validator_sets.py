"""Sets of validators in V2 requests: a list, a dashboard, an address, an entity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from beaconframes.endpoint.identifiers import (
    ADDRESS_PATTERN,
    CREDENTIALS_PATTERN,
    PUBKEY,
    check_natural,
    normalize_validators,
)
from beaconframes.endpoint.parameter import NATURAL, JsonSchema, describe_object
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

IDENTIFIERS = "validator_identifiers"


@dataclass(frozen=True)
class ValidatorSet:
    """A set of validators, as `validators`, `dashboard` and the other functions return it.

    ``fields`` are the value of ``validator`` in the body of a request.
    """

    # A dictionary has no hash; the hash of a set only has to be that of its equals.
    fields: Mapping[str, Any] = field(hash=False)


def validators(subjects: int | str | Iterable[int | str]) -> ValidatorSet:
    """Return a set of validators by index or public key: one or many, mixed. For every plan.

    Raises
    ------
    UsageError
        An item is not a validator.
    """
    texts = normalize_validators(subjects)
    items = [text if text.startswith("0x") else int(text) for text in texts]
    return ValidatorSet({IDENTIFIERS: items})


def dashboard(id: int, group: int | None = None) -> ValidatorSet:  # noqa: A002 - as in the API
    """Return the validators of your dashboard number *id*, or of one *group* of it.

    For every plan. Dashboards are created on the website of the service.
    """
    fields = {"dashboard_id": check_natural(id, "dashboard")}
    if group is not None:
        fields["group_id"] = check_natural(group, "dashboard group")
    return ValidatorSet(fields)


def withdrawal(credential: str) -> ValidatorSet:
    """Return the validators with a withdrawal address, or with 32 bytes of credentials.

    For the larger plans only. The service refreshes the set once per epoch.
    """
    patterns = (ADDRESS_PATTERN, CREDENTIALS_PATTERN)
    text = normalize_hex(credential, patterns, "an address or credentials")
    return ValidatorSet({"withdrawal": text})


def deposit_address(address: str) -> ValidatorSet:
    """Return the validators that received a deposit from *address*.

    For the larger plans only. The service refreshes the set once per epoch.
    """
    text = normalize_hex(address, (ADDRESS_PATTERN,), "an address of 40 hex digits")
    return ValidatorSet({"deposit_address": text})


def entity(name: str, sub_entity: str | None = None) -> ValidatorSet:
    """Return the validators of an entity; its name is case-sensitive.

    For the larger plans only. The service refreshes the set once per day. It has announced
    that owners and operators replace entities (see `owner` and `operator`).
    """
    fields = {"entity": check_text(name, "entity")}
    if sub_entity is not None:
        fields["sub_entity"] = check_text(sub_entity, "sub_entity")
    return ValidatorSet(fields)


def owner(name: int | str, operator: int | str | None = None) -> ValidatorSet:
    """Return the validators of an owner and of the owners below it, or only those of *operator*.

    Each is an id (a number) or a path (a text such as ``"lido/csm"``). For the larger plans only.
    The service has not published how ids are written: every number is sent as an id.
    """
    parties = {"owner": name} if operator is None else {"owner": name, "operator": operator}
    return ValidatorSet({"entities": {arg: build_party(arg, parties[arg]) for arg in parties}})


def operator(name: int | str) -> ValidatorSet:
    """Return the validators of an operator and of the operators below it.

    An id (a number) or a path (a text such as ``"lido/csm"``). For the larger plans only.
    """
    return ValidatorSet({"entities": {"operator": build_party("operator", name)}})


def build_party(argument: str, value: int | str) -> dict[str, int | str]:
    """Return an owner or operator in the form of a request, or raise UsageError."""
    is_id = hasattr(value, "__index__")
    return (
        {"id": check_natural(value, argument)} if is_id else {"path": check_text(value, argument)}
    )


def normalize_hex(text: Any, patterns: tuple[re.Pattern[str], ...], expected: str) -> str:
    """Return *text* in lower case with 0x in front, if it matches one of the *patterns*."""
    if not isinstance(text, str) or not any(pattern.fullmatch(text) for pattern in patterns):
        raise UsageError(f"{shorten(text)} is not {expected}")
    return f"0x{text.lower().removeprefix('0x')}"


def check_text(text: Any, argument: str) -> str:
    """Return *text*, or raise UsageError if it is blank or not a text."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{argument}={shorten(text)} is not a name")
    return str(text)


PARTY: JsonSchema = {
    "oneOf": [
        describe_object({"id": NATURAL}, "id"),
        describe_object({"path": {"type": "string", "minLength": 1}}, "path"),
    ]
}
"""The JSON Schema of an owner or operator."""

TEXT: JsonSchema = {"type": "string"}
IDENTIFIER: JsonSchema = {"anyOf": [NATURAL, {"type": "string", "pattern": f"^{PUBKEY.pattern}$"}]}
ADDRESS: JsonSchema = {"type": "string", "pattern": f"^{ADDRESS_PATTERN.pattern}$"}
CREDENTIALS: JsonSchema = {
    "type": "string",
    "pattern": f"^({ADDRESS_PATTERN.pattern}|{CREDENTIALS_PATTERN.pattern})$",
}
SET_FORMS: list[JsonSchema] = [
    describe_object(
        {IDENTIFIERS: {"type": "array", "items": IDENTIFIER, "minItems": 1, "maxItems": 100}},
        IDENTIFIERS,
    ),
    describe_object(
        {"dashboard_id": NATURAL, "group_id": {"type": ["integer", "null"], "minimum": 0}},
        "dashboard_id",
    ),
    describe_object({"withdrawal": CREDENTIALS}, "withdrawal"),
    describe_object({"deposit_address": ADDRESS}, "deposit_address"),
    describe_object({"entity": TEXT, "sub_entity": TEXT}, "entity"),
    describe_object({"entities": describe_object({"owner": PARTY, "operator": PARTY})}, "entities"),
]
"""The JSON Schema of each kind of set."""


def describe_sets(*, nullable: bool) -> JsonSchema:
    """Return the JSON Schema of a set of validators."""
    return {"oneOf": [*SET_FORMS, {"type": "null"}] if nullable else SET_FORMS}


PREMIUM_FIELDS = {"withdrawal", "deposit_address", "entity", "entities"}
"""Kinds of sets that only the larger plans include."""
