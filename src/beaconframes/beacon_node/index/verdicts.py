"""Verdicts of an index: whether balances explain each epoch, and what they leave unexplained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.beacon_node.amounts.states import VERIFIED_LATER
from beaconframes.beacon_node.index.epoch_builder import OPTIMISTIC
from beaconframes.beacon_node.tables.balance_moves import UnexplainedChanges
from beaconframes.dataset.merging import REMARKS
from beaconframes.errors import UnverifiedRows
from beaconframes.intervals import merge_intervals, numbers_of, subtract_intervals

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset
    from beaconframes.intervals import Intervals

COVERAGE = {
    "epoch": pl.Int64(),
    "time": pl.Datetime("us", "UTC"),
    "status": pl.String(),
    "unexplained_count": pl.Int64(),
    "unexplained_gwei": pl.Int64(),
    "remark": pl.String(),
}
"""The columns of the coverage of an index."""


EXPLAINED, UNEXPLAINED, UNVERIFIED = "explained", "unexplained", "unverified"


def build_optimistic_warning(epochs: Intervals) -> UnverifiedRows:
    """Return the warning that the execution node has not verified *epochs*, or else the head."""
    listed = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in epochs)
    return UnverifiedRows(
        "the execution node of the beacon node has not verified the blocks of "
        + (f"epochs {listed}" if epochs else "the head")
        + ": the rows may still change",
        hint="Load again when print(node) says synchronized; the coverage lists the epochs",
    )


def compute_coverage(dataset: Dataset, chain: Chain) -> pl.DataFrame:
    """Return the indexed epochs, one row per epoch: status, and what is not explained.

    The income of an epoch is ``explained`` if every change of balance that contains it is: those of
    its own blocks, and those of its attestations, which follow two epochs later.
    """
    income = dataset.coverage("income_history")
    compared = dataset.coverage(UnexplainedChanges.table_name)
    rows = (
        dataset.scan(UnexplainedChanges.table_name, schema=UnexplainedChanges.schema())
        .group_by("epoch")
        .agg(unexplained_count=pl.len(), unexplained_gwei=pl.col("unexplained_gwei").abs().sum())
        .cast({"unexplained_count": pl.Int64, "unexplained_gwei": pl.Int64})
    )
    # The change of an epoch concerns the income of this epoch and of the ones before it.
    differing = pl.concat(
        rows.with_columns(pl.col("epoch") - before) for before in range(VERIFIED_LATER + 1)
    )
    # Nearly all validators have the same intervals.
    pairs = {(parts, compared.get(subject, ())) for subject, parts in income.items()}
    unverified = merge_intervals(
        interval
        for parts, known in pairs
        for interval in subtract_intervals(
            parts,
            [(low, high - VERIFIED_LATER) for low, high in known if low <= high - VERIFIED_LATER],
        )
    )
    epochs = merge_intervals(interval for parts, _ in pairs for interval in parts)
    counts = pl.col("unexplained_count", "unexplained_gwei")
    remarks = [
        (epoch, text)
        for text, parts in sorted(dataset.meta.get(REMARKS, {}).items())
        for epoch in numbers_of(parts)
    ]
    remarked = (
        pl.LazyFrame(remarks, schema={"epoch": pl.Int64, "remark": pl.String}, orient="row")
        .group_by("epoch")
        .agg(pl.col("remark").str.join("; "))
    )
    return (
        pl.LazyFrame({"epoch": numbers_of(epochs)}, schema={"epoch": pl.Int64})
        .join(differing.group_by("epoch").agg(counts.sum()), on="epoch", how="left")
        .join(remarked, on="epoch", how="left")
        .sort("epoch")
        .select(
            "epoch",
            time=chain.time_expr("epoch", pl.col("epoch")),
            status=pl.when(pl.col("unexplained_count").is_not_null())
            .then(pl.lit(UNEXPLAINED))
            .when(
                pl.col("epoch").is_in(numbers_of(unverified))
                | pl.col("remark").str.contains(OPTIMISTIC, literal=True)
            )
            .then(pl.lit(UNVERIFIED))
            .otherwise(pl.lit(EXPLAINED)),
            unexplained_count=pl.col("unexplained_count").fill_null(0),
            unexplained_gwei=pl.col("unexplained_gwei").fill_null(0),
            remark="remark",
        )
        .collect()
    )
