"""Rewards, from the income of generation 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from beaconframes.server.v2.rows.amounts import wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def gwei(*names: str) -> pl.Expr:
    """Return the sum of parts of the income, in gwei."""
    return pl.sum_horizontal(pl.col(f"{name}_gwei") for name in names)


HEAD, SOURCE, TARGET = (f"attestation_{vote}_reward" for vote in ("head", "source", "target"))
NO_SOURCE, NO_TARGET = "attestation_source_penalty", "attestation_target_penalty"
LEAK, SYNC, NO_SYNC = "finality_delay_penalty", "sync_committee_reward", "sync_committee_penalty"
INCLUDED = "proposer_attestation_inclusion_reward"
INCLUDED_SYNC = "proposer_sync_inclusion_reward"
INCLUDED_SLASHING = "proposer_slashing_inclusion_reward"
SLASHED = "slashing_penalty"

FEES = pl.col("tx_fee_reward_wei")
PROPOSED = wei(gwei(INCLUDED, INCLUDED_SYNC, INCLUDED_SLASHING, "slashing_reward")) + FEES
REWARD = wei(gwei(HEAD, SOURCE, TARGET, SYNC)) + PROPOSED
PENALTY = wei(gwei(NO_SOURCE, NO_TARGET, LEAK, NO_SYNC, SLASHED))
NONE = pl.lit(0, pl.Decimal(28, 0))

PARTS: dict[str, pl.Expr] = {
    "total": REWARD - PENALTY,
    "total_reward": REWARD,
    "total_penalty": PENALTY,
    "total_missed": NONE,
    "attestation_total": wei(gwei(HEAD, SOURCE, TARGET) - gwei(NO_SOURCE, NO_TARGET, LEAK)),
    "attestation_head_total": wei(gwei(HEAD)),
    "attestation_head_reward": wei(gwei(HEAD)),
    "attestation_head_penalty": NONE,
    "attestation_head_missed": NONE,
    "attestation_source_total": wei(gwei(SOURCE) - gwei(NO_SOURCE)),
    "attestation_source_reward": wei(gwei(SOURCE)),
    "attestation_source_penalty": wei(gwei(NO_SOURCE)),
    "attestation_source_missed": NONE,
    "attestation_target_total": wei(gwei(TARGET) - gwei(NO_TARGET)),
    "attestation_target_reward": wei(gwei(TARGET)),
    "attestation_target_penalty": wei(gwei(NO_TARGET)),
    "attestation_target_missed": NONE,
    "attestation_inactivity_leak_penalty": wei(gwei(LEAK)),
    "attestation_inclusion_delay_total": pl.lit(None, pl.Decimal(28, 0)),
    "attestation_inclusion_delay_missed": pl.lit(None, pl.Decimal(28, 0)),
    "sync_committee_total": wei(gwei(SYNC) - gwei(NO_SYNC)),
    "sync_committee_reward": wei(gwei(SYNC)),
    "sync_committee_penalty": wei(gwei(NO_SYNC)),
    "sync_committee_missed": NONE,
    "proposal_total": PROPOSED,
    "proposal_execution_layer_reward": FEES,
    "proposal_attestation_inclusion_reward": wei(gwei(INCLUDED)),
    "proposal_sync_inclusion_reward": wei(gwei(INCLUDED_SYNC)),
    "proposal_slashing_inclusion_reward": wei(gwei(INCLUDED_SLASHING, "slashing_reward")),
    "proposal_missed_cl_reward": NONE,
    "proposal_missed_el_reward": NONE,
}
"""What each part of a reward is in terms of the income; what was missed is not known there."""


def rows(view: View) -> pl.LazyFrame:
    """Return the rewards of every validator in every finalized epoch."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    return (
        income(view)
        .join(keys, on="validator_index", how="left", maintain_order="left")
        .with_columns(
            *(part.alias(f"{name}_wei") for name, part in PARTS.items()),
            finality=pl.lit("finalized"),
        )
    )


def income(view: View) -> pl.LazyFrame:
    """Return the income of the finalized epochs."""
    return view.scan("income_history").filter(pl.col("epoch") <= view.head.finalized_epoch)


def rows_to_add(view: View) -> pl.LazyFrame:
    """Return the income of every validator in every finalized epoch."""
    return income(view).rename({"epoch": "last_epoch"})


def summary(income: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rewards of all the rows together."""
    return income.select(cs.ends_with("_gwei").sum(), pl.col("tx_fee_reward_wei").sum()).select(
        *(part.alias(f"{name}_wei") for name, part in PARTS.items()),
        finality=pl.lit("finalized"),
    )
