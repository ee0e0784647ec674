"""Verdicts of an index: whether balances explain each epoch, and the report of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.beacon_node.amounts.states import VERIFIED_LATER
from beaconframes.beacon_node.index.epoch_builder import OPTIMISTIC
from beaconframes.beacon_node.tables.balance_moves import UnexplainedChanges
from beaconframes.dataset import Dataset
from beaconframes.dataset.merging import REMARKS
from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.errors import DatasetError, UnverifiedRows
from beaconframes.intervals import (
    format_numbers,
    intervals_of,
    merge_intervals,
    numbers_of,
    subtract_intervals,
)
from beaconframes.text import visible

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from beaconframes.calendar import Chain
    from beaconframes.intervals import Intervals

MAX_VALIDATORS = 5
"""Validators that are listed for an epoch."""
MAX_INTERVALS = 20
"""Intervals of epochs that a line of a summary has."""
LEFT_OUT = "left_out_tables"
"""The fact of the metadata with the tables that an index leaves out."""

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


@dataclass(frozen=True)
class IndexReport:
    """What an index has, and what is unexplained in it."""

    path: Path
    chain_name: str
    coverage: pl.DataFrame
    """One row per indexed epoch with its status; see `beaconframes.index`."""
    changes: pl.DataFrame
    """Unexplained changes of balance, one row per validator and epoch."""
    rows: int
    bytes: int
    tables: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Tables that were left out because of their size."""

    @property
    def epochs(self) -> Intervals:
        """Return the intervals of indexed epochs."""
        return intervals_of(self.coverage["epoch"].to_list())

    def count(self, status: str) -> int:
        """Return the number of epochs with a status."""
        return int((self.coverage["status"] == status).sum())

    @property
    def is_explained(self) -> bool:
        """Return whether no epoch has an unexplained change."""
        return self.count(UNEXPLAINED) == 0

    def summarize(self) -> Iterator[str]:
        """Yield lines of text: the epochs, the rows, the verdicts, and the remarks."""
        listed = format_numbers(self.coverage["epoch"], MAX_INTERVALS)
        yield (
            f"{visible(self.path)} ({visible(self.chain_name)}): {self.coverage.height:,} epochs"
            f"{f' ({listed})' if listed else ''}, {self.rows:,} rows in {len(self.tables)} tables, "
            f"{self.bytes:,} bytes"
        )
        statuses = (EXPLAINED, UNEXPLAINED, UNVERIFIED)
        yield ", ".join(f"{self.count(status):,} {status}" for status in statuses)
        remarked = self.coverage.drop_nulls("remark")
        for remark, rows in remarked.group_by("remark", maintain_order=True):
            epochs = format_numbers(rows["epoch"], MAX_INTERVALS)
            yield visible(f"Epochs {epochs}: {remark[0]}")

    def summarize_changes(self) -> pl.DataFrame:
        """Return the unexplained changes, one row per epoch: amount, and the first validators."""
        listed = pl.col("validator_index").sort()
        return (
            self.changes.group_by("epoch")
            .agg(
                unexplained_gwei=pl.col("unexplained_gwei").abs().sum(),
                validators_count=pl.len(),
                validators=listed.head(MAX_VALIDATORS).cast(pl.String).str.join(", ")
                + pl.when(pl.len() > MAX_VALIDATORS).then(pl.lit(", ...")).otherwise(pl.lit("")),
            )
            .sort("epoch")
        )


def read_report(folder: str | os.PathLike[str]) -> IndexReport:
    """Read the report of the index in *folder*; no request is sent."""
    dataset = Dataset.open(folder)
    if not dataset.meta.get("indexed"):
        raise DatasetError(
            f"{Path(folder)} was not indexed from a node",
            hint="Give the folder of beaconframes index",
        )
    chain = ChainMetadata.parse(dataset.meta).chain
    changes = dataset.scan(UnexplainedChanges.table_name, schema=UnexplainedChanges.schema())
    sizes = dataset.tables()
    return IndexReport(
        Path(folder),
        chain.name,
        compute_coverage(dataset, chain),
        changes.sort("epoch", "validator_index").collect(),
        sum(size.rows for size in sizes.values()),
        sum(size.bytes for size in sizes.values()),
        tuple(sizes),
        tuple(name for name in dataset.meta.get(LEFT_OUT) or () if name not in sizes),
    )
