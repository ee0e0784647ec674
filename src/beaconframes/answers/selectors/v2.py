"""The rows that sets, filters and orders of V2 select."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.selectors.base import RowSelector
from beaconframes.answers.selectors.set_members import parse_party, resolve_members
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    EntityName,
    MachineSelector,
    OwnerOrOperator,
    RequestRefused,
    SearchText,
    SortOrder,
    ValidatorSelector,
    ValueFilter,
)
from beaconframes.endpoint.parameters_v2 import ORDERS

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Fields, Parameter


def find_members(parameter: ValidatorSelector, fields: Fields, view: View) -> list[int] | None:
    """Return the validators in the set; None for all of them."""
    validator_set = fields.get("validator")
    if validator_set is None:
        if parameter.optional:
            return None
        raise RequestRefused("validator is required")
    return resolve_members(validator_set, view)


def match_members(parameter: ValidatorSelector, fields: Fields, view: View) -> pl.Expr | None:
    """Match the validators in the set, for results that do not state validators."""
    members = find_members(parameter, fields, view)
    return None if members is None else pl.col("validator_index").is_in(members)


def match_values(parameter: ValueFilter, fields: Fields, _view: View) -> pl.Expr | None:
    """Match the rows with one of the values; all rows without a list."""
    words = fields.get(parameter.arg) or []
    if not isinstance(words, list) or any(word not in parameter.words for word in words):
        raise RequestRefused(f"{parameter.arg} must be a list of {', '.join(parameter.words)}")
    return pl.col(parameter.column.name).is_in(words) if words else None


def check_order(parameter: SortOrder, fields: Fields, _view: View) -> None:
    """Check column and direction. Only sums are sorted."""
    words = parameter.words
    by, order = fields.get("sort_by", words[0]), fields.get("sort_order", "desc")
    if by not in words or order not in ORDERS:
        raise RequestRefused(f"sort_by must be one of {words}, and sort_order one of {ORDERS}")


def sort_sums(parameter: SortOrder, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
    """Return *rows* sorted; equal rows stay in their order."""
    return rows.sort(
        fields.get("sort_by", parameter.words[0]),
        descending=fields.get("sort_order", "desc") == "desc",
        nulls_last=True,
        maintain_order=True,
    )


def check_entity(_parameter: EntityName, fields: Fields, _view: View) -> None:
    """Check the name. Shares are computed from all rows."""
    if not isinstance(fields.get("entity"), str):
        raise RequestRefused("entity must be a text")


def check_search(_parameter: SearchText, fields: Fields, _view: View) -> None:
    """Check the text. Shares are computed from all rows."""
    if not isinstance(fields.get("search", ""), str):
        raise RequestRefused("search must be a text")


def search_sums(_parameter: SearchText, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
    """Return the rows whose name contains the text, in upper or lower case."""
    text = fields.get("search", "").lower()
    found = pl.col("name").str.to_lowercase().str.contains(text, literal=True)
    return rows.filter(found) if text else rows


def check_party(parameter: OwnerOrOperator, fields: Fields, view: View) -> None:
    """Check the party. Shares are computed from all rows."""
    if parameter.arg in fields:
        parse_party(fields[parameter.arg], view)


def select_party(parameter: OwnerOrOperator, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
    """Return the party itself: in the local explorer each owner is its own operator."""
    for name, value in fields.get(parameter.arg, {}).items():
        rows = rows.filter(pl.col(name) == value)
    return rows


def match_machines(parameter: MachineSelector, fields: Fields, _view: View) -> pl.Expr | None:
    """Match the rows of the machines."""
    names = fields.get("machines") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RequestRefused("machines must be a list of names")
    return pl.col(parameter.column.name).is_in(names) if names else None


SELECTORS_V2: dict[type[Parameter], RowSelector] = {
    ChainName: RowSelector(),
    Cursor: RowSelector(),
    ValidatorSelector: RowSelector(find_members, match_members),
    ValueFilter: RowSelector(match=match_values),
    SortOrder: RowSelector(match=check_order, select_sums=sort_sums),
    EntityName: RowSelector(
        match=check_entity,
        select_sums=lambda _, rows, fields: rows.filter(entity=fields["entity"]),
    ),
    SearchText: RowSelector(match=check_search, select_sums=search_sums),
    OwnerOrOperator: RowSelector(match=check_party, select_sums=select_party),
    MachineSelector: RowSelector(match=match_machines),
}
"""The selector of each type of parameter. Pages are made of complete lists."""
