"""Which validators a set is: what the local explorer makes of the ways to name one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import polars as pl

from beaconframes.endpoint.identifiers import is_pubkey
from beaconframes.endpoint.parameter import ObjectNotFound, RequestRefused
from beaconframes.endpoint.validator_sets import CREDENTIAL, NAMED, WALLET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.endpoint.parameter import View

IN_A_DASHBOARD = 100
GROUPS = 4


def members_of(member: Any, view: View) -> list[int]:
    """Return the indices of the validators that the ``validator`` of a request names."""
    if not isinstance(member, dict):
        raise RequestRefused("validator must be an object")
    ways = set(member) & set(WAYS)
    if len(ways) != 1 or set(member) - ways - COMPANIONS:
        raise RequestRefused("validator must have exactly one selector")
    return sorted(set(WAYS[ways.pop()](member, view)))


def identified(member: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators that are named one by one; those that do not exist are left out."""
    items = member[NAMED]
    if not isinstance(items, list) or not items:
        raise RequestRefused(f"{NAMED} must be a list of at least one")
    found = []
    for item in items:
        if isinstance(item, str) and is_pubkey(item):
            index = view.index_of(f"0x{item.lower().removeprefix('0x')}")
            found += [] if index is None else [index]
        elif is_natural(item):
            found.append(item)
        else:
            raise RequestRefused(f"{NAMED} has an entry that is neither index nor public key")
    return found


def on_dashboard(member: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators of a dashboard: number 1 has the first hundred, in four groups."""
    number, group = member["dashboard_id"], member.get("group_id")
    if not is_natural(number) or not (group is None or is_natural(group)):
        raise RequestRefused("dashboard_id and group_id must be whole numbers from 0 up")
    first = (number - 1) * IN_A_DASHBOARD
    on_it = pl.col("validator_index").is_between(first, first + IN_A_DASHBOARD - 1)
    found = indices(view.scan("validators").filter(on_it))
    if not found:
        raise ObjectNotFound(f"there is no dashboard {number}")
    return [index for index in found if group is None or index % GROUPS == group]


def withdrawing(member: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators with an address or some bytes in their withdrawal credentials."""
    text = member["withdrawal"]
    if not isinstance(text, str) or not (WALLET.fullmatch(text) or CREDENTIAL.fullmatch(text)):
        raise RequestRefused("withdrawal must be an address or 32 bytes of credentials")
    digits = text.lower().removeprefix("0x")
    credentials = pl.col("withdrawal_credentials")
    same = credentials == f"0x{digits}"
    if len(digits) == 40:
        # Credentials of the kinds 1 and 2 end with the address, and begin with a kind and zeros.
        same = credentials.is_in([f"0x{kind}{'0' * 22}{digits}" for kind in ("01", "02")])
    return indices(view.scan("validators").filter(same))


def deposited(member: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators that an address deposited for."""
    text = member["deposit_address"]
    if not isinstance(text, str) or not WALLET.fullmatch(text):
        raise RequestRefused("deposit_address must be an address")
    address = f"0x{text.lower().removeprefix('0x')}"
    return indices(view.scan("deposit_origin").filter(pl.col("from_address") == address))


def of_entity(member: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators that have an entity's name; its one sub-entity is called the same."""
    name, narrower = member["entity"], member.get("sub_entity")
    if not isinstance(name, str) or not (narrower is None or isinstance(narrower, str)):
        raise RequestRefused("entity and sub_entity must be texts")
    return named(name, view) if name and narrower in (None, name) else []


def of_entities(member: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators of an owner by path; here everybody operates their own."""
    both = member["entities"]
    if not isinstance(both, dict) or not both or set(both) - {"owner", "operator"}:
        raise RequestRefused("entities must have an owner, an operator, or both")
    paths = [who.get("path") if isinstance(who, dict) else None for who in both.values()]
    sets = [set(named(path, view)) if isinstance(path, str) and path else set() for path in paths]
    return sorted(set.intersection(*sets))


WAYS: Mapping[str, Callable[[Mapping[str, Any], View], list[int]]] = {
    NAMED: identified,
    "dashboard_id": on_dashboard,
    "withdrawal": withdrawing,
    "deposit_address": deposited,
    "entity": of_entity,
    "entities": of_entities,
}
"""The ways to name validators."""

COMPANIONS = {"group_id", "sub_entity"}
PREMIUM = {"withdrawal", "deposit_address", "entity", "entities"}
"""Ways that only the larger plans have."""


def named(name: str, view: View) -> list[int]:
    """Return the validators that somebody gave a name."""
    return indices(view.scan("validators").filter(pl.col("name") == name))


def indices(rows: pl.LazyFrame) -> list[int]:
    """Return the indices of the validators in *rows*."""
    return rows.select("validator_index").collect().to_series().drop_nulls().to_list()


def is_natural(value: Any) -> TypeGuard[int]:
    """Tell whether a JSON value is a whole number from 0 up that a column can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
