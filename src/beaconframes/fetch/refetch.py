"""Asking again for what did not come: once, for just that, in the fewest requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.fetch.gaps import KEYLESS, MUST, wishes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.fetch.gaps import Wish

Arguments = dict[str, Any]


def again(
    endpoint: Endpoint, calls: Sequence[Call], denied: Sequence[Call], lost: pl.DataFrame
) -> tuple[list[Arguments], list[Arguments]]:
    """Return the arguments of the loader that ask for what is *lost*, and for nothing else.

    Much of that there never was: a validator has no rows before its activation, for thousands of
    epochs. So the first list asks for what must be there, and of anything else only for what tells
    whether more is to be had: what is next to rows that came, or one request full of subjects that
    have none. The second, for the rest, is of use when the first has brought something.

    What the service *denied*, saying itself that there is no such thing, is not asked for again.
    """
    subjects, window = wishes(endpoint, calls)
    if lost.is_empty() or len(denied) >= len(calls):
        return [], []
    if window is not None:
        return by_range(subjects, window, lost)
    if subjects is None:
        return [], []
    refused, _ = wishes(endpoint, denied)
    gone = set().union(*refused.values.values(), refused.unnamed) if refused else set()
    must, may = (
        [value for value in named(subjects, part) if value not in gone]
        for part in (lost.filter(MUST), lost.filter(~pl.col(MUST)))
    )
    arg = subjects.parameter.arguments()[0]
    first, rest = must + may[: subjects.most], may[subjects.most :]
    return [{arg: first}] if first else [], [{arg: rest}] if rest else []


def named(subjects: Wish, lost: pl.DataFrame) -> list[Any]:
    """Return the subjects in *lost*, by whichever name; where keys lack, all that came by key."""
    columns = [name for name in subjects.values if name in lost.columns]
    values = [value for name in columns for value in lost[name].drop_nulls().unique().sort()]
    lacking = KEYLESS in lost.columns and lost[KEYLESS].null_count() < lost.height
    return values + (sorted(subjects.unnamed) if lacking else [])


def by_range(
    subjects: Wish | None, window: Wish, lost: pl.DataFrame
) -> tuple[list[Arguments], list[Arguments]]:
    """Return the requests for what is next to rows that came, and for what is further away."""
    ((unit, numbers),) = window.values.items()
    low, high = min(numbers), max(numbers)
    reach = window.parameter.reach or high - low + 1
    keys: list[Arguments] = []
    if subjects is not None and KEYLESS in lost.columns:
        since = max(low, high - reach + 1)
        arg = subjects.parameter.arguments()[0]
        keys = [{arg: sorted(subjects.unnamed), "since": since, "until": high}]
    if f"first_{unit}" not in lost.columns:
        return keys, []
    runs = lost.rename({f"first_{unit}": "first", f"last_{unit}": "last"}).drop_nulls("first")
    most = subjects.most if subjects and len(named(subjects, runs)) > subjects.most else None
    now, later = parted(runs, low, high, reach, most)
    return [*keys, *covering(subjects, now, reach)], list(covering(subjects, later, reach))


def parted(
    runs: pl.DataFrame, low: int, high: int, reach: int, most: int | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what of *runs* to ask for first, and what is left of them.

    First comes all that must be there or lies inside, and of the rest what is within *reach* of
    rows: for as many subjects as go into one request, where these have no rows at all.
    """
    begins, ends = pl.col("first") == low, pl.col("last") == high
    inside = pl.col(MUST) | ~(begins | ends)
    # Where several go into one request the ends cost little: many have theirs in the same window.
    free = inside | (~(begins & ends) & pl.lit(most is None or most > 1))
    rank = pl.int_range(pl.len()).over(free)
    now = runs.filter(free | (rank < (len(runs) if most is None else most)))
    later = runs.join(now, on=runs.columns, how="anti", nulls_equal=True)
    near = now.with_columns(
        first=pl.when(~inside & begins)
        .then(pl.max_horizontal("first", pl.col("last") - reach + 1))
        .otherwise("first"),
        last=pl.when(~inside & ~begins & ends)
        .then(pl.min_horizontal("last", pl.col("first") + reach - 1))
        .otherwise("last"),
    )
    before = now.with_columns(last=near["first"] - 1)
    after = now.with_columns(first=near["last"] + 1)
    left = pl.concat([before, after, later])
    return near, left.filter(pl.col("first") <= pl.col("last"))


def covering(subjects: Wish | None, runs: pl.DataFrame, reach: int) -> Iterator[Arguments]:
    """Yield the fewest windows of *reach* numbers that cover *runs*, and for whom."""
    while not runs.is_empty():
        start: Any = runs["first"].min()
        here = runs.filter(pl.col("first") < start + reach)
        until: Any = here["last"].max()
        who = {} if subjects is None else {subjects.parameter.arguments()[0]: named(subjects, here)}
        yield {**who, "since": start, "until": min(until, start + reach - 1)}
        rest = runs.filter(pl.col("last") >= start + reach)
        runs = rest.with_columns(first=pl.max_horizontal("first", pl.lit(start + reach)))
