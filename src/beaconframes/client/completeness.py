"""Complete or loud: what came back, held against what was asked."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import IntegrityError, MissingRows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from beaconframes.endpoint import Call, Endpoint

NAMED_IN_A_MESSAGE = 5

Wish = dict[str, list["Collection[Any]"]]


def wishes(calls: list[Call], *, every: bool) -> list[Wish]:
    """Return what all *calls* together select, one wish for each selector that can be checked.

    With *every* only values that must come back; without, whatever rows may come back at all,
    and then only when each call says so: one that does not could return anything.
    """
    found: dict[tuple[str, ...], Wish] = {}
    said: dict[tuple[str, ...], int] = {}
    for call in calls:
        for wanted in call.wanted:
            if (every and not wanted.every) or (not every and wanted.unnamed):
                continue
            columns = tuple(wanted.values)
            said[columns] = said.get(columns, 0) + 1
            wish = found.setdefault(columns, {name: [] for name in columns})
            for name, values in wanted.values.items():
                if values not in wish[name]:
                    wish[name].append(values)
    return [wish for columns, wish in found.items() if every or said[columns] == len(calls)]


def only_asked(endpoint: Endpoint, calls: list[Call], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the *rows* that were asked for.

    Where the service always answers more than that, the rest is dropped. Anywhere else a row that
    belongs to nothing that was asked for raises IntegrityError.
    """
    trimmed = {name for call in calls for wish in call.wanted if wish.trim for name in wish.values}
    for wish in wishes(calls, every=False):
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


def missing_rows(endpoint: Endpoint, calls: list[Call], rows: pl.DataFrame) -> MissingRows | None:
    """Return the warning that names what did not come back, or None if everything did."""
    found = [
        {name: sorted({value for part in parts for value in part}) for name, parts in wish.items()}
        for wish in wishes(calls, every=True)
    ]
    if not found:
        return None
    *subjects, window = found
    if subjects:
        ((unit, numbers),) = window.items()
        missing = pl.concat(
            (
                grid_gaps(rows, name, wanted, unit, numbers)
                for name, wanted in subjects[0].items()
                if wanted or len(subjects[0]) == 1
            ),
            how="diagonal",
        )
    else:
        missing = pl.concat(
            (
                series(rows, name, values).to_frame().join(rows, on=name, how="anti")
                for name, values in window.items()
            ),
            how="diagonal",
        )
    missing = pl.concat([missing, unnamed_gaps(calls, rows)], how="diagonal")
    if missing.is_empty():
        return None
    warning = MissingRows(
        describe(missing),
        endpoint=endpoint.route,
        hint="They are listed in the warning's `missing` frame; strict=True makes this an error",
    )
    warning.missing = missing
    return warning


def unnamed_gaps(calls: list[Call], rows: pl.DataFrame) -> pl.DataFrame:
    """Return how many public keys have no rows, where the rows do not say which.

    The service silently drops keys that it does not know. A validator that was asked for by its
    index as well counts as one without rows: nobody can tell the two apart.
    """
    wanted = [wish for call in calls for wish in call.wanted if wish.every and wish.unnamed]
    if not wanted:
        return pl.DataFrame()
    (name,) = wanted[0].values
    keys = {key for wish in wanted for key in wish.unnamed}
    indices = {
        index for call in calls for wish in call.wanted for index in wish.values.get(name, ())
    }
    found = rows.filter(~pl.col(name).is_in(series(rows, name, indices).implode()))[name].n_unique()
    lacking = len(keys) - found
    return pl.DataFrame({"public_keys_without_rows": [lacking]}) if lacking > 0 else pl.DataFrame()


def grid_gaps(
    rows: pl.DataFrame, name: str, wanted: Collection[Any], unit: str, numbers: Collection[int]
) -> pl.DataFrame:
    """Return the runs of *numbers* that each *wanted* subject lacks, one row per run."""
    subjects = series(rows, name, wanted).to_frame()
    counts = rows.group_by(name).len()
    lacking = (
        subjects.join(counts, on=name, how="left", maintain_order="left")
        .filter(pl.col("len").fill_null(0) < len(numbers))
        .select(name)
    )
    gaps = (
        lacking.join(series(rows, unit, numbers).to_frame(), how="cross")
        .join(rows.select(name, unit), on=[name, unit], how="anti")
        .sort(name, unit)
    )
    return (
        gaps.with_columns(run=pl.col(unit) - pl.int_range(pl.len()).over(name))
        .group_by(name, "run", maintain_order=True)
        .agg(pl.col(unit).min().alias(f"first_{unit}"), pl.col(unit).max().alias(f"last_{unit}"))
        .drop("run")
    )


def describe(missing: pl.DataFrame) -> str:
    """Return a sentence that names the first few of what is *missing*."""
    named = "; ".join(words(row) for row in missing.head(NAMED_IN_A_MESSAGE).iter_rows(named=True))
    rest = missing.height - NAMED_IN_A_MESSAGE
    return f"did not come back: {named}" + (f"; and {rest} more" if rest > 0 else "")


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
    ranges = [part for part in parts if isinstance(part, range)]
    single = [value for part in parts if not isinstance(part, range) for value in part]
    return reduce(
        or_,
        (pl.col(name).is_between(part.start, part.stop - 1) for part in ranges),
        pl.col(name).is_in(series(rows, name, single).implode()),
    ).fill_null(value=False)


def series(rows: pl.DataFrame, name: str, values: Iterable[Any]) -> pl.Series:
    """Return *values* as a series of the type that the column has in *rows*."""
    return pl.Series(name, list(values), dtype=rows.schema[name])
