"""What each frame of a report has to be: polars queries, written by hand, on the rows of a dataset.

They read the segments of the dataset. They use neither loaders nor `beaconframes.analysis`, and the
intervals follow from formulas of textbooks. `QUERIES` has one query for each frame with a row per
epoch. A query returns None where the report has to leave the frame out.
"""

from __future__ import annotations

from . import (
    attestations,
    comparison,
    facts,
    income,
    luck,
    problems,
    proposals,
    rates,
    reconciliation,
    sync_committees,
    validators,
)
from .proposals import compute_daily_costs
from .source import Source

MODULES = [
    income, rates, attestations, proposals, luck, sync_committees, problems, validators,
    reconciliation, facts, comparison,
]  # fmt: skip
QUERIES = {
    name.removeprefix("query_"): query
    for module in MODULES
    for name, query in vars(module).items()
    if name.startswith("query_")
}
"""The queries by the name of their frame."""

__all__ = ["QUERIES", "Source", "compute_daily_costs"]
