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
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise RequestRefused(f"{parameter.arg} must be a list of texts")
    if parameter.words and not set(parameter.words).issuperset(words):
        raise RequestRefused(f"{parameter.arg} must be a list of {', '.join(parameter.words)}")
    return pl.col(parameter.column.name).is_in(words) if words else None


def sort_sums(
    parameter: SortOrder, rows: pl.LazyFrame, fields: Fields, _view: View
) -> pl.LazyFrame:
    """Return *rows* sorted; equal rows stay in their order."""
    words = parameter.words
    by, order = fields.get("sort_by", words[0]), fields.get("sort_order", "desc")
    if by not in words or order not in ORDERS:
        raise RequestRefused(f"sort_by must be one of {words}, and sort_order one of {ORDERS}")
    return rows.sort(by, descending=order == "desc", nulls_last=True, maintain_order=True)


def select_entity(
    _parameter: EntityName, rows: pl.LazyFrame, fields: Fields, _view: View
) -> pl.LazyFrame:
    """Return the entity itself."""
    if not isinstance(fields.get("entity"), str):
        raise RequestRefused("entity must be a text")
    return rows.filter(entity=fields["entity"])


def search_sums(
    _parameter: SearchText, rows: pl.LazyFrame, fields: Fields, _view: View
) -> pl.LazyFrame:
    """Return the rows whose name contains the text, in upper or lower case."""
    if not isinstance(text := fields.get("search", ""), str):
        raise RequestRefused("search must be a text")
    found = pl.col("name").str.to_lowercase().str.contains(text.lower(), literal=True)
    return rows.filter(found) if text else rows


def select_party(
    parameter: OwnerOrOperator, rows: pl.LazyFrame, fields: Fields, view: View
) -> pl.LazyFrame:
    """Return the party itself: in the local explorer each owner is its own operator."""
    if parameter.arg not in fields:
        return rows
    parse_party(fields[parameter.arg], view)
    return rows.filter(**fields[parameter.arg])


SELECTORS_V2: dict[type[Parameter], RowSelector] = {
    ChainName: RowSelector(),
    Cursor: RowSelector(),
    ValidatorSelector: RowSelector(find_members, match_members),
    ValueFilter: RowSelector(match=match_values),
    SortOrder: RowSelector(select_sums=sort_sums),
    EntityName: RowSelector(select_sums=select_entity),
    SearchText: RowSelector(select_sums=search_sums),
    OwnerOrOperator: RowSelector(select_sums=select_party),
}
"""The selector of each type of parameter. Pages are made of complete lists."""
