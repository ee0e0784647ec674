"""The tables that the engine has written, and the writer of derived tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.simulator.hex_text import hash_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset, Writer
    from beaconframes.endpoint import Head
    from beaconframes.schema import Table

_CHUNK_ROWS = 65_536


@dataclass(frozen=True)
class ChainData:
    """The complete tables of the engine, and a writer for more tables of the same dataset."""

    dataset: Dataset
    writer: Writer

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Return the metadata of the dataset."""
        return self.dataset.meta

    @cached_property
    def chain(self) -> Chain:
        """Return the chain's clock."""
        return ChainMetadata.parse(self.meta).chain

    @cached_property
    def head(self) -> Head:
        """Return the head of the chain."""
        return ChainMetadata.parse(self.meta).head

    drops_old_units = False
    """Whether old units are refused, as by the public service."""

    @property
    def seed(self) -> int:
        """Return the seed of the random numbers."""
        return int(self.meta["seed"])

    @property
    def first(self) -> int:
        """Return the first epoch."""
        return int(self.meta["first_epoch"])

    @property
    def days(self) -> range:
        """Return the complete and final days."""
        per_day = self.chain.epochs_per_day
        return range(-(-self.first // per_day), self.head.finalized_epoch // per_day)

    def scan(self, table: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of a table that the engine wrote; see `Dataset.scan`."""
        return self.dataset.scan(table, schema=schema)

    def index_of(self, pubkey: str) -> int | None:
        """Return the validator index of a public key, or None."""
        matches = self.validators.filter(pubkey=pubkey)["validator_index"].to_list()
        return matches[0] if matches else None

    def pubkey_of(self, index: int) -> str | None:
        """Return the public key of a validator index, or None."""
        matches = self.validators.filter(validator_index=index)["pubkey"].to_list()
        return matches[0] if matches else None

    @cached_property
    def validators(self) -> pl.DataFrame:
        """Return the validators at the head."""
        return self.scan("validators").collect()

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

    def epoch_of(self, slot: str) -> pl.Expr:
        """Return the epoch of the slots in a column."""
        return pl.col(slot) // self.chain.slots_per_epoch

    def time_of(self, slot: str) -> pl.Expr:
        """Return the start of the slots in a column."""
        return self.chain.time_expr("slot", pl.col(slot))

    def hash_keys(self, label: str, keys: Iterable[object], size: int) -> list[str]:
        """Return a hash of *size* bytes for each of *keys*, as hex."""
        return [hash_bytes(self.seed, f"{label} {key}", size) for key in keys]

    def add(self, table: type[Table], rows: pl.DataFrame) -> None:
        """Write rows of a table, sorted by its key.

        Columns and rows may have any order, and columns any type that can be cast.
        """
        columns = [pl.col(name).cast(dtype) for name, dtype in table.schema().items()]
        if table.key():
            rows = rows.sort(table.key(), nulls_last=True)
        self.writer.add(table.table_name, table.empty())
        for part in rows.iter_slices(_CHUNK_ROWS):
            self.writer.add(table.table_name, part.select(columns))
