"""Statistics of days: what each validator had, did and got on each complete day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.v1.validator_stats import ValidatorStats

if TYPE_CHECKING:
    from beaconframes.simulator.derived.source import Source

_KEY = ["validator_index", "day"]
_BEFORE = -1  # the day that holds what the chain began with


def write(source: Source) -> pl.DataFrame:
    """Write the statistics; return them."""
    rows = _ends(source)
    for part in (
        _states(source),
        _missed(source),
        _proposals(source),
        _flows(source, "deposit"),
        _flows(source, "withdrawal"),
        _sync_duties(source),
    ):
        rows = rows.join(part, _KEY, how="left", maintain_order="left")
    rows = pl.concat([_beginning(source), rows], how="diagonal_relaxed")
    day = pl.col("day")
    rows = (
        rows.with_columns(pl.exclude(_KEY).fill_null(0))
        .with_columns(
            time=source.chain.time_expr("day", day),
            day_end=source.chain.time_expr("day", day + 1),
            orphaned_attestations=0,
        )
        .sort(_KEY)
    )
    source.add(ValidatorStats, rows)
    return rows


def _days(source: Source, rows: pl.LazyFrame, epoch: pl.Expr) -> pl.LazyFrame:
    """Return the rows of complete days, with their day."""
    day = (epoch // source.chain.epochs_per_day).alias("day")
    return rows.with_columns(day).filter(pl.col("day") < source.days.stop)


def _ends(source: Source) -> pl.DataFrame:
    """Return the balances at the ends of days. One row per validator that is known by then."""
    per_day = source.chain.epochs_per_day
    days = source.days
    rows = source.scan("balance_history").filter(
        pl.col("epoch") % per_day == 0,
        pl.col("epoch").is_between(days.start * per_day + 1, days.stop * per_day),
    )
    return rows.select(
        "validator_index",
        day=pl.col("epoch") // per_day - 1,
        end_balance_gwei="balance_gwei",
        end_effective_balance_gwei="effective_balance_gwei",
    ).collect()


def _states(source: Source) -> pl.DataFrame:
    """Return first, least and largest of what the epochs of the day began with."""
    first = pl.col("epoch") % source.chain.epochs_per_day == 0
    rows = _days(source, source.scan("balance_history"), pl.col("epoch"))
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


def _missed(source: Source) -> pl.DataFrame:
    rows = _days(source, source.scan("missed_attestation_events"), pl.col("epoch"))
    return rows.group_by(_KEY).agg(missed_attestations=pl.len()).collect()


def _proposals(source: Source) -> pl.DataFrame:
    rows = source.scan("blocks").select(
        "epoch", "status", "attester_slashings_count", "proposer_slashings_count",
        validator_index="proposer_index",
    )  # fmt: skip
    status = pl.col("status")
    return (
        _days(source, rows.filter(pl.col("validator_index").is_not_null()), pl.col("epoch"))
        .group_by(_KEY)
        .agg(
            *((status == word).sum().alias(f"{word}_blocks") for word in
              ("proposed", "missed", "orphaned")),
            *(pl.col(f"{kind}_slashings_count").filter(status == "proposed").sum()
              .alias(f"{kind}_slashings") for kind in ("attester", "proposer")),
        )
        .collect()
    )  # fmt: skip


def _flows(source: Source, kind: str) -> pl.DataFrame:
    rows = _days(source, source.scan(f"{kind}_events"), source.epoch_of("slot"))
    return (
        rows.group_by(_KEY)
        .agg(
            pl.len().alias(f"{kind}s_count"),
            pl.col("amount_gwei").sum().alias(f"{kind}s_amount_gwei"),
        )
        .collect()
    )


def _sync_duties(source: Source) -> pl.DataFrame:
    """Return how often who held seats signed, did not, or signed what was orphaned."""
    rows = (
        _days(source, source.scan("blocks"), pl.col("epoch"))
        .filter(pl.col("sync_aggregate_bits").is_not_null())
        .select("slot", "epoch", "day", "status", bits=pl.col("sync_aggregate_bits").str.slice(2))
        .with_columns(period=pl.col("epoch") // source.chain.epochs_per_sync_period)
        .collect()
    )
    good = pl.col("status") == "proposed"
    rows = rows.filter(good | ~good.any().over("slot"))  # a twin's duties were done beside it
    committees = source.scan("sync_committees").select("period", "validator_index").collect()
    seats = committees.partition_by("period", as_dict=True)
    count = source.validators.height
    done, missed, orphaned = found = np.zeros((3, len(source.days), count), np.int64)
    for (day, period, status), blocks in rows.partition_by(
        "day", "period", "status", as_dict=True
    ).items():
        members = seats[(period,)]["validator_index"].to_numpy()
        data = np.frombuffer(bytes.fromhex("".join(blocks["bits"])), np.uint8)
        signed = np.unpackbits(data.reshape(blocks.height, -1), axis=1, bitorder="little")
        got = signed[:, : len(members)].sum(axis=0, dtype=np.int64)
        at = int(day) - source.days.start
        if status == "orphaned":
            np.add.at(orphaned[at], members, blocks.height)
        else:
            np.add.at(done[at], members, got)
            np.add.at(missed[at], members, blocks.height - got)
    days, validators = np.nonzero(found.any(axis=0))
    return pl.DataFrame(
        {
            "validator_index": validators,
            "day": days + source.days.start,
            "participated_sync": done[days, validators],
            "missed_sync": missed[days, validators],
            "orphaned_sync": orphaned[days, validators],
        }
    )


def _beginning(source: Source) -> pl.DataFrame:
    """Return what the chain began with, if its genesis is here. One row per validator."""
    rows = source.scan("balance_history").filter(epoch=0).collect()
    balance, effective = pl.col("balance_gwei"), pl.col("effective_balance_gwei")
    return rows.select(
        "validator_index",
        day=pl.lit(_BEFORE, pl.Int64),
        end_balance_gwei=balance,
        end_effective_balance_gwei=effective,
        deposits_count=1,
        deposits_amount_gwei=balance,
    )
