"""Refetching: the arguments that request missing rows once more, in the fewest requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.fetch.completeness import IMPOSSIBLE, KEYLESS, Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.fetch.completeness import RequiredRows

Arguments = dict[str, Any]


def refetch_arguments(
    endpoint: Endpoint, calls: Sequence[Call], not_found: Sequence[Call], missing: pl.DataFrame
) -> tuple[list[Arguments], list[Arguments]]:
    """Return the loader arguments that request the *missing* rows, and nothing else.

    Many of them never existed: a validator has no rows before its activation, for thousands of
    epochs. So the first list requests impossible gaps, and of other gaps only a sample: units next
    to received rows, or one request full of subjects without any. The second list requests the
    rest. It is of use only if the first list returned rows.

    Subjects that the service reported as *not_found* are not requested again.
    """
    required = Requirement.of_calls(endpoint, calls)
    subjects = required.subjects
    if missing.is_empty() or len(not_found) >= len(calls):
        return [], []
    if required.units is not None:
        return split_by_range(subjects, required.units, missing)
    if subjects is None:
        return [], []
    refused = Requirement.of_calls(endpoint, not_found).subjects
    gone = set().union(*refused.values.values(), refused.pubkeys) if refused else set()
    impossible, possible = (
        [value for value in subjects_in(subjects, part) if value not in gone]
        for part in (missing.filter(IMPOSSIBLE), missing.filter(~pl.col(IMPOSSIBLE)))
    )
    arg = subjects.parameter.arguments()[0]
    first = impossible + possible[: subjects.batch_size]
    rest = possible[subjects.batch_size :]
    return [{arg: first}] if first else [], [{arg: rest}] if rest else []


def subjects_in(subjects: RequiredRows, missing: pl.DataFrame) -> list[Any]:
    """Return the subjects in *missing*; if public keys are missing, all requested keys."""
    columns = [name for name in subjects.values if name in missing.columns]
    values = [value for name in columns for value in missing[name].drop_nulls().unique().sort()]
    has_keyless = KEYLESS in missing.columns and missing[KEYLESS].null_count() < missing.height
    return values + (sorted(subjects.pubkeys) if has_keyless else [])


def split_by_range(
    subjects: RequiredRows | None, units: RequiredRows, missing: pl.DataFrame
) -> tuple[list[Arguments], list[Arguments]]:
    """Return the requests for gaps next to received rows, and those for gaps further away."""
    ((unit, numbers),) = units.values.items()
    low, high = min(numbers), max(numbers)
    window = units.parameter.window or high - low + 1
    by_key: list[Arguments] = []
    if subjects is not None and KEYLESS in missing.columns:
        since = max(low, high - window + 1)
        arg = subjects.parameter.arguments()[0]
        by_key = [{arg: sorted(subjects.pubkeys), "since": since, "until": high}]
    if f"first_{unit}" not in missing.columns:
        return by_key, []
    gaps = missing.rename({f"first_{unit}": "first", f"last_{unit}": "last"}).drop_nulls("first")
    is_large = subjects is not None and len(subjects_in(subjects, gaps)) > subjects.batch_size
    batch_size = subjects.batch_size if subjects is not None and is_large else None
    near, far = split_gaps(gaps, low, high, window, batch_size)
    return [*by_key, *cover_gaps(subjects, near, window)], list(cover_gaps(subjects, far, window))


def split_gaps(
    gaps: pl.DataFrame, low: int, high: int, window: int, batch_size: int | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the part of *gaps* to request first, and the rest.

    First come impossible gaps and gaps between rows; of the others what is within one *window* of
    rows, and as many subjects without any rows as fit into one request.
    """
    at_start, at_end = pl.col("first") == low, pl.col("last") == high
    inside = pl.col(IMPOSSIBLE) | ~(at_start | at_end)
    # Where a request takes several subjects the ends cost little: many share the same window.
    cheap = inside | (~(at_start & at_end) & pl.lit(batch_size is None or batch_size > 1))
    rank = pl.int_range(pl.len()).over(cheap)
    now = gaps.filter(cheap | (rank < (len(gaps) if batch_size is None else batch_size)))
    later = gaps.join(now, on=gaps.columns, how="anti", nulls_equal=True)
    near = now.with_columns(
        first=pl.when(~inside & at_start)
        .then(pl.max_horizontal("first", pl.col("last") - window + 1))
        .otherwise("first"),
        last=pl.when(~inside & ~at_start & at_end)
        .then(pl.min_horizontal("last", pl.col("first") + window - 1))
        .otherwise("last"),
    )
    before = now.with_columns(last=near["first"] - 1)
    after = now.with_columns(first=near["last"] + 1)
    rest = pl.concat([before, after, later])
    return near, rest.filter(pl.col("first") <= pl.col("last"))


def cover_gaps(
    subjects: RequiredRows | None, gaps: pl.DataFrame, window: int
) -> Iterator[Arguments]:
    """Yield the arguments of the fewest windows that cover *gaps*, with their subjects."""
    while not gaps.is_empty():
        start: Any = gaps["first"].min()
        here = gaps.filter(pl.col("first") < start + window)
        until: Any = here["last"].max()
        named = {}
        if subjects is not None:
            named = {subjects.parameter.arguments()[0]: subjects_in(subjects, here)}
        yield {**named, "since": start, "until": min(until, start + window - 1)}
        rest = gaps.filter(pl.col("last") >= start + window)
        gaps = rest.with_columns(first=pl.max_horizontal("first", pl.lit(start + window)))
