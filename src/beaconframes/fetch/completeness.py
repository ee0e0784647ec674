"""Complete or loud: what came back, held against what was asked."""

from __future__ import annotations

import logging
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint import Pages
from beaconframes.errors import IntegrityError, MissingRows
from beaconframes.fetch.gaps import MUST, series

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from beaconframes.endpoint import Call, Endpoint

log = logging.getLogger("beaconframes.client")

NAMED_IN_A_MESSAGE = 5

Wish = dict[str, list["Collection[Any]"]]


def wishes(calls: list[Call]) -> list[Wish]:
    """Return what rows *calls* may bring at all, one wish for each selector that can be checked.

    A selector counts only when each call says so: one that does not could return anything.
    """
    found: dict[tuple[str, ...], Wish] = {}
    said: dict[tuple[str, ...], int] = {}
    seen: set[int] = set()
    for call in calls:
        for wanted in call.wanted:
            if wanted.unnamed:
                continue
            columns = tuple(wanted.values)
            said[columns] = said.get(columns, 0) + 1
            if id(wanted) in seen:
                continue
            seen.add(id(wanted))
            wish = found.setdefault(columns, {name: [] for name in columns})
            for name, values in wanted.values.items():
                wish[name].append(values)
    return [wish for columns, wish in found.items() if said[columns] == len(calls)]


def checked(endpoint: Endpoint, calls: list[Call], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the *rows* that were asked for, in order, each once; log how many came again."""
    asked = only_asked(endpoint, calls, rows)
    once = endpoint.table.arrange(asked)
    if once.height < asked.height:
        again = asked.height - once.height
        # A list that is cut by number and moves shows some rows twice, and others not at all.
        moved = isinstance(endpoint.pagination, Pages)
        more = ", and others may lack: the list moved while it was read" if moved else ""
        log.log(
            logging.WARNING if moved else logging.INFO,
            "%s: %d rows came more than once; each is kept once%s",
            *(endpoint.route, again, more),
        )
    return once


def only_asked(endpoint: Endpoint, calls: list[Call], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the *rows* that were asked for.

    Where the service always answers more than that, the rest is dropped. Anywhere else a row that
    belongs to nothing that was asked for raises IntegrityError.
    """
    trimmed = {name for call in calls for wish in call.wanted if wish.trim for name in wish.values}
    for wish in wishes(calls):
        asked = reduce(or_, (among(rows, name, parts) for name, parts in wish.items()))
        name = next(iter(wish))
        if name in trimmed:
            rows = rows.filter(asked)
            continue
        foreign = rows.filter(~asked)
        if not foreign.is_empty():
            raise IntegrityError(
                f"{foreign.height} rows came back that were not asked for, the first with "
                f"{name} {foreign[name][0]}",
                endpoint=endpoint.route,
                hint="The service answered another question; nothing was kept",
            )
    return rows


def new_in(table_key: list[str], more: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return those of *more* whose key is not among *rows* yet.

    What is not final may have changed between two answers: what came first stands.
    """
    return more.join(rows, on=table_key, how="anti", nulls_equal=True)


def missing_rows(endpoint: Endpoint, lost: pl.DataFrame) -> MissingRows | None:
    """Return the warning that names what is *lost*, or None if nothing is."""
    if lost.is_empty():
        return None
    warning = MissingRows(
        f"did not come back: {named(lost)}",
        endpoint=endpoint.route,
        hint="They are listed in the warning's `missing` frame; strict=True makes this an error",
    )
    warning.missing = lost.drop(MUST)
    return warning


def broken_rows(endpoint: Endpoint, lost: pl.DataFrame) -> IntegrityError | None:
    """Return the error that names what must be there of all that is *lost*, or None."""
    must = lost.filter(MUST)
    if must.is_empty():
        return None
    error = IntegrityError(
        f"rows that must be there did not come back, asked for twice: {named(must)}",
        endpoint=endpoint.route,
        hint="Ask again later. The error's `rows` has everything else, its `missing` what lacks",
    )
    error.missing = lost.drop(MUST)
    return error


def named(missing: pl.DataFrame) -> str:
    """Return words that name the first few of what is *missing*."""
    parts = missing.drop(MUST).head(NAMED_IN_A_MESSAGE).iter_rows(named=True)
    rest = missing.height - NAMED_IN_A_MESSAGE
    return "; ".join(map(words, parts)) + (f"; and {rest} more" if rest > 0 else "")


def words(row: Mapping[str, Any]) -> str:
    """Return one gap in words, such as ``validator_index 17, epoch 0 to 99``."""
    parts = []
    for name, value in row.items():
        if value is None or name.startswith("last_"):
            continue
        last = row.get(f"last_{name.removeprefix('first_')}") if name.startswith("first_") else None
        text = f"{name.removeprefix('first_')} {value}"
        parts.append(text if last in (None, value) else f"{text} to {last}")
    return ", ".join(parts)


def among(rows: pl.DataFrame, name: str, parts: list[Collection[Any]]) -> pl.Expr:
    """Return whether a cell is in one of *parts*; ranges stay ranges, however long."""
    single = [value for part in parts if not isinstance(part, range) for value in part]
    return reduce(
        or_,
        (pl.col(name).is_between(part.start, part.stop - 1) for part in joined(parts)),
        pl.col(name).is_in(series(rows, name, single).implode()),
    ).fill_null(value=False)


def joined(parts: Iterable[Collection[Any]]) -> list[range]:
    """Return the ranges among *parts*, those that touch as one: windows come by the thousand."""
    found: list[range] = []
    for part in sorted((p for p in parts if isinstance(p, range)), key=lambda p: p.start):
        if found and part.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, part.stop))
        else:
            found.append(part)
    return found
