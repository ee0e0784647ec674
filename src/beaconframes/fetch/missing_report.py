"""The warning and the error that list missing rows, and the frame of the last load."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from beaconframes.active_periods import (
    EXITED,
    NATURAL,
    NOT_ACTIVE_YET,
    NOT_CHECKED,
    NOT_IN_DATASET,
    NOT_RETURNED,
    NOT_STORED,
    REASON,
    UNKNOWN,
)
from beaconframes.config import current
from beaconframes.errors import IntegrityError, MissingRows
from beaconframes.fetch.completeness import IMPOSSIBLE
from beaconframes.fetch.gap_reasons import VALIDATOR
from beaconframes.pandas_frames import to_pandas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.calendar import Chain
    from beaconframes.endpoint import Endpoint
    from beaconframes.fetch.completeness import Requirement
    from beaconframes.fetch.gap_reasons import Gaps

MAX_GAPS_IN_MESSAGE = 5
MAX_NAMES_IN_MESSAGE = 3

HAS_NO_ROWS = "has_no_rows"
"""The column that marks subjects without any row."""

REASONS = (
    UNKNOWN,
    NOT_IN_DATASET,
    NOT_RETURNED,
    NOT_CHECKED,
    NOT_STORED,
    EXITED,
    NOT_ACTIVE_YET,
)
"""The reasons in the order of the message."""

LAST_LOAD = threading.local()
"""The frame of missing rows of the last load in each thread."""


def missing() -> pl.DataFrame:
    """Return the missing rows of the last load in this thread, with the reason of each gap.

    Has one row per gap: the validator or another subject, ``first_epoch`` and ``last_epoch`` (or
    days, or slots) if a range was requested, and ``reason``. Validators that were not active in
    any part of the range are listed as well, with the reason "exited" or "not active yet": such
    rows cannot exist, so they alone cause no warning. Otherwise it is the frame ``missing`` of
    the warning `MissingRows` and of the errors. A pandas frame with
    ``bf.settings(frame="pandas")``.
    """
    frame: pl.DataFrame | None = getattr(LAST_LOAD, "missing", None)
    if frame is None:
        frame = pl.DataFrame(schema={REASON: pl.String})
    converted: Any = to_pandas(frame) if current().frame == "pandas" else frame
    return cast("pl.DataFrame", converted)


def report_missing(
    endpoint: Endpoint,
    gaps: Gaps,
    required: Requirement,
    rows: Any,
    chain: Chain,
    *,
    strict: bool,
) -> MissingRows:
    """Return the warning for the *gaps* of a load; raise an error for impossible ones.

    With *strict* any missing row raises an error. Errors carry the received *rows*.
    """
    impossible = gaps.missing.filter(IMPOSSIBLE)
    listed, has_no_rows = list_gaps(endpoint, gaps, required)
    whole, partial = listed.filter(has_no_rows), listed.filter(~has_no_rows)
    LAST_LOAD.missing = listed
    if not impossible.is_empty():
        error = IntegrityError(
            f"final rows are missing, requested twice: {describe_gaps(impossible)}",
            endpoint=endpoint.route,
            hint="Try again later. The error has the received `rows` and the `missing` gaps",
        )
        error.missing, error.rows = listed, rows
        raise error
    parts = [] if whole.is_empty() else [describe_without_rows(whole, required, chain)]
    if not partial.is_empty():
        parts.append(f"missing rows: {describe_gaps(partial)}")
    warning = MissingRows(
        "; ".join(parts),
        endpoint=endpoint.route,
        hint="bf.missing() lists them" + ("" if strict else ". strict=True makes this an error"),
    )
    warning.missing = listed
    if strict:
        warning.rows = rows
        raise warning
    return warning


def list_gaps(
    endpoint: Endpoint, gaps: Gaps, required: Requirement
) -> tuple[pl.DataFrame, pl.Series]:
    """Return the missing rows and the inactive validators, and which of them have no row at all.

    The inactive part of a validator that has rows is not listed.
    """
    parts = pl.concat([gaps.missing, gaps.inactive], how="diagonal").drop(IMPOSSIBLE)
    parts = parts.select(pl.exclude(REASON), REASON)
    names = subject_columns(parts, required)
    if not names or endpoint.lifetime is None:
        return parts, pl.repeat(value=False, n=parts.height, eager=True)
    subject = pl.coalesce(pl.col(names).cast(pl.String))
    unit_count, length = 1, pl.lit(1)
    if required.units is not None:
        ((unit, numbers),) = required.units.values.items()
        unit_count = len(numbers)
        if f"first_{unit}" in parts.columns:
            length = (pl.col(f"last_{unit}") - pl.col(f"first_{unit}") + 1).fill_null(unit_count)
        else:
            length = pl.lit(unit_count)
    has_no_rows = subject.is_not_null() & (length.sum().over(subject) >= unit_count)
    marked = parts.with_columns(has_no_rows.alias(HAS_NO_ROWS))
    marked = marked.filter(pl.col(HAS_NO_ROWS) | ~pl.col(REASON).is_in(NATURAL)).sort(
        *names, nulls_last=True, maintain_order=True
    )
    return marked.drop(HAS_NO_ROWS), marked[HAS_NO_ROWS]


def subject_columns(gaps: pl.DataFrame, required: Requirement) -> list[str]:
    """Return the columns of *gaps* that name the subject: an index or a public key, or both."""
    if required.subjects is None:
        return []
    return [name for name in dict.fromkeys((*required.subjects.values, "pubkey")) if name in gaps]


def describe_without_rows(gaps: pl.DataFrame, required: Requirement, chain: Chain) -> str:
    """Return how many validators have no rows, and why: their number and names by reason."""
    assert required.subjects is not None
    names = subject_columns(gaps, required)
    # A validator may be inactive in a part of the range: the reason of the other part counts.
    # A source may state reasons of its own.
    listed_reasons = list(dict.fromkeys((*REASONS, *gaps[REASON])))
    reasons = gaps.sort(pl.col(REASON).replace_strict(listed_reasons, range(len(listed_reasons))))
    subject = pl.coalesce(pl.col(names).cast(pl.String)).alias("subject")
    by_subject = reasons.select(subject, REASON).unique(
        "subject", keep="first", maintain_order=True
    )
    counts = []
    for reason in listed_reasons:
        subjects = by_subject.filter(pl.col(REASON) == reason)["subject"].to_list()
        if subjects:
            subjects.sort(key=lambda name: (len(name), name))
            listed = ", ".join(subjects[:MAX_NAMES_IN_MESSAGE])
            more = ", ..." if len(subjects) > MAX_NAMES_IN_MESSAGE else ""
            when = describe_reason(reason, required, chain)
            counts.append(f"{len(subjects):,} {when} ({listed}{more})")
    values = required.subjects.values
    total = sum(map(len, values.values())) + len(required.subjects.pubkeys)
    verb = "has" if total == 1 else "have"
    return f"{by_subject.height:,} of {total:,} validators {verb} no rows: {', '.join(counts)}"


def describe_reason(reason: str, required: Requirement, chain: Chain) -> str:
    """Return a reason as text; an exit or an activation with the end of the requested range."""
    if required.units is None or reason not in NATURAL:
        return reason
    ((unit, numbers),) = required.units.values.items()
    kind: Any = unit
    if reason == EXITED:
        return f"exited before {chain.time_of(kind, min(numbers)):%Y-%m-%d}"
    return f"not active until after {chain.time_of(kind, max(numbers)):%Y-%m-%d}"


def describe_gaps(missing: pl.DataFrame) -> str:
    """Return the first few gaps as text, with the reason that all of them have."""
    gaps = missing.drop(IMPOSSIBLE, strict=False)
    if VALIDATOR in gaps.columns:
        # Validators with the same gap are listed together.
        ranges = gaps.drop(VALIDATOR).columns
        gaps = gaps.group_by(ranges, maintain_order=True).agg(VALIDATOR)
        gaps = gaps.select(VALIDATOR, *ranges)
    rest = gaps.height - MAX_GAPS_IN_MESSAGE
    gaps = gaps.drop(REASON, strict=False).head(MAX_GAPS_IN_MESSAGE)
    shown = "; ".join(describe_gap(gap) for gap in gaps.iter_rows(named=True))
    shown += f"; and {rest} more" if rest > 0 else ""
    reasons = set(missing[REASON]) if REASON in missing.columns else set()
    return (
        f"{shown} ({reasons.pop()})" if len(reasons) == 1 and NOT_RETURNED not in reasons else shown
    )


def describe_gap(gap: Mapping[str, Any]) -> str:
    """Return one gap as text, such as ``validator_index 17, epoch 0 to 99 (not stored)``."""
    parts = []
    validators = gap.get(VALIDATOR)
    if isinstance(validators, list):
        shown = ", ".join(map(str, validators[:MAX_NAMES_IN_MESSAGE]))
        more = ", ..." if len(validators) > MAX_NAMES_IN_MESSAGE else ""
        many = f"{len(validators):,} validators ({shown}{more})"
        gap = {**gap, VALIDATOR: validators[0] if len(validators) == 1 else None}
        if len(validators) > 1:
            parts.append(many)
    for name, value in gap.items():
        if value is None or name.startswith("last_") or name == REASON:
            continue
        last = gap.get(f"last_{name.removeprefix('first_')}") if name.startswith("first_") else None
        text = f"{name.removeprefix('first_')} {value}"
        parts.append(text if last in (None, value) else f"{text} to {last}")
    text = ", ".join(parts)
    return f"{text} ({gap[REASON]})" if gap.get(REASON) else text
