"""Daily statistics of validators: balances, duties and payments on each complete day."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from beaconframes.derive.balance_moves import (
    WITHDRAWALS,
    find_deposits,
    scan_deposits,
    scan_withdrawals,
)
from beaconframes.v1.validator_stats import GENESIS_DEPOSITS, ValidatorStats

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.derive.chain_tables import ChainTables

_KEY: Final = ["validator_index", "day"]
_SYNC: Final = ("participated_sync", "missed_sync", "orphaned_sync")


def find_stats_days(data: ChainTables) -> list[int]:
    """Return the days of the daily statistics, with the day before day 0 if epoch 0 is covered."""
    has_genesis = data.coverage.covers("balance_history", range(1))
    return [GENESIS_DEPOSITS, *data.days] if has_genesis else data.days


def build_daily_stats(data: ChainTables, days: Collection[int]) -> pl.DataFrame:
    """Return the daily statistics of some of `find_stats_days`, one row per validator and day.

    The columns of a table are null for days that it does not cover. A validator whose balances of
    the day are not all there has no row.
    """
    parts = []
    if GENESIS_DEPOSITS in days:
        parts.append(_find_genesis_balances(data))
    if whole := [day for day in days if day >= 0]:
        parts.append(_build_whole_days(data, whole))
    day = pl.col("day")
    return (
        pl.concat([ValidatorStats.empty(), *parts], how="diagonal_relaxed")
        .with_columns(
            time=data.chain.time_expr("day", day),
            day_end=data.chain.time_expr("day", day + 1),
            orphaned_attestations=0,
        )
        .sort(_KEY)
    )


def _build_whole_days(data: ChainTables, days: Collection[int]) -> pl.DataFrame:
    """Return the statistics of complete days, without those of tables that do not exist."""
    rows = _find_end_balances(data, days).join(
        _summarize_balances(data, days), _KEY, how="left", maintain_order="left"
    )
    rows = _remove_incomplete(data, rows)
    attestations = data.find_table("missed_attestation_events", "attestations")
    for table, build, extra_epochs in (
        (attestations, _count_missed_attestations, 0),
        (data.find_table("blocks"), _count_proposals, 0),
        (find_deposits(data), partial(_sum_deposits, validators=rows), 1),
        (data.find_table(*WITHDRAWALS), _sum_withdrawals, 1),
    ):
        if table is not None:
            covered = [
                day for day in days if data.covers_day(table, day, extra_epochs=extra_epochs)
            ]
            rows = _join_part(rows, covered, build(data, table, covered))
    if data.find_table("blocks") and data.find_table("sync_committees"):
        covered = [day for day in days if _covers_sync_duties(data, day)]
        rows = _join_part(rows, covered, _count_sync_duties(data, covered))
    return rows.drop("first_epoch")


def _join_part(rows: pl.DataFrame, days: Collection[int], part: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of *part*: 0 on *days* without a row, null on other days."""
    names = [name for name in part.columns if name not in _KEY]
    is_covered = pl.col("day").is_in([*days])
    return rows.join(part, _KEY, how="left", maintain_order="left").with_columns(
        pl.when(is_covered).then(pl.col(names).fill_null(0))
    )


