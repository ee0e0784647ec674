"""Sets of validators, in each way that generation 2 lets one name them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beaconframes.endpoint.identifiers import check_natural, normalise_validators
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMED = "validator_identifiers"
WALLET = re.compile(r"(0[xX])?[0-9a-fA-F]{40}", re.ASCII)
CREDENTIAL = re.compile(r"(0[xX])?0[012][0-9a-fA-F]{62}", re.ASCII)


@dataclass(frozen=True)
class ValidatorSet:
    """Validators as a request names them; made by `validators`, `dashboard` and their like."""

    def member(self) -> dict[str, Any]:
        """Return what stands under ``validator`` in the body of a request."""
        raise NotImplementedError  # pragma: no cover


@dataclass(frozen=True)
class Identified(ValidatorSet):
    """Validators by index or public key."""

    identifiers: tuple[int | str, ...]

    def member(self) -> dict[str, Any]:
        """Return indices as numbers and keys as text."""
        return {NAMED: list(self.identifiers)}


@dataclass(frozen=True)
class Dashboard(ValidatorSet):
    """The validators of a saved dashboard, or of one group of it."""

    dashboard_id: int
    group_id: int | None = None

    def member(self) -> dict[str, Any]:
        """Return the dashboard, and the group if there is one."""
        group = {} if self.group_id is None else {"group_id": self.group_id}
        return {"dashboard_id": self.dashboard_id, **group}


@dataclass(frozen=True)
class Withdrawal(ValidatorSet):
    """The validators that withdraw to an address, or by some credentials."""

    withdrawal: str

    def member(self) -> dict[str, Any]:
        """Return the address or the credentials."""
        return {"withdrawal": self.withdrawal}


@dataclass(frozen=True)
class DepositAddress(ValidatorSet):
    """The validators that an address deposited for."""

    deposit_address: str

    def member(self) -> dict[str, Any]:
        """Return the address."""
        return {"deposit_address": self.deposit_address}


@dataclass(frozen=True)
class Entity(ValidatorSet):
    """The validators that are taken for somebody's."""

    entity: str
    sub_entity: str | None = None

    def member(self) -> dict[str, Any]:
        """Return the entity, and what narrows it."""
        narrower = {} if self.sub_entity is None else {"sub_entity": self.sub_entity}
        return {"entity": self.entity, **narrower}


@dataclass(frozen=True)
class Entities(ValidatorSet):
    """The validators of an owner, of an operator, or of both at once."""

    owner: int | str | None = None
    operator: int | str | None = None

    def member(self) -> dict[str, Any]:
        """Return each by its id, when that is a number, or else by its path."""
        given = {"owner": self.owner, "operator": self.operator}
        return {
            "entities": {
                name: {"id" if isinstance(value, int) else "path": value}
                for name, value in given.items()
                if value is not None
            }
        }


def validators(subjects: int | str | Iterable[int | str]) -> Identified:
    """Name validators by index or public key: one or many, mixed. For every plan.

    Raises
    ------
    UsageError
        Something among them is no validator.
    """
    named = normalise_validators(subjects)
    return Identified(tuple(item if item.startswith("0x") else int(item) for item in named))


def dashboard(id: int, group: int | None = None) -> Dashboard:  # noqa: A002 - its name there
    """Name the validators of your dashboard number *id*, or of one *group* of it.

    For every plan; the dashboard is made on the service's own pages.
    """
    return Dashboard(
        check_natural(id, "dashboard"),
        None if group is None else check_natural(group, "dashboard group"),
    )


def withdrawal(credential: str) -> Withdrawal:
    """Name the validators that withdraw to an address, or by 32 bytes of credentials.

    For the larger plans only. The service refreshes the set once per epoch.
    """
    return Withdrawal(hexadecimal(credential, (WALLET, CREDENTIAL), "an address or credentials"))


def deposit_address(address: str) -> DepositAddress:
    """Name the validators that *address* deposited for.

    For the larger plans only. The service refreshes the set once per epoch.
    """
    return DepositAddress(hexadecimal(address, (WALLET,), "an address of 40 hex digits"))


def entity(name: str, sub_entity: str | None = None) -> Entity:
    """Name the validators of an entity; upper and lower case matter.

    For the larger plans only. The service refreshes the set once per day, and has announced that
    owners and operators replace it (see `owner` and `operator`).
    """
    return Entity(
        worded(name, "entity"), None if sub_entity is None else worded(sub_entity, "sub_entity")
    )


def owner(name: int | str, operator: int | str | None = None) -> Entities:
    """Name the validators of an owner and of the owners below it; or those that *operator* runs.

    Each is an id (a number) or a path (a text such as ``"lido/csm"``). For the larger plans only.
    The service has not published how ids are written: every number is sent as an id.
    """
    return Entities(
        owner=party(name, "owner"),
        operator=None if operator is None else party(operator, "operator"),
    )


def operator(name: int | str) -> Entities:
    """Name the validators that an operator runs, and the operators below it.

    An id (a number) or a path (a text such as ``"lido/csm"``). For the larger plans only.
    """
    return Entities(operator=party(name, "operator"))


def party(value: int | str, what: str) -> int | str:
    """Return the id or the path of an owner or operator, or refuse it."""
    return check_natural(value, what) if isinstance(value, int) else worded(value, what)


def hexadecimal(text: Any, patterns: tuple[re.Pattern[str], ...], what: str) -> str:
    """Return *text* in lower case with 0x in front, if it is one of the *patterns*."""
    if not isinstance(text, str) or not any(pattern.fullmatch(text) for pattern in patterns):
        raise UsageError(f"{shorten(text)} is not {what}")
    return f"0x{text.lower().removeprefix('0x')}"


def worded(text: Any, what: str) -> str:
    """Return *text*, which must say something."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{what}={shorten(text)} is no name")
    return text
