"""The random hex of a simulated chain, which its tables store as numbers.

The number of a block is twice its slot, plus 1 for the second block of a slot. The block before the
first one of the simulation has the number of a second block, which no other block has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from beaconframes.dataset.hex_columns import META, HexColumn

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Ints

BLOCK_ROOT: Final = "block root"
BLOCK_HASH: Final = "block hash"
ATTESTATION: Final = "attestation"

COLUMNS: Final[dict[str, dict[str, tuple[str, int]]]] = {
    "blocks": {
        "block_root": (BLOCK_ROOT, 32),
        "parent_root": (BLOCK_ROOT, 32),
        "state_root": ("state root", 32),
        "randao_reveal": ("randao reveal", 96),
        "signature": ("block signature", 96),
        "sync_aggregate_signature": ("sync aggregate", 96),
        "exec_block_hash": (BLOCK_HASH, 32),
        "exec_parent_hash": (BLOCK_HASH, 32),
        "exec_state_root": ("execution state", 32),
        "exec_receipts_root": ("receipts", 32),
        "exec_random": ("randao mix", 32),
    },
    "execution_blocks": {"block_hash": (BLOCK_HASH, 32), "parent_hash": (BLOCK_HASH, 32)},
    "validator_withdrawals": {"block_root": (BLOCK_ROOT, 32)},
    "slot_attestations": {
        "block_root": (BLOCK_ROOT, 32),
        "beacon_block_root": (BLOCK_ROOT, 32),
        "source_root": (BLOCK_ROOT, 32),
        "target_root": (BLOCK_ROOT, 32),
        "signature": (ATTESTATION, 96),
    },
}
"""Labels and sizes of the columns, by table. Hex that is stored as text is small or has a use."""


def find_columns(seed: int, table: str) -> dict[str, HexColumn]:
    """Return the columns of a table that readers draw."""
    return {name: HexColumn(seed, *column) for name, column in COLUMNS.get(table, {}).items()}


def state_columns(seed: int) -> dict[str, Any]:
    """Return the metadata from which a dataset draws the texts."""
    return {META: {"seed": seed, "tables": COLUMNS}}


def draw(seed: int, label: str, numbers: Ints | list[int], size: int = 32) -> pl.Series:
    """Return the texts of *numbers*."""
    return HexColumn(seed, label, size).draw(pl.Series(numbers, dtype=pl.Int64))


def number_before(first_slot: int) -> int:
    """Return the number of the block before the first one of a simulation."""
    return 2 * first_slot - 1


def fit_stored_schema(table: str, schema: pl.Schema) -> pl.Schema:
    """Return the columns of a table as the dataset stores them."""
    return pl.Schema({**schema, **dict.fromkeys(COLUMNS.get(table, ()), pl.Int64())})
