"""Gaps: what must come back and did not, and the arguments that ask for just that again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint import Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beaconframes.endpoint import Call, ChainHead, Endpoint, Parameter

MUST = "must"
"""The column that says of a gap that it cannot be: what is around it is there."""

KEYLESS = "public_keys_without_rows"
NOBODY = "nobody"
"""The subject of rows that have none, such as epochs."""

NO_GAPS = pl.DataFrame(schema={MUST: pl.Boolean})


@dataclass
class Wish:
    """What must come back for one selector: values by column, and names that rows do not carry.

    ``parts`` is a column, and how many different values it has for each value once that is final;
    ``most`` how many of them went into one request.
    """

    parameter: Parameter
    values: dict[str, set[Any]] = field(default_factory=dict)
    unnamed: set[str] = field(default_factory=set)
    parts: tuple[str, int] | None = None
    most: int = 1

    @property
    def by_range(self) -> bool:
        """Whether it is asked for by ``since`` and ``until``."""
        return "since" in self.parameter.arguments()


def wishes(endpoint: Endpoint, calls: Iterable[Call]) -> tuple[Wish | None, Wish | None]:
    """Return which subjects must come back for *calls*, and which range of epochs or days."""
    found: dict[int, Wish] = {}
    seen: set[int] = set()
    for call in calls:
        for place, batch in enumerate(call.batches):
            if id(batch) in seen:
                continue
            seen.add(id(batch))
            for wanted in batch.wanted:
                if wanted.every:
                    wish = found.setdefault(place, Wish(endpoint.all_parameters[place]))
                    for name, values in wanted.values.items():
                        wish.values.setdefault(name, set()).update(values)
                    wish.unnamed.update(wanted.unnamed)
                    wish.parts = wanted.parts
                    size = sum(map(len, wanted.values.values())) + len(wanted.unnamed)
                    wish.most = max(wish.most, size)
    subjects = next((wish for wish in found.values() if not wish.by_range), None)
    return subjects, next((wish for wish in found.values() if wish.by_range), None)


def gaps(
    endpoint: Endpoint, calls: Iterable[Call], rows: pl.DataFrame, chain_head: ChainHead
) -> pl.DataFrame:
    """Return what *rows* lack, one row per gap: what is missing, from where to where."""
    subjects, window = wishes(endpoint, calls)
    found = [NO_GAPS]
    if subjects is not None:
        for name, values in subjects.values.items():
            wanted = series(rows, name, values)
            if subjects.unnamed:
                # Whoever came without having been named by index was named by key.
                wanted = pl.concat([wanted, rows[name].drop_nulls()]).unique()
            found.append(of_subjects(endpoint, rows, wanted.sort(), window))
        if (lacking := keys_without_rows(subjects, rows)) > 0:
            found.append(pl.DataFrame({KEYLESS: [lacking], MUST: [False]}))
    elif window is not None:
        ((name, numbers),) = window.values.items()
        nobody = rows.with_columns(pl.lit(0).alias(NOBODY))
        wanted = pl.Series(NOBODY, [0], pl.Int32)
        lost = runs(endpoint, nobody, wanted, name, min(numbers), max(numbers)).drop(NOBODY)
        if endpoint.unbroken and endpoint.finality is Final.AT_FINALITY:
            # Every epoch that is final is there, also at the ends.
            lost = lost.with_columns(pl.lit(value=True).alias(MUST))
        found.append(lost)
        if window.parts is not None:
            found.append(lacking_parts(rows, name, *window.parts, chain_head))
    return pl.concat(found, how="diagonal")


def of_subjects(
    endpoint: Endpoint, rows: pl.DataFrame, wanted: pl.Series, window: Wish | None
) -> pl.DataFrame:
    """Return what the *wanted* subjects lack: rows at all, or some of the range of *window*."""
    if window is not None:
        ((unit, numbers),) = window.values.items()
        return runs(endpoint, rows, wanted, unit, min(numbers), max(numbers))
    lost = singles(endpoint, rows, wanted)
    column = getattr(endpoint.pagination, "column", None)
    if not endpoint.unbroken or column is None or rows.is_empty():
        return lost
    # No range was given, so that nobody knows where it begins and ends; holes show all the same.
    there: Any = rows[column.name]
    inside = runs(endpoint, rows, wanted, column.name, there.min(), there.max()).filter(MUST)
    return pl.concat([lost, inside], how="diagonal")


def singles(endpoint: Endpoint, rows: pl.DataFrame, wanted: pl.Series) -> pl.DataFrame:
    """Return the *wanted* values without a row; between two that have one it must be there."""
    name = wanted.name
    lost = wanted.to_frame().join(rows, on=name, how="anti", maintain_order="left")
    if not endpoint.unbroken:
        return lost.with_columns(pl.lit(value=False).alias(MUST))
    sure = rows.filter("finalized") if "finalized" in rows.columns else rows
    between = pl.col(name).is_between(sure[name].min(), sure[name].max())
    return lost.with_columns(between.fill_null(value=False).alias(MUST))


def runs(
    endpoint: Endpoint, rows: pl.DataFrame, wanted: pl.Series, unit: str, low: int, high: int
) -> pl.DataFrame:
    """Return the runs of numbers, from *low* to *high*, that each of the *wanted* lacks."""
    ends = wanted.to_frame().with_columns(
        pl.lit(low, pl.Int64).alias("low"), pl.lit(high, pl.Int64).alias("high")
    )
    lost = stretches(rows, ends, wanted.name, unit)
    if endpoint.unbroken:
        return lost
    return lost.with_columns(pl.lit(value=False).alias(MUST))


def lacking_parts(
    rows: pl.DataFrame, name: str, part: str, parts: int, chain_head: ChainHead
) -> pl.DataFrame:
    """Return the parts that each value lacks although it is final, such as slots of an epoch."""
    short = rows.group_by(name).agg(pl.col(part).n_unique().alias("have"))
    short = short.filter(pl.col("have") < parts).sort(name).select(name)
    if short.is_empty():
        return NO_GAPS
    # What is not final may still be growing.
    short = short.filter(pl.col(name) <= final_until(chain_head))
    first = pl.col(name) * parts
    ends = short.with_columns(first.alias("low"), (first + parts - 1).alias("high"))
    lost = stretches(rows, ends, name, part)
    both = [pl.col(name).alias(f"first_{name}"), pl.col(name).alias(f"last_{name}")]
    return lost.select(*both, pl.exclude(name, MUST), pl.lit(value=True).alias(MUST))


def stretches(rows: pl.DataFrame, ends: pl.DataFrame, name: str, unit: str) -> pl.DataFrame:
    """Return the runs of numbers that have no row, for each value of *name* within its *ends*.

    One that lies between two numbers with a row cannot be.
    """
    first, last = pl.col(f"first_{unit}"), pl.col(f"last_{unit}")
    there = rows.select(name, unit).join(ends.select(name), on=name, how="semi").unique()
    # One number beyond either end is taken for there, so that what lacks is always between two.
    beyond = [
        ends.select(name, (pl.col(end) + by).alias(unit)) for end, by in (("low", -1), ("high", 1))
    ]
    before = pl.col(unit).shift(1).over(name)
    return (
        pl.concat([there, *beyond])
        .sort(name, unit)
        .select(name, (before + 1).alias(f"first_{unit}"), (pl.col(unit) - 1).alias(f"last_{unit}"))
        .filter(first <= last)
        .join(ends, on=name, maintain_order="left")
        .with_columns(((first > pl.col("low")) & (last < pl.col("high"))).alias(MUST))
        .drop("low", "high")
    )


def final_until(chain_head: ChainHead) -> int:
    """Return the last epoch that is over and final: at first, epoch 0 is final and yet running."""
    return min(chain_head.latest("epoch", finalized=True), chain_head.latest("epoch") - 1)


def certain(lost: pl.DataFrame, chain_head: ChainHead) -> pl.DataFrame:
    """Return *lost*, no longer insisting on what is not final yet."""
    if "last_epoch" not in lost.columns:
        return lost
    last, must = pl.col("last_epoch"), pl.col(MUST)
    if lost.filter(must, last.is_not_null()).is_empty():
        return lost
    return lost.with_columns(must & (last.is_null() | (last <= final_until(chain_head))))


def keys_without_rows(subjects: Wish, rows: pl.DataFrame) -> int:
    """Return how many public keys have no rows, where the rows do not say which.

    The service silently drops keys that it does not know. A validator that was asked for by its
    index as well counts as one without rows: nobody can tell the two apart.
    """
    if not subjects.unnamed:
        return 0
    ((name, indices),) = subjects.values.items()
    by_key = ~pl.col(name).is_in(series(rows, name, indices).implode())
    return len(subjects.unnamed) - rows.filter(by_key)[name].n_unique()


def series(rows: pl.DataFrame, name: str, values: Iterable[Any]) -> pl.Series:
    """Return *values* as a series of the type that the column has in *rows*."""
    return pl.Series(name, list(values), dtype=rows.schema[name])
