"""Refetching: the arguments that request missing rows once more, in the fewest requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.fetch.completeness import IMPOSSIBLE, PUBKEYS_WITHOUT_ROWS, Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.fetch.completeness import RequiredRows

Arguments = dict[str, Any]


def refetch_arguments(
    endpoint: Endpoint, calls: Sequence[Call], not_found: Sequence[Call], missing: pl.DataFrame
) -> tuple[list[Arguments], list[Arguments]]:
    """Return the loader arguments that request the *missing* rows, and nothing else.

    Many missing rows never existed: a validator has none for the thousands of epochs before its
    activation. So the first list requests all impossible gaps, but only a sample of the others:
    units next to received rows, or one batch of subjects without rows. The second list requests
    the rest. Send it only if the first list returned rows.

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
    unknown: set[Any] = set()
    not_found_rows = Requirement.of_calls(endpoint, not_found).subjects
    if not_found_rows is not None:
        unknown.update(*not_found_rows.values.values(), not_found_rows.pubkeys)
    impossible = subjects_in(subjects, missing.filter(IMPOSSIBLE))
    possible = subjects_in(subjects, missing.filter(~pl.col(IMPOSSIBLE)))
    possible = [subject for subject in possible if subject not in unknown]
    first = [subject for subject in impossible if subject not in unknown]
    first += possible[: subjects.batch_size]
    rest = possible[subjects.batch_size :]
    arg = subjects.parameter.arguments()[0]
    return [{arg: first}] if first else [], [{arg: rest}] if rest else []


def subjects_in(subjects: RequiredRows, missing: pl.DataFrame) -> list[Any]:
    """Return the subjects in *missing*; if public keys are missing, all requested keys."""
    columns = [name for name in subjects.values if name in missing.columns]
    values = [value for name in columns for value in missing[name].drop_nulls().unique().sort()]
    has_missing_keys = (
        PUBKEYS_WITHOUT_ROWS in missing.columns
        and missing[PUBKEYS_WITHOUT_ROWS].null_count() < missing.height
    )
    return values + (sorted(subjects.pubkeys) if has_missing_keys else [])


def split_by_range(
    subjects: RequiredRows | None, units: RequiredRows, missing: pl.DataFrame
) -> tuple[list[Arguments], list[Arguments]]:
    """Return the arguments for gaps next to received rows, and those for all other gaps."""
    ((unit, numbers),) = units.values.items()
    low, high = min(numbers), max(numbers)
    window = units.parameter.window or high - low + 1
    by_key: list[Arguments] = []
    if subjects is not None and PUBKEYS_WITHOUT_ROWS in missing.columns:
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

    The first part has all impossible gaps and gaps between rows. Of the others it has the units
    within one *window* of received rows, and one batch of subjects without rows.
    """
    at_start, at_end = pl.col("first") == low, pl.col("last") == high
    inside = pl.col(IMPOSSIBLE) | ~(at_start | at_end)
    # With several subjects in a request, gaps at the ends cost little: they share a window.
    cheap = inside | (~(at_start & at_end) & pl.lit(batch_size is None or batch_size > 1))
    rank = pl.int_range(pl.len()).over(cheap)
    first_gaps = gaps.filter(cheap | (rank < (len(gaps) if batch_size is None else batch_size)))
    later_gaps = gaps.join(first_gaps, on=gaps.columns, how="anti", nulls_equal=True)
    near = first_gaps.with_columns(
        first=pl.when(~inside & at_start)
        .then(pl.max_horizontal("first", pl.col("last") - window + 1))
        .otherwise("first"),
        last=pl.when(~inside & ~at_start & at_end)
        .then(pl.min_horizontal("last", pl.col("first") + window - 1))
        .otherwise("last"),
    )
    before = first_gaps.with_columns(last=near["first"] - 1)
    after = first_gaps.with_columns(first=near["last"] + 1)
    rest = pl.concat([before, after, later_gaps])
    return near, rest.filter(pl.col("first") <= pl.col("last"))


def cover_gaps(
    subjects: RequiredRows | None, gaps: pl.DataFrame, window: int
) -> Iterator[Arguments]:
    """Yield the arguments of the fewest windows that cover *gaps*, with their subjects."""
    while not gaps.is_empty():
        start: Any = gaps["first"].min()
        in_window = gaps.filter(pl.col("first") < start + window)
        until: Any = in_window["last"].max()
        subject_argument = {}
        if subjects is not None:
            subject_argument = {subjects.parameter.arguments()[0]: subjects_in(subjects, in_window)}
        yield {**subject_argument, "since": start, "until": min(until, start + window - 1)}
        rest = gaps.filter(pl.col("last") >= start + window)
        gaps = rest.with_columns(first=pl.max_horizontal("first", pl.lit(start + window)))
