"""Checks of received rows against their requests: rows not requested, and duplicates."""

from __future__ import annotations

import logging
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.intervals import intervals_of, merge_intervals
from beaconframes.errors import IntegrityError
from beaconframes.fetch.completeness import series_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from beaconframes.endpoint import Call, Endpoint, ExpectedRows

log = logging.getLogger("beaconframes.fetch")


def drop_unrequested(endpoint: Endpoint, calls: list[Call], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the *rows* that *calls* requested.

    Where the service always returns more than was requested, other rows are dropped. Elsewhere an
    unrequested row raises IntegrityError.
    """
    trimmed = {name for call in calls for one in call.expected if one.trim for name in one.values}
    for selections in expected_by_columns(calls):
        by_column: dict[str, list[Collection[Any]]] = {name: [] for name in selections[0].values}
        for expected in selections:
            for name, values in expected.values.items():
                by_column[name].append(values)
        is_requested = reduce(or_, (is_among(rows, name, v) for name, v in by_column.items()))
        name = next(iter(by_column))
        if name in trimmed:
            rows = rows.filter(is_requested)
            continue
        unrequested = rows.filter(~is_requested)
        if not unrequested.is_empty():
            raise IntegrityError(
                f"the service returned {unrequested.height} rows that were not requested, the "
                f"first with {name} {unrequested[name][0]}",
                endpoint=endpoint.route,
                hint="The response belongs to another request. Nothing was stored",
            )
    return rows


def drop_duplicates(endpoint: Endpoint, rows: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* sorted by key, each once; log how many were received more than once."""
    unique = endpoint.table.arrange(rows)
    if unique.height < rows.height:
        # A list read by offset that changes shows some rows twice, and others not at all.
        shifted = endpoint.pagination is not None and endpoint.pagination.may_shift
        log.log(
            logging.WARNING if shifted else logging.INFO,
            "%s: %d rows were received more than once; each is used once%s",
            endpoint.route,
            rows.height - unique.height,
            ", and others may be missing: the list moved while it was read" if shifted else "",
        )
    return unique


def expected_by_columns(calls: list[Call]) -> list[list[ExpectedRows]]:
    """Return the rows that *calls* may return, one list for each set of columns.

    Columns count only if each call selects by them: a call that does not may return any row.
    """
    found: dict[tuple[str, ...], list[ExpectedRows]] = {}
    counts: dict[tuple[str, ...], int] = {}
    seen: set[int] = set()
    for call in calls:
        for expected in call.expected:
            if expected.pubkeys:
                continue
            columns = tuple(expected.values)
            counts[columns] = counts.get(columns, 0) + 1
            if id(expected) not in seen:
                seen.add(id(expected))
                found.setdefault(columns, []).append(expected)
    return [rows for columns, rows in found.items() if counts[columns] == len(calls)]


def is_among(rows: pl.DataFrame, name: str, parts: list[Collection[Any]]) -> pl.Expr:
    """Return whether a cell is in one of *parts*; ranges stay ranges, whatever their length."""
    values = [value for part in parts if not isinstance(part, range) for value in part]
    return reduce(
        or_,
        (pl.col(name).is_between(first, last) for first, last in merge_ranges(parts)),
        pl.col(name).is_in(series_of(rows, name, values).implode()),
    ).fill_null(value=False)


def merge_ranges(parts: Iterable[Collection[Any]]) -> tuple[tuple[int, int], ...]:
    """Return the ranges among *parts* as intervals: there may be thousands of windows."""
    ranges = (part for part in parts if isinstance(part, range))
    return merge_intervals(interval for part in ranges for interval in intervals_of(part))


def drop_known(key: list[str], rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return the *rows* whose key is not in *known*.

    A row that is not final may differ between two responses: the first one counts.
    """
    return rows.join(known, on=key, how="anti", nulls_equal=True)
