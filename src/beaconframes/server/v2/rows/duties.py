"""Duties in slots: attestations, which are kept for the last epochs only, and sync committees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import ZERO, finality, wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View

HEAD = pl.col("attestation_head_reward_gwei")
SOURCE, NO_SOURCE = (pl.col(f"attestation_source_{kind}_gwei") for kind in ("reward", "penalty"))
TARGET, NO_TARGET = (pl.col(f"attestation_target_{kind}_gwei") for kind in ("reward", "penalty"))
LEAK = pl.col("finality_delay_penalty_gwei")

PARTS: dict[str, pl.Expr] = {
    "reward_total": wei(HEAD + SOURCE + TARGET - NO_SOURCE - NO_TARGET - LEAK),
    "head_total": wei(HEAD),
    "head_reward": wei(HEAD),
    "head_penalty": ZERO,
    "head_missed": ZERO,
    "source_total": wei(SOURCE - NO_SOURCE),
    "source_reward": wei(SOURCE),
    "source_penalty": wei(NO_SOURCE),
    "source_missed": ZERO,
    "target_total": wei(TARGET - NO_TARGET),
    "target_reward": wei(TARGET),
    "target_penalty": wei(NO_TARGET),
    "target_missed": ZERO,
    "inactivity_leak_penalty": wei(LEAK),
}
"""What each part is in terms of the income of the epoch: a validator attests once in it."""


def attestations(view: View) -> pl.LazyFrame:
    """Return the duties by slot and validator; rewards are known once they are final."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    income = view.scan("income_history").filter(pl.col("epoch") <= view.head.finalized_epoch)
    known = HEAD.is_not_null()
    delay = pl.col("inclusion_slot") - pl.col("slot")
    return (
        view.scan("attestations")
        .drop("time")
        .rename({"attester_slot": "slot"})
        .join(keys, on="validator_index", how="left")
        .join(income.drop("time"), on=["validator_index", "epoch"], how="left")
        .join(counted(view, "blocks_before"), on="slot", how="left")
        .join(
            counted(view, "blocks_until").rename({"slot": "inclusion_slot"}),
            "inclusion_slot",
            "left",
        )
        .sort("slot", "validator_index")
        .with_columns(
            *(pl.when(known).then(part).alias(f"{name}_wei") for name, part in PARTS.items()),
            pl.lit(None, pl.Decimal(28, 0)).alias("inclusion_delay_total_wei"),
            pl.lit(None, pl.Decimal(28, 0)).alias("inclusion_delay_missed_wei"),
            status=pl.col("status").replace("included", "success"),
            inclusion_delay=delay,
            inclusion_delay_without_missed_block=pl.col("blocks_until") - pl.col("blocks_before"),
            finality=finality(view),
        )
    )


def counted(view: View, name: str) -> pl.LazyFrame:
    """Return for each slot how many blocks the chain has up to it."""
    came = (pl.col("status") == "proposed").any().cast(pl.Int64)
    slots = view.scan("blocks").group_by("slot").agg(came.alias(name)).sort("slot")
    return slots.with_columns(pl.col(name).cum_sum())


def sync_committees(view: View) -> pl.LazyFrame:
    """Return the duties by slot and validator, of finalized slots; several seats are one duty.

    Each seat signs for itself; where no block of the chain is, nobody gets or loses anything.
    """
    keys = view.scan("validators").select("validator_index", "pubkey")
    seats = view.scan("sync_committees").select("period", "seat", "validator_index")
    byte = pl.col("bits").str.slice(2 + pl.col("seat") // 8 * 2, 2)
    bit = byte.str.to_integer(base=16) // 2 ** (pl.col("seat") % 8) % 2
    in_chain = pl.col("sync_aggregate_bits").filter(pl.col("status") == "proposed")
    return (
        view.scan("blocks")
        .filter(pl.col("epoch") <= view.head.finalized_epoch)
        .group_by("slot", "epoch")
        .agg(bits=in_chain.first())
        .with_columns(period=pl.col("epoch") // view.chain.epochs_per_sync_period)
        .join(seats, on="period")
        .group_by("slot", "epoch", "validator_index")
        .agg(signed=(bit == 1).sum(), unsigned=(bit == 0).sum())
        .join(worth(view, seats), on=["epoch", "validator_index"], how="left")
        .join(keys, on="validator_index", how="left")
        .sort("slot", "validator_index")
        .with_columns(
            got=wei(pl.col("signed") * pl.col("worth").fill_null(0)),
            lost=wei(pl.col("unsigned") * pl.col("worth").fill_null(0)),
        )
        .select(
            "slot",
            "validator_index",
            "pubkey",
            status=pl.when(pl.col("signed") > 0)
            .then(pl.lit("success"))
            .otherwise(pl.lit("missed")),
            total_wei=pl.col("got") - pl.col("lost"),
            reward_wei="got",
            penalty_wei="lost",
            missed_wei="lost",
            finality=pl.lit("finalized"),
        )
    )


def worth(view: View, seats: pl.LazyFrame) -> pl.LazyFrame:
    """Return what a seat gets or loses in a block of an epoch, from what its members got and lost.

    Whoever signs gets it, whoever does not loses it, in each block of the epoch.
    """
    period = view.chain.epochs_per_sync_period
    blocks = view.scan("blocks").filter(
        pl.col("sync_aggregate_bits").is_not_null(), pl.col("status") == "proposed"
    )
    held = seats.group_by("period", "validator_index").agg(held=pl.len().cast(pl.Int64))
    moved = pl.col("sync_committee_reward_gwei") + pl.col("sync_committee_penalty_gwei")
    return (
        view.scan("income_history")
        .select("epoch", "validator_index", moved=moved, period=pl.col("epoch") // period)
        .join(held, on=["period", "validator_index"])
        .join(blocks.group_by("epoch").agg(blocks=pl.len().cast(pl.Int64)), on="epoch")
        .select(
            "epoch", "validator_index", worth=pl.col("moved") // (pl.col("held") * pl.col("blocks"))
        )
    )