def _select_days(
    data: ChainTables, rows: pl.LazyFrame, epoch: pl.Expr, days: Collection[int]
) -> pl.LazyFrame:
    """Return the rows of some days, with the column ``day``."""
    size = data.chain.epochs_per_day
    # The bounds select files; a list of days does not.
    first, stop = (min(days) * size, (max(days) + 1) * size) if days else (0, 0)
    rows = rows.filter(epoch.is_between(first, stop, closed="left"))
    return rows.with_columns((epoch // size).alias("day")).filter(pl.col("day").is_in([*days]))


def _select_moves(data: ChainTables, rows: pl.LazyFrame, days: Collection[int]) -> pl.LazyFrame:
    """Return moves of balances between the start and the end of some days, with the ``day``.

    The balance of an epoch is that after its first block, so that the first block of a day counts
    for the day before.
    """
    size = data.chain.epochs_per_day * data.chain.slots_per_epoch
    slot = pl.col("slot")
    first, last = (min(days) * size, (max(days) + 1) * size) if days else (0, 0)
    rows = rows.filter(slot.is_between(first, last, closed="right"))
    return rows.with_columns(day=(slot - 1) // size).filter(pl.col("day").is_in([*days]))


def _find_end_balances(data: ChainTables, days: Collection[int]) -> pl.DataFrame:
    """Return balances at the end of days, one row per validator and day."""
    size = data.chain.epochs_per_day
    rows = data.scan("balance_history").filter(
        pl.col("epoch").is_in([(day + 1) * size for day in days])
    )
    return rows.select(
        "validator_index",
        day=pl.col("epoch") // size - 1,
        end_balance_gwei="balance_gwei",
        end_effective_balance_gwei="effective_balance_gwei",
    ).collect()


def _summarize_balances(data: ChainTables, days: Collection[int]) -> pl.DataFrame:
    """Return first, minimum and maximum balance of a day, with the first epoch and their number."""
    is_first = pl.col("epoch") % data.chain.epochs_per_day == 0
    rows = _select_days(data, data.scan("balance_history"), pl.col("epoch"), days)
    return (
        rows.group_by(_KEY)
        .agg(
            pl.col("epoch").min().alias("first_epoch"),
            pl.len().cast(pl.Int64).alias("epochs_count"),
            *(
                expression
                for name in ("balance_gwei", "effective_balance_gwei")
                for expression in (
                    pl.col(name).filter(is_first).sum().alias(f"start_{name}"),
                    pl.col(name).min().alias(f"min_{name}"),
                    pl.col(name).max().alias(f"max_{name}"),
                )
            ),
        )
        .collect(engine="streaming")
    )


def _remove_incomplete(data: ChainTables, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the *rows* of validators with a balance in every epoch of the day.

    A deposit of the day may have created the validator. It was then not eligible for activation
    before its first balance, and started the day with 0.
    """
    size = data.chain.epochs_per_day
    first, end = pl.col("first_epoch"), (pl.col("day") + 1) * size
    eligible = data.validators.select("validator_index", eligible="activation_eligibility_epoch")
    is_new = (pl.col("eligible") >= first).fill_null(value=True)
    has_all = pl.col("epochs_count").fill_null(0) == end - first
    return (
        rows.with_columns(first.fill_null(end))
        .join(eligible, "validator_index", how="left", maintain_order="left")
        .filter(has_all & ((first == end - size) | is_new))
        .with_columns(pl.col("^start_.*$").fill_null(0))
        .drop("eligible", "epochs_count")
    )


def _count_missed_attestations(
    data: ChainTables, table: str, days: Collection[int]
) -> pl.DataFrame:
    rows = data.scan(table)
    if table == "attestations":
        rows = rows.filter(status="missed")
    rows = _select_days(data, rows, pl.col("epoch"), days)
    return rows.group_by(_KEY).agg(missed_attestations=pl.len()).collect()


def _count_proposals(data: ChainTables, table: str, days: Collection[int]) -> pl.DataFrame:
    rows = data.scan(table).select(
        "epoch", "status", "attester_slashings_count", "proposer_slashings_count",
        validator_index="proposer_index",
    )  # fmt: skip
    status = pl.col("status")
    has_proposer = pl.col("validator_index").is_not_null()
    return (
        _select_days(data, rows.filter(has_proposer), pl.col("epoch"), days)
        .group_by(_KEY)
        .agg(
            *((status == word).sum().alias(f"{word}_blocks") for word in
              ("proposed", "missed", "orphaned")),
            *(pl.col(f"{kind}_slashings_count").filter(status == "proposed").sum()
              .alias(f"{kind}_slashings") for kind in ("attester", "proposer")),
        )
        .collect()
    )  # fmt: skip


def _sum_deposits(
    data: ChainTables, table: str, days: Collection[int], *, validators: pl.DataFrame
) -> pl.DataFrame:
    """Return count and sum of deposits, without those before the one that created a validator.

    The signatures of those were invalid. The balance of an epoch is that after its first block.
    """
    rows = _select_moves(data, scan_deposits(data, table), days)
    first_slot = (pl.col("first_epoch") - 1) * data.chain.slots_per_epoch
    known = validators.lazy().select(*_KEY, "first_epoch")
    return _sum_payments(rows.join(known, _KEY).filter(pl.col("slot") > first_slot), "deposit")


def _sum_withdrawals(data: ChainTables, table: str, days: Collection[int]) -> pl.DataFrame:
    rows = _select_moves(data, scan_withdrawals(data, table), days)
    return _sum_payments(rows, "withdrawal")


def _sum_payments(rows: pl.LazyFrame, kind: str) -> pl.DataFrame:
    return (
        rows.group_by(_KEY)
        .agg(
            pl.len().alias(f"{kind}s_count"),
            pl.col("amount_gwei").sum().alias(f"{kind}s_amount_gwei"),
        )
        .collect()
    )


def _covers_sync_duties(data: ChainTables, day: int) -> bool:
    """Return whether all blocks of a day are stored, and the committees of its sync periods."""
    chain, epochs = data.chain, data.epochs_of_day(day)
    first = max(epochs.start, chain.first_sync_epoch)
    periods = {epoch // chain.epochs_per_sync_period for epoch in range(first, epochs.stop)}
    seats = data.scan("sync_committees").filter(pl.col("period").is_in(sorted(periods)))
    sizes = seats.group_by("period").agg(pl.col("seat").n_unique()).collect()
    return data.covers_day("blocks", day) and (
        sizes["seat"].to_list() == [chain.sync_committee_size] * len(periods)
    )


def _count_sync_duties(data: ChainTables, days: Collection[int]) -> pl.DataFrame:
    """Return signed, missed and orphaned sync committee duties, one row per member and day."""
    period = pl.col("epoch") // data.chain.epochs_per_sync_period
    rows = (
        _select_days(data, data.scan("blocks"), pl.col("epoch"), days)
        .filter(pl.col("sync_aggregate_bits").is_not_null())
        .select("slot", "day", "status", period=period, bits=pl.col("sync_aggregate_bits"))
        .collect()
    )
    is_canonical = pl.col("status") == "proposed"
    rows = rows.filter(is_canonical | ~is_canonical.any().over("slot"))  # one block per slot
    committees = data.scan("sync_committees").select("period", "seat", "validator_index").collect()
    seats = committees.sort("seat").partition_by("period", as_dict=True)
    parts = [pl.DataFrame(schema=dict.fromkeys([*_KEY, *_SYNC], pl.Int64))]
    for (day, number, status), blocks in rows.partition_by(
        "day", "period", "status", as_dict=True
    ).items():
        members = seats[(number,)].select("validator_index")
        packed = np.frombuffer(bytes.fromhex("".join(blocks["bits"].str.slice(2))), np.uint8)
        bits = np.unpackbits(packed.reshape(blocks.height, -1), axis=1, bitorder="little")
        signed = pl.Series(bits[:, : members.height].sum(axis=0, dtype=np.int64))
        is_orphaned = status == "orphaned"
        parts.append(
            members.with_columns(
                day=pl.lit(day, pl.Int64),
                participated_sync=pl.lit(0, pl.Int64) if is_orphaned else signed,
                missed_sync=pl.lit(0, pl.Int64) if is_orphaned else blocks.height - signed,
                orphaned_sync=pl.lit(blocks.height if is_orphaned else 0, pl.Int64),
            )
        )
    return pl.concat(parts).group_by(_KEY).sum()


def _find_genesis_balances(data: ChainTables) -> pl.DataFrame:
    """Return the genesis balances, one row per validator: the sums of its deposits.

    Their number is unknown: several deposits may have created a validator of genesis.
    """
    rows = data.scan("balance_history").filter(epoch=0).collect()
    return rows.select(
        "validator_index",
        day=pl.lit(GENESIS_DEPOSITS, pl.Int64),
        end_balance_gwei="balance_gwei",
        end_effective_balance_gwei="effective_balance_gwei",
        deposits_amount_gwei="balance_gwei",
    )
