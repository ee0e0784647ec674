"""The members of a set of validators, as the local explorer resolves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint import ObjectNotFound, RequestRefused
from beaconframes.endpoint.identifiers import (
    ADDRESS_PATTERN,
    CREDENTIALS_PATTERN,
    is_natural,
    is_pubkey,
)
from beaconframes.endpoint.validator_sets import IDENTIFIERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.derive.chain_tables import View

DASHBOARD_SIZE = 100
GROUP_COUNT = 4


def resolve_members(validator_set: Any, view: View) -> list[int]:
    """Return the indices of the validators in the ``validator`` field of a request."""
    if not isinstance(validator_set, dict):
        raise RequestRefused("validator must be an object")
    kinds = set(validator_set) & set(RESOLVERS)
    if len(kinds) != 1 or set(validator_set) - kinds - OPTIONAL_FIELDS:
        raise RequestRefused("validator must have exactly one kind of set")
    return sorted(set(RESOLVERS[kinds.pop()](validator_set, view)))


def resolve_identifiers(validator_set: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators of a list of indices and public keys, without unknown keys."""
    items = validator_set[IDENTIFIERS]
    if not isinstance(items, list) or not items:
        raise RequestRefused(f"{IDENTIFIERS} must be a list of at least one")
    members = []
    for item in items:
        if is_natural(item):
            members.append(item)
        elif isinstance(item, str) and is_pubkey(item):
            index = view.indices.get(f"0x{item.lower().removeprefix('0x')}")
            members += [] if index is None else [index]
        else:
            raise RequestRefused(f"{IDENTIFIERS} has an entry that is neither index nor public key")
    return members


def resolve_dashboard(validator_set: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators of a dashboard: number 1 has the first hundred, in four groups."""
    number, group = validator_set["dashboard_id"], validator_set.get("group_id")
    if not is_natural(number) or not (group is None or is_natural(group)):
        raise RequestRefused("dashboard_id and group_id must be whole numbers from 0 up")
    first = (number - 1) * DASHBOARD_SIZE
    in_dashboard = pl.col("validator_index").is_between(first, first + DASHBOARD_SIZE - 1)
    members = collect_indices(view.scan("validators").filter(in_dashboard))
    if not members:
        raise ObjectNotFound(f"dashboard {number} does not exist")
    return [index for index in members if group is None or index % GROUP_COUNT == group]


def resolve_withdrawal(validator_set: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators with a withdrawal address, or with full withdrawal credentials."""
    text = validator_set["withdrawal"]
    if not isinstance(text, str) or not (
        ADDRESS_PATTERN.fullmatch(text) or CREDENTIALS_PATTERN.fullmatch(text)
    ):
        raise RequestRefused("withdrawal must be an address or 32 bytes of credentials")
    credentials = list_credentials(f"0x{text.lower().removeprefix('0x')}")
    rows = view.scan("validators").filter(pl.col("withdrawal_credentials").is_in(credentials))
    return collect_indices(rows)


def list_credentials(text: str) -> list[str]:
    """Return the credentials that pay to an address, or the one in *text*."""
    if len(text) > len("0x") + 40:
        return [text]
    # Credentials of types 1 and 2 are the type, zeros, and the address.
    return [f"0x{kind}{'0' * 22}{text.removeprefix('0x')}" for kind in ("01", "02")]


def resolve_deposit_address(validator_set: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators that received a deposit from an address."""
    text = validator_set["deposit_address"]
    if not isinstance(text, str) or not ADDRESS_PATTERN.fullmatch(text):
        raise RequestRefused("deposit_address must be an address")
    address = f"0x{text.lower().removeprefix('0x')}"
    return collect_indices(view.scan("deposit_origin").filter(pl.col("from_address") == address))


def scan_entities(view: View) -> pl.LazyFrame:
    """Return entity and sub-entity, one row per validator; null for a validator without a name.

    The sub-entities of an entity are numbered in the order of their first validators.
    """
    validator = "validator_index"
    if not view.has_table("deposit_origin"):
        unknown = pl.lit(None, pl.String)
        entity = pl.col("name").replace("", None)
        return view.scan("validators").select(validator, entity=entity, sub_entity=unknown)
    senders = (
        view.scan("deposit_origin")
        .filter(pl.col(validator).is_not_null())
        .group_by(validator)
        .agg(sender=pl.col("from_address").min())
    )
    first = pl.col(validator).min().over("entity", "sender")
    number = first.rank("dense").over("entity").cast(pl.String)
    return (
        view.scan("validators")
        .select(validator, entity=pl.col("name").replace("", None))
        .join(senders, on=validator, how="left", maintain_order="left")
        .select(
            validator,
            "entity",
            sub_entity=pl.when(pl.col("entity").is_not_null()).then(
                pl.col("entity") + " " + number
            ),
        )
    )


def resolve_entity(validator_set: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators of an entity, or of one of its sub-entities."""
    name, sub_entity = validator_set["entity"], validator_set.get("sub_entity")
    if not isinstance(name, str) or not (sub_entity is None or isinstance(sub_entity, str)):
        raise RequestRefused("entity and sub_entity must be texts")
    if sub_entity is None:
        return find_by_name(name, view)
    return collect_indices(scan_entities(view).filter(entity=name, sub_entity=sub_entity))


def resolve_entities(validator_set: Mapping[str, Any], view: View) -> list[int]:
    """Return the validators of an owner, an operator or both; each owner is its own operator."""
    entities = validator_set["entities"]
    if not isinstance(entities, dict) or not entities or set(entities) - {"owner", "operator"}:
        raise RequestRefused("entities must have an owner, an operator, or both")
    sets = [set(find_by_name(parse_party(item, view), view)) for item in entities.values()]
    return sorted(set.intersection(*sets))


def parse_party(selector: Any, view: View) -> str:
    """Return the name of the owner or operator in a request, by id or by path."""
    if isinstance(selector, dict) and len(selector) == 1:
        ((kind, value),) = selector.items()
        if kind == "path" and isinstance(value, str) and value:
            return value
        if kind == "id" and is_natural(value):
            named = dict(list_parties(view).select("id", "name").iter_rows())
            return str(named.get(value, ""))
    raise RequestRefused("an owner or operator must have exactly one of id and path")


def list_parties(view: View) -> pl.DataFrame:
    """Return the owners, who are operators too, with their ids: numbers in the order of names."""
    names = view.scan("validators").filter(pl.col("name") != "").select(pl.col("name").unique())
    return names.sort("name").with_row_index("id", offset=1).cast({"id": pl.Int64}).collect()


RESOLVERS: Mapping[str, Callable[[Mapping[str, Any], View], list[int]]] = {
    IDENTIFIERS: resolve_identifiers,
    "dashboard_id": resolve_dashboard,
    "withdrawal": resolve_withdrawal,
    "deposit_address": resolve_deposit_address,
    "entity": resolve_entity,
    "entities": resolve_entities,
}
"""The function for each kind of set, by the field that a request names it with."""

OPTIONAL_FIELDS = {"group_id", "sub_entity"}


def find_by_name(name: str, view: View) -> list[int]:
    """Return the validators with a name; an empty one belongs to none."""
    if not name:
        return []
    return collect_indices(view.scan("validators").filter(pl.col("name") == name))


def collect_indices(rows: pl.LazyFrame) -> list[int]:
    """Return the validator indices in *rows*."""
    return rows.select("validator_index").collect().to_series().drop_nulls().to_list()
