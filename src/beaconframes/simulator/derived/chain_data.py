"""The tables that the engine has written, and the writer of derived tables."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from beaconframes.derive.chain_tables import ChainTables, Coverage, fit_table
from beaconframes.derive.derivations import derive_tables
from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.simulator.drawn_hex import fit_stored_schema
from beaconframes.simulator.hex_text import hash_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from beaconframes.dataset import Dataset, Writer
    from beaconframes.schema import Table

_CHUNK_ROWS = 65_536


class ChainData(ChainTables):
    """The complete tables of the engine, and a writer for more tables of the same dataset."""

    def __init__(self, dataset: Dataset, writer: Writer) -> None:
        self.dataset, self.writer = dataset, writer
        self.meta: dict[str, Any] = dataset.meta
        metadata = ChainMetadata.parse(self.meta)
        epochs = ((0, metadata.head.epoch),)
        # A simulated chain earns nothing before its first epoch: sums since genesis are complete.
        balances = ((self.first, metadata.head.epoch),)
        coverage = Coverage(epochs, {"balance_history": balances})
        super().__init__(dataset, metadata.chain, metadata.head, coverage)

    @property
    def seed(self) -> int:
        """Return the seed of the random numbers."""
        return int(self.meta["seed"])

    @property
    def first(self) -> int:
        """Return the first epoch."""
        return int(self.meta.get("first_epoch", 0))

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """Return the canonical blocks, without large columns."""
        return (
            self.scan("blocks")
            .filter(status="proposed")
            .select(
                "slot",
                "epoch",
                "block_root",
                "proposer_index",
                "attestations_count",
                "attester_slashings_count",
                "proposer_slashings_count",
                "exec_block_number",
                "exec_time",
            )
            .collect()
        )

    def hash_keys(self, label: str, keys: Iterable[object], size: int) -> list[str]:
        """Return a hash of *size* bytes for each of *keys*, as hex."""
        return [hash_bytes(self.seed, f"{label} {key}", size) for key in keys]

    def derive(self, *names: str) -> None:
        """Write tables of ``derive``."""
        for table, rows in derive_tables(self, names=names):
            self.add(table, rows)

    def add(self, table: type[Table], rows: pl.DataFrame) -> None:
        """Write rows of a table, sorted by its key."""
        name = table.table_name
        schema = fit_stored_schema(name, table.schema())
        self.writer.add(name, schema.to_frame())
        for part in fit_table(table, rows, schema).iter_slices(_CHUNK_ROWS):
            self.writer.add(name, part)
