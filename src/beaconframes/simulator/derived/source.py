"""The rows that the chain has written, and the way to write what follows from them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.chain_metadata import ChainMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset, Writer
    from beaconframes.endpoint import Head
    from beaconframes.schema import Table

_ROWS = 65_536  # of a chunk


@dataclass(frozen=True)
class Source:
    """A chain that is complete at rest, and a writer for more tables of the same dataset."""

    dataset: Dataset
    writer: Writer

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Return what the dataset says of itself."""
        return self.dataset.meta

    @cached_property
    def chain(self) -> Chain:
        """Return the chain's clock."""
        return ChainMetadata.parse(self.meta).chain

    @cached_property
    def head(self) -> Head:
        """Return where the chain ends."""
        return ChainMetadata.parse(self.meta).head

    @property
    def seed(self) -> int:
        """Return what chance began with."""
        return int(self.meta["seed"])

    @property
    def first(self) -> int:
        """Return the first epoch."""
        return int(self.meta["first_epoch"])

    @property
    def days(self) -> range:
        """Return the days that are complete and final."""
        per_day = self.chain.epochs_per_day
        return range(self.first // per_day, self.head.finalized_epoch // per_day)

    def scan(self, table: str) -> pl.LazyFrame:
        """Return the rows of a table that the chain wrote."""
        return self.dataset.scan(table)

    def index_of(self, pubkey: str) -> int | None:
        """Return the validator index of a public key, or None."""
        found = self.validators.filter(pubkey=pubkey)["validator_index"].to_list()
        return found[0] if found else None

    def pubkey_of(self, index: int) -> str | None:
        """Return the public key of a validator index, or None."""
        found = self.validators.filter(validator_index=index)["pubkey"].to_list()
        return found[0] if found else None

    @cached_property
    def validators(self) -> pl.DataFrame:
        """Return the validators as they stand at the head."""
        return self.scan("validators").collect()

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """Return the canonical blocks, what is long left out."""
        return (
            self.scan("blocks")
            .filter(status="proposed")
            .select(
                "slot",
                "epoch",
                "block_root",
                "proposer_index",
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

    def texts(self, what: str, keys: Iterable[object], size: int) -> list[str]:
        """Return *size* bytes of hex that stand for something, one for each of *keys*."""
        return [digest(self.seed, f"{what} {key}", size) for key in keys]

    def add(self, table: type[Table], rows: pl.DataFrame) -> None:
        """Write rows, their columns in any order and in types that can be cast."""
        whole = [pl.col(name).cast(dtype) for name, dtype in table.schema().items()]
        self.writer.add(table.table_name, table.empty())
        for part in rows.iter_slices(_ROWS):
            self.writer.add(table.table_name, part.select(whole))


def digest(seed: int, what: str, size: int) -> str:
    """Return bytes of hex that stand for something of the chain with this seed."""
    longest = hashlib.blake2b.MAX_DIGEST_SIZE
    text = "".join(
        hashlib.blake2b(
            f"{what} {seed} {start}".encode(), digest_size=min(longest, size - start)
        ).hexdigest()
        for start in range(0, size, longest)
    )
    return "0x" + text


def number(seed: int, what: str, below: int) -> int:
    """Return a number from 0 to *below* that stands for something of the chain with this seed."""
    return int(digest(seed, what, 16), 16) % below
