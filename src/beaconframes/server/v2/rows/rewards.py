"""Rewards, from the income of V1 and the rewards of its execution blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from beaconframes.server.v2.rows.amounts import gwei_to_wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def sum_gwei(*names: str) -> pl.Expr:
    """Return the sum of the named parts of the income, in gwei."""
    return pl.sum_horizontal(pl.col(f"{name}_gwei") for name in names)


HEAD, SOURCE, TARGET = (f"attestation_{vote}_reward" for vote in ("head", "source", "target"))
NO_SOURCE, NO_TARGET = "attestation_source_penalty", "attestation_target_penalty"
LEAK, SYNC, NO_SYNC = "finality_delay_penalty", "sync_committee_reward", "sync_committee_penalty"
INCLUDED = "proposer_attestation_inclusion_reward"
INCLUDED_SYNC = "proposer_sync_inclusion_reward"
INCLUDED_SLASHING = "proposer_slashing_inclusion_reward"
SLASHED = "slashing_penalty"

EXECUTION = pl.col("producer_reward_wei")
PROPOSED = (
    gwei_to_wei(sum_gwei(INCLUDED, INCLUDED_SYNC, INCLUDED_SLASHING, "slashing_reward")) + EXECUTION
)
REWARD = gwei_to_wei(sum_gwei(HEAD, SOURCE, TARGET, SYNC)) + PROPOSED
PENALTY = gwei_to_wei(sum_gwei(NO_SOURCE, NO_TARGET, LEAK, NO_SYNC, SLASHED))
NONE = pl.lit(0, pl.Decimal(28, 0))

PARTS: dict[str, pl.Expr] = {
    "total": REWARD - PENALTY,
    "total_reward": REWARD,
    "total_penalty": PENALTY,
    "total_missed": NONE,
    "attestation_total": gwei_to_wei(
        sum_gwei(HEAD, SOURCE, TARGET) - sum_gwei(NO_SOURCE, NO_TARGET, LEAK)
    ),
    "attestation_head_total": gwei_to_wei(sum_gwei(HEAD)),
    "attestation_head_reward": gwei_to_wei(sum_gwei(HEAD)),
    "attestation_head_penalty": NONE,
    "attestation_head_missed": NONE,
    "attestation_source_total": gwei_to_wei(sum_gwei(SOURCE) - sum_gwei(NO_SOURCE)),
    "attestation_source_reward": gwei_to_wei(sum_gwei(SOURCE)),
    "attestation_source_penalty": gwei_to_wei(sum_gwei(NO_SOURCE)),
    "attestation_source_missed": NONE,
    "attestation_target_total": gwei_to_wei(sum_gwei(TARGET) - sum_gwei(NO_TARGET)),
    "attestation_target_reward": gwei_to_wei(sum_gwei(TARGET)),
    "attestation_target_penalty": gwei_to_wei(sum_gwei(NO_TARGET)),
    "attestation_target_missed": NONE,
    "attestation_inactivity_leak_penalty": gwei_to_wei(sum_gwei(LEAK)),
    "attestation_inclusion_delay_total": pl.lit(None, pl.Decimal(28, 0)),
    "attestation_inclusion_delay_missed": pl.lit(None, pl.Decimal(28, 0)),
    "sync_committee_total": gwei_to_wei(sum_gwei(SYNC) - sum_gwei(NO_SYNC)),
    "sync_committee_reward": gwei_to_wei(sum_gwei(SYNC)),
    "sync_committee_penalty": gwei_to_wei(sum_gwei(NO_SYNC)),
    "sync_committee_missed": NONE,
    "proposal_total": PROPOSED,
    "proposal_execution_layer_reward": EXECUTION,
    "proposal_attestation_inclusion_reward": gwei_to_wei(sum_gwei(INCLUDED)),
    "proposal_sync_inclusion_reward": gwei_to_wei(sum_gwei(INCLUDED_SYNC)),
    "proposal_slashing_inclusion_reward": gwei_to_wei(
        sum_gwei(INCLUDED_SLASHING, "slashing_reward")
    ),
    "proposal_missed_cl_reward": NONE,
    "proposal_missed_el_reward": NONE,
}
"""Each part of the rewards in terms of the income; V1 does not state missed rewards."""


def derive_rows(view: View) -> pl.LazyFrame:
    """Return rewards, one row per validator per finalized epoch."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    return (
        scan_rewards(view)
        .join(keys, on="validator_index", how="left", maintain_order="left")
        .with_columns(
            *(part.alias(f"{name}_wei") for name, part in PARTS.items()),
            finality=pl.lit("finalized"),
        )
    )


def scan_income(view: View) -> pl.LazyFrame:
    """Return income, one row per validator per finalized epoch."""
    return view.scan("income_history").filter(pl.col("epoch") <= view.head.finalized_epoch)


def scan_rewards(view: View) -> pl.LazyFrame:
    """Return income with what the proposer received for its blocks: fees, or relay payments.

    The priority fees in the income of V1 go to the builder of a block, if it has one.
    """
    key = ["validator_index", "epoch"]
    received = (
        view.scan("execution_blocks")
        .group_by(pl.col("proposer_index").alias("validator_index"), "epoch")
        .agg(pl.col("producer_reward_wei").sum())
    )
    return (
        scan_income(view)
        .drop("tx_fee_reward_wei")
        .join(received, on=key, how="left", maintain_order="left")
        .with_columns(pl.col("producer_reward_wei").fill_null(NONE))
    )


def derive_rows_to_sum(view: View) -> pl.LazyFrame:
    """Return income with the columns that a summary selects by."""
    return scan_rewards(view).rename({"epoch": "last_epoch"})


def summarize(income: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rewards of all rows together, one row."""
    return income.select(cs.ends_with("_gwei").sum(), EXECUTION.sum()).select(
        *(part.alias(f"{name}_wei") for name, part in PARTS.items()),
        finality=pl.lit("finalized"),
    )
