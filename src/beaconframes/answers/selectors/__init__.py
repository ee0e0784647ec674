"""The rows of a dataset that the fields of a request select: a selector for each parameter type."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from beaconframes.answers.selectors.endpoints import ENDPOINT_SELECTORS
from beaconframes.answers.selectors.positions import POSITION_SELECTORS
from beaconframes.answers.selectors.v1 import SELECTORS_V1
from beaconframes.answers.selectors.v2 import SELECTORS_V2
from beaconframes.endpoint import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from beaconframes.answers.selectors.base import RowSelector
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Endpoint, Fields, Parameter

Bounds: TypeAlias = "dict[str, tuple[int, int]]"
"""The smallest and the largest number of columns."""


@cache
def find_selector(kind: type[Parameter]) -> RowSelector:
    """Return the selector of a type of parameter: its own, or that of the type it extends."""
    selectors = SELECTORS_V1 | ENDPOINT_SELECTORS | SELECTORS_V2 | POSITION_SELECTORS
    return next(selectors[parent] for parent in kind.__mro__ if parent in selectors)


def find_numbers(parameter: Parameter, fields: Fields, view: View) -> Collection[int] | None:
    """Return the numbers of the selected rows; None if only `select` finds the rows."""
    find = find_selector(type(parameter)).find_numbers
    return None if find is None or parameter.rows_column is None else find(parameter, fields, view)


def find_bounds(
    parameters: Iterable[Parameter],
    fields: Fields,
    view: View,
    joined: Mapping[Parameter, Sequence[Collection[int]]] | None = None,
) -> Bounds:
    """Return the smallest and the largest number that *fields* select, by column.

    Parameters that are *joined* have the numbers of several requests. A condition may depend on all
    rows that the parameters before it select, such as the latest day: it ends the bounds.
    """
    bounds: Bounds = {}
    for parameter in parameters:
        selector = find_selector(type(parameter))
        numbers = (joined or {}).get(parameter)
        if numbers is None and (found := find_numbers(parameter, fields, view)) is not None:
            numbers = [found]
        ends = [find_ends(part) for part in numbers or () if part]
        if ends:
            assert parameter.rows_column is not None
            low, high = zip(*ends, strict=True)
            bounds[parameter.rows_column.name] = min(low), max(high)
        if selector.choose or (numbers is None and (selector.match or selector.select)):
            break
    return bounds


def find_ends(numbers: Collection[int]) -> tuple[int, int]:
    """Return the smallest and the largest of *numbers*."""
    return (numbers[0], numbers[-1]) if isinstance(numbers, range) else (min(numbers), max(numbers))


def find_slots(
    parameters: Iterable[Parameter], fields: Fields, view: View
) -> tuple[int, int] | None:
    """Return the first and the last slot that *fields* select; None if they select none."""
    for parameter in parameters:
        find = find_selector(type(parameter)).find_slots
        if find is not None and (slots := find(parameter, fields, view)) is not None:
            return slots
    return None


def select(parameter: Parameter, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
    """Return the *rows* that *parameter* selects; raise RequestRefused for invalid fields."""
    selector, numbers = find_selector(type(parameter)), find_numbers(parameter, fields, view)
    condition = None
    if numbers is not None:
        assert parameter.rows_column is not None
        condition = match_numbers(pl.col(parameter.rows_column.name), numbers)
    elif selector.match is not None:
        condition = selector.match(parameter, fields, view)
    elif selector.select is not None:
        rows = selector.select(parameter, rows, fields, view)
    if condition is not None:
        rows = rows.filter(condition)
    return choose(parameter, rows)


def choose(parameter: Parameter, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return those of the *rows* with a number that a request for this number selects."""
    choice = find_selector(type(parameter)).choose
    return rows if choice is None else choice(rows)


def match_numbers(column: pl.Expr, numbers: Collection[int]) -> pl.Expr:
    """Return whether *column* has one of the *numbers*."""
    if isinstance(numbers, range):
        return column.is_between(numbers.start, numbers.stop - 1)
    if len(numbers) == 1:
        return column == next(iter(numbers))
    # With a list instead, polars compares each value of a file with each number.
    return column.is_in(pl.Series(sorted(numbers), dtype=pl.Int64).implode())


def select_list(endpoint: Endpoint, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
    """Return the *rows* of all pages, in the order of an answer."""
    pages = endpoint.parameters_of(Role.PAGE)
    for parameter in endpoint.all_parameters:
        if parameter not in pages:
            rows = select(parameter, rows, fields, view)
    return sort(endpoint, rows, fields)


def select_page(endpoint: Endpoint, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
    """Return those of the *rows* of all pages that are on the page."""
    for parameter in endpoint.parameters_of(Role.PAGE):
        rows = select(parameter, rows, fields, view)
    return rows


def select_sums(endpoint: Endpoint, sums: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
    """Return the selected *sums* of rows, in the order in which the service sends them."""
    for parameter in endpoint.all_parameters:
        choice = find_selector(type(parameter)).select_sums
        if choice is not None:
            sums = choice(parameter, sums, fields, view)
    return sums


def sort(endpoint: Endpoint, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
    """Return *rows* in the order in which the service sends them."""
    for parameter in endpoint.all_parameters:
        order = find_selector(type(parameter)).sort
        if order is not None:
            rows = order(parameter, rows, fields)
    return rows
