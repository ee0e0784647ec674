"""The report of an index: its epochs, its size, and what its income does not explain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.beacon_node.index.chain_index import LEFT_OUT
from beaconframes.beacon_node.index.verdicts import UNEXPLAINED, compute_coverage
from beaconframes.beacon_node.tables.balance_moves import UnexplainedChanges
from beaconframes.dataset import Dataset
from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.errors import DatasetError
from beaconframes.intervals import intervals_of

if TYPE_CHECKING:
    import os

    from beaconframes.intervals import Intervals

MAX_VALIDATORS = 5
"""Validators that are listed for an epoch."""


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
