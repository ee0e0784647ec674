"""The warning and the error that list missing rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.errors import IntegrityError, MissingRows
from beaconframes.fetch.completeness import IMPOSSIBLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.endpoint import Endpoint

MAX_GAPS_IN_MESSAGE = 5


def report_missing(
    endpoint: Endpoint, missing: pl.DataFrame, rows: Any, *, strict: bool
) -> MissingRows:
    """Return the warning for *missing* rows; raise an error for impossible gaps.

    With *strict* any missing row raises an error. Errors carry the received *rows*.
    """
    gaps = missing.drop(IMPOSSIBLE)
    impossible = missing.filter(IMPOSSIBLE)
    if not impossible.is_empty():
        error = IntegrityError(
            f"final rows are missing, requested twice: {describe_gaps(impossible)}",
            endpoint=endpoint.route,
            hint="Try again later. The error has the received `rows` and the `missing` gaps",
        )
        error.missing, error.rows = gaps, rows
        raise error
    warning = MissingRows(
        f"missing rows: {describe_gaps(missing)}",
        endpoint=endpoint.route,
        hint="The warning's `missing` frame lists them. strict=True makes this an error",
    )
    warning.missing = gaps
    if strict:
        warning.rows = rows
        raise warning
    return warning


def describe_gaps(missing: pl.DataFrame) -> str:
    """Return the first few gaps as text."""
    gaps = missing.drop(IMPOSSIBLE).head(MAX_GAPS_IN_MESSAGE).iter_rows(named=True)
    rest = missing.height - MAX_GAPS_IN_MESSAGE
    return "; ".join(map(describe_gap, gaps)) + (f"; and {rest} more" if rest > 0 else "")


def describe_gap(gap: Mapping[str, Any]) -> str:
    """Return one gap as text, such as ``validator_index 17, epoch 0 to 99``."""
    parts = []
    for name, value in gap.items():
        if value is None or name.startswith("last_"):
            continue
        last = gap.get(f"last_{name.removeprefix('first_')}") if name.startswith("first_") else None
        text = f"{name.removeprefix('first_')} {value}"
        parts.append(text if last in (None, value) else f"{text} to {last}")
    return ", ".join(parts)
