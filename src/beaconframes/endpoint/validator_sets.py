"""Sets of validators in V2 requests: a list, a dashboard, an address, an entity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
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
    from collections.abc import Iterable

IDENTIFIERS = "validator_identifiers"


@dataclass(frozen=True)
class ValidatorSet:
    """A set of validators, as `validators`, `dashboard` and the other functions return it."""

    def to_json(self) -> dict[str, Any]:
        """Return the value of ``validator`` in the body of a request."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Identified(ValidatorSet):
    """Validators by index or public key."""

    identifiers: tuple[int | str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the list: indices as numbers, public keys as text."""
        return {IDENTIFIERS: list(self.identifiers)}


@dataclass(frozen=True)
class Dashboard(ValidatorSet):
    """The validators of a saved dashboard, or of one of its groups."""

    dashboard_id: int
    group_id: int | None = None


@dataclass(frozen=True)
class Withdrawal(ValidatorSet):
    """The validators with a withdrawal address, or with full withdrawal credentials."""

    withdrawal: str


@dataclass(frozen=True)
class DepositAddress(ValidatorSet):
    """The validators that received a deposit from an address."""

    deposit_address: str


@dataclass(frozen=True)
class Entity(ValidatorSet):
    """The validators that the service assigns to an entity, or to one of its sub-entities."""

    entity: str
    sub_entity: str | None = None


@dataclass(frozen=True)
class Entities(ValidatorSet):
    """The validators of an owner, of an operator, or of both."""

    owner: int | str | None = None
    operator: int | str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the owner and the operator, by id (a number) or by path (a text)."""
        entities = {"owner": self.owner, "operator": self.operator}
        return {
            "entities": {
                name: {"id" if isinstance(value, int) else "path": value}
                for name, value in entities.items()
                if value is not None
            }
        }


def validators(subjects: int | str | Iterable[int | str]) -> Identified:
    """Return a set of validators by index or public key: one or many, mixed. For every plan.

    Raises
    ------
    UsageError
        An item is not a validator.
    """
    texts = normalize_validators(subjects)
    return Identified(tuple(text if text.startswith("0x") else int(text) for text in texts))


def dashboard(id: int, group: int | None = None) -> Dashboard:  # noqa: A002 - the name in the API
    """Return the validators of your dashboard number *id*, or of one *group* of it.

    For every plan. Dashboards are created on the website of the service.
    """
    return Dashboard(
        check_natural(id, "dashboard"),
        None if group is None else check_natural(group, "dashboard group"),
    )


def withdrawal(credential: str) -> Withdrawal:
    """Return the validators with a withdrawal address, or with 32 bytes of credentials.

    For the larger plans only. The service refreshes the set once per epoch.
    """
    return Withdrawal(
        normalize_hex(
            credential, (ADDRESS_PATTERN, CREDENTIALS_PATTERN), "an address or credentials"
        )
    )


def deposit_address(address: str) -> DepositAddress:
    """Return the validators that received a deposit from *address*.

    For the larger plans only. The service refreshes the set once per epoch.
    """
    return DepositAddress(normalize_hex(address, (ADDRESS_PATTERN,), "an address of 40 hex digits"))


def entity(name: str, sub_entity: str | None = None) -> Entity:
    """Return the validators of an entity; its name is case-sensitive.

    For the larger plans only. The service refreshes the set once per day. It has announced
    that owners and operators replace entities (see `owner` and `operator`).
    """
    return Entity(
        check_text(name, "entity"),
        None if sub_entity is None else check_text(sub_entity, "sub_entity"),
    )


def owner(name: int | str, operator: int | str | None = None) -> Entities:
    """Return the validators of an owner and of the owners below it, or only those of *operator*.

    Each is an id (a number) or a path (a text such as ``"lido/csm"``). For the larger plans only.
    The service has not published how ids are written: every number is sent as an id.
    """
    return Entities(
        owner=check_id_or_path(name, "owner"),
        operator=None if operator is None else check_id_or_path(operator, "operator"),
    )


def operator(name: int | str) -> Entities:
    """Return the validators of an operator and of the operators below it.

    An id (a number) or a path (a text such as ``"lido/csm"``). For the larger plans only.
    """
    return Entities(operator=check_id_or_path(name, "operator"))


def check_id_or_path(value: int | str, argument: str) -> int | str:
    """Return the id or the path of an owner or operator, or raise UsageError."""
    is_id = hasattr(value, "__index__")
    return check_natural(value, argument) if is_id else check_text(value, argument)


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
