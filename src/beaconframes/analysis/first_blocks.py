"""Income in the first block of an epoch, which counts for the balance change of the epoch before.

Balances of an epoch are read after the block of its first slot. Income histories have one amount
per epoch, which includes that block. What the block paid to a validator follows from income by
slot, from the slots of the validator's own blocks, or from an amount of zero for the whole epoch.
Otherwise only its limits are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.engines import check_distinct, open_frame
from beaconframes.analysis.events import read_amounts
from beaconframes.frames import collect, drop_missing, list_column_names

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Chain

TRANSFERS = ("deposit", "switch_to_compounding", "withdrawal")
"""Kinds of rows in the slot income of an index that are not income."""

_KEYS = ["validator_index", "epoch"]
_SLOT_KEYS = [["validator_index", "slot", column] for column in ("kind", "total_wei")]
"""Keys of the table and of the loader. Rows of the user's own frames may repeat."""
_SLOT_INCOME = "v2.load_slot_sync_committee_duties"
_PROPOSED = ("proposed", "success")


class FirstSlotIncome(NamedTuple):
    """What the first blocks of epochs paid."""

    rows: pl.DataFrame
    """One row per validator and epoch with such income."""
    last_epoch: int | None
    """The last epoch of a table of an index; None for other frames, which may leave out zeros."""


def read_first_slot_income(slot_income: IntoFrame, chain: Chain) -> FirstSlotIncome:
    """Return the income in first blocks.

    A frame with a column ``kind`` is the table of an index, which also has deposits, withdrawals
    and switches to compounding credentials. These are not income.
    """
    for keys in _SLOT_KEYS:
        check_distinct(slot_income, keys, loader=_SLOT_INCOME)
    is_index = "kind" in list_column_names(slot_income)
    if is_index:
        is_income = ~nw.col("kind").is_in(TRANSFERS)
        slot_income = nw.from_native(slot_income).filter(is_income).to_native()
    rows = read_amounts(slot_income, ["slot"], loader=_SLOT_INCOME)
    last_epoch = None
    if is_index:
        last_epoch = int(rows["slot"].max() or 0) // chain.slots_per_epoch  # type: ignore[arg-type]
    sums = (
        rows.filter(pl.col("slot") % chain.slots_per_epoch == 0)
        .group_by("validator_index", (pl.col("slot") // chain.slots_per_epoch).alias("epoch"))
        .agg(pl.col("amount_gwei").sum().alias("slot_income_gwei"))
    )
    return FirstSlotIncome(sums, last_epoch)


def count_own_blocks(blocks: IntoFrame, chain: Chain) -> pl.DataFrame:
    """Return how many blocks validators proposed, all and in the first slot, by epoch."""
    columns = ["proposer_index", "slot"]
    status = [name for name in ("status",) if name in list_column_names(blocks)]
    lazy = open_frame(blocks, [*columns, *status], loader="load_produced_blocks")
    rows = collect(drop_missing(lazy, columns))
    if status:
        rows = rows.filter(pl.col("status").is_in(_PROPOSED))
    is_first = pl.col("slot") % chain.slots_per_epoch == 0
    return (
        rows.select(
            pl.col("proposer_index").cast(pl.Int64).alias("validator_index"),
            pl.col("slot").cast(pl.Int64),
        )
        .unique()
        .group_by("validator_index", (pl.col("slot") // chain.slots_per_epoch).alias("epoch"))
        .agg(own_blocks=pl.len().cast(pl.Int64), own_first_blocks=is_first.sum().cast(pl.Int64))
    )


def add_first_block_limits(
    sums: pl.DataFrame, slot_income: pl.DataFrame | None, own_blocks: pl.DataFrame | None
) -> pl.DataFrame:
    """Add ``min_gwei`` and ``max_gwei``: what the first block of the epoch paid at least, at most.

    They are equal where the amount is known. *sums* has the income inside blocks by validator and
    epoch.
    """
    low, high = pl.lit(0), pl.lit(0)
    proposal = pl.col("proposal_gwei")
    if own_blocks is not None:
        sums = sums.join(own_blocks, _KEYS, how="left", maintain_order="left")
        blocks, first = pl.col("own_blocks"), pl.col("own_first_blocks")
        low = pl.when((blocks == 1) & (first == 1)).then(proposal).otherwise(0)
        high = pl.when((blocks > 0) & (first == 0)).then(0).otherwise(proposal)
    elif slot_income is None:
        high = proposal
    if slot_income is not None:
        sums = sums.join(slot_income, _KEYS, how="left", maintain_order="left")
        paid = pl.col("slot_income_gwei").fill_null(0)
        low, high = low + paid, high + paid
    else:
        high += pl.col("sync_reward_gwei")
        low = low - pl.col("sync_penalty_gwei") - pl.col("slashing_penalty_gwei")
    return sums.with_columns(min_gwei=low.cast(pl.Int64), max_gwei=high.cast(pl.Int64))
