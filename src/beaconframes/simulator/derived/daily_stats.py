"""Daily statistics of validators: balances, duties and payments on each complete day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.v1.validator_stats import ValidatorStats

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData

_KEY = ["validator_index", "day"]
_GENESIS_DAY = -1  # the day of the genesis balances


def write_tables(data: ChainData) -> pl.DataFrame:
    """Write the daily statistics, and return them."""
    rows = _find_end_balances(data)
    for part in (
        _summarize_balances(data),
        _count_missed_attestations(data),
        _count_proposals(data),
        _sum_payments(data, "deposit"),
        _sum_payments(data, "withdrawal"),
        _count_sync_duties(data),
    ):
        rows = rows.join(part, _KEY, how="left", maintain_order="left")
    rows = pl.concat([_find_genesis_balances(data), rows], how="diagonal_relaxed")
    day = pl.col("day")
    rows = (
        rows.with_columns(pl.exclude(_KEY).fill_null(0))
        .with_columns(
            time=data.chain.time_expr("day", day),
            day_end=data.chain.time_expr("day", day + 1),
            orphaned_attestations=0,
        )
        .sort(_KEY)
    )
    data.add(ValidatorStats, rows)
    return rows


def _select_days(data: ChainData, rows: pl.LazyFrame, epoch: pl.Expr) -> pl.LazyFrame:
    """Return the rows of complete days, with the column ``day``."""
    day = (epoch // data.chain.epochs_per_day).alias("day")
    days = pl.col("day").is_between(data.days.start, data.days.stop, closed="left")
    return rows.with_columns(day).filter(days)


def _find_end_balances(data: ChainData) -> pl.DataFrame:
    """Return balances at the end of days, one row per validator and day."""
    per_day = data.chain.epochs_per_day
    days = data.days
    rows = data.scan("balance_history").filter(
        pl.col("epoch") % per_day == 0,
        pl.col("epoch").is_between(days.start * per_day + 1, days.stop * per_day),
    )
    return rows.select(
        "validator_index",
        day=pl.col("epoch") // per_day - 1,
        end_balance_gwei="balance_gwei",
        end_effective_balance_gwei="effective_balance_gwei",
    ).collect()


def _summarize_balances(data: ChainData) -> pl.DataFrame:
    """Return first, minimum and maximum balance of the epochs of a day."""
    first = pl.col("epoch") % data.chain.epochs_per_day == 0
    rows = _select_days(data, data.scan("balance_history"), pl.col("epoch"))
    return (
        rows.group_by(_KEY)
        .agg(
            expression
            for kind in ("", "effective_")
            for name in (f"{kind}balance_gwei",)
            for expression in (
                pl.col(name).filter(first).sum().alias(f"start_{name}"),
                pl.col(name).min().alias(f"min_{name}"),
                pl.col(name).max().alias(f"max_{name}"),
            )
        )
        .collect(engine="streaming")
    )


def _count_missed_attestations(data: ChainData) -> pl.DataFrame:
    rows = _select_days(data, data.scan("missed_attestation_events"), pl.col("epoch"))
    return rows.group_by(_KEY).agg(missed_attestations=pl.len()).collect()


def _count_proposals(data: ChainData) -> pl.DataFrame:
    rows = data.scan("blocks").select(
        "epoch", "status", "attester_slashings_count", "proposer_slashings_count",
        validator_index="proposer_index",
    )  # fmt: skip
    status = pl.col("status")
    return (
        _select_days(data, rows.filter(pl.col("validator_index").is_not_null()), pl.col("epoch"))
        .group_by(_KEY)
        .agg(
            *((status == word).sum().alias(f"{word}_blocks") for word in
              ("proposed", "missed", "orphaned")),
            *(pl.col(f"{kind}_slashings_count").filter(status == "proposed").sum()
              .alias(f"{kind}_slashings") for kind in ("attester", "proposer")),
        )
        .collect()
    )  # fmt: skip


def _sum_payments(data: ChainData, kind: str) -> pl.DataFrame:
    rows = _select_days(data, data.scan(f"{kind}_events"), data.epoch_of("slot"))
    return (
        rows.group_by(_KEY)
        .agg(
            pl.len().alias(f"{kind}s_count"),
            pl.col("amount_gwei").sum().alias(f"{kind}s_amount_gwei"),
        )
        .collect()
    )


def _count_sync_duties(data: ChainData) -> pl.DataFrame:
    """Return signed, missed and orphaned sync committee duties, one row per member and day."""
    rows = (
        _select_days(data, data.scan("blocks"), pl.col("epoch"))
        .filter(pl.col("sync_aggregate_bits").is_not_null())
        .select("slot", "epoch", "day", "status", bits=pl.col("sync_aggregate_bits").str.slice(2))
        .with_columns(period=pl.col("epoch") // data.chain.epochs_per_sync_period)
        .collect()
    )
    is_canonical = pl.col("status") == "proposed"
    rows = rows.filter(is_canonical | ~is_canonical.any().over("slot"))  # one block per slot
    committees = data.scan("sync_committees").select("period", "validator_index").collect()
    seats = committees.partition_by("period", as_dict=True)
    count = data.validators.height
    signed, missed, orphaned = counts = np.zeros((3, len(data.days), count), np.int64)
    for (day, period, status), blocks in rows.partition_by(
        "day", "period", "status", as_dict=True
    ).items():
        members = seats[(period,)]["validator_index"].to_numpy()
        packed = np.frombuffer(bytes.fromhex("".join(blocks["bits"])), np.uint8)
        bits = np.unpackbits(packed.reshape(blocks.height, -1), axis=1, bitorder="little")
        signed_count = bits[:, : len(members)].sum(axis=0, dtype=np.int64)
        row = int(day) - data.days.start
        if status == "orphaned":
            np.add.at(orphaned[row], members, blocks.height)
        else:
            np.add.at(signed[row], members, signed_count)
            np.add.at(missed[row], members, blocks.height - signed_count)
    days, validators = np.nonzero(counts.any(axis=0))
    return pl.DataFrame(
        {
            "validator_index": validators,
            "day": days + data.days.start,
            "participated_sync": signed[days, validators],
            "missed_sync": missed[days, validators],
            "orphaned_sync": orphaned[days, validators],
        }
    )


def _find_genesis_balances(data: ChainData) -> pl.DataFrame:
    """Return the genesis balances, one row per validator; none if the chain starts later."""
    rows = data.scan("balance_history").filter(epoch=0).collect()
    balance, effective = pl.col("balance_gwei"), pl.col("effective_balance_gwei")
    return rows.select(
        "validator_index",
        day=pl.lit(_GENESIS_DAY, pl.Int64),
        end_balance_gwei=balance,
        end_effective_balance_gwei=effective,
        deposits_count=1,
        deposits_amount_gwei=balance,
    )
