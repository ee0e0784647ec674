"""Rewards, from the income of V1 and the rewards of its execution blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import ZERO, find_last_epoch, gwei_to_wei, sum_known

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


def sum_gwei(*names: str) -> pl.Expr:
    """Return the sum of the named parts of the income, in gwei; null if one is unknown."""
    return pl.sum_horizontal((pl.col(f"{name}_gwei") for name in names), ignore_nulls=False)


HEAD, SOURCE, TARGET = (f"attestation_{vote}_reward" for vote in ("head", "source", "target"))
NO_SOURCE, NO_TARGET = "attestation_source_penalty", "attestation_target_penalty"
LEAK, SYNC, NO_SYNC = "finality_delay_penalty", "sync_committee_reward", "sync_committee_penalty"
INCLUDED = "proposer_attestation_inclusion_reward"
INCLUDED_SYNC = "proposer_sync_inclusion_reward"
INCLUDED_SLASHING = "proposer_slashing_inclusion_reward"
SLASHED = "slashing_penalty"

MISSED_REWARDS = "missed_reward_events"
NO_HEAD_REWARD, NO_SOURCE_REWARD, NO_TARGET_REWARD = (
    f"attestation_{vote}_missed" for vote in ("head", "source", "target")
)
NO_BLOCK = "proposal_cl_missed"

EXECUTION = pl.col("producer_reward_wei")
PROPOSED = (
    gwei_to_wei(sum_gwei(INCLUDED, INCLUDED_SYNC, INCLUDED_SLASHING, "slashing_reward")) + EXECUTION
)
REWARD = gwei_to_wei(sum_gwei(HEAD, SOURCE, TARGET, SYNC)) + PROPOSED
PENALTY = gwei_to_wei(sum_gwei(NO_SOURCE, NO_TARGET, LEAK, NO_SYNC, SLASHED))
MISSED_EXECUTION = pl.col("missed_producer_reward_wei")
MISSED_CONSENSUS = gwei_to_wei(
    # A seat that does not sign loses as much as it would have earned.
    sum_gwei(NO_HEAD_REWARD, NO_SOURCE_REWARD, NO_TARGET_REWARD, NO_SYNC, NO_BLOCK)
)

PARTS: dict[str, pl.Expr] = {
    "total": REWARD - PENALTY,
    "total_reward": REWARD,
    "total_penalty": PENALTY,
    "total_missed": MISSED_CONSENSUS + MISSED_EXECUTION,
    "attestation_total": gwei_to_wei(
        sum_gwei(HEAD, SOURCE, TARGET) - sum_gwei(NO_SOURCE, NO_TARGET, LEAK)
    ),
    "attestation_head_total": gwei_to_wei(sum_gwei(HEAD)),
    "attestation_head_reward": gwei_to_wei(sum_gwei(HEAD)),
    "attestation_head_penalty": ZERO,
    "attestation_head_missed": gwei_to_wei(sum_gwei(NO_HEAD_REWARD)),
    "attestation_source_total": gwei_to_wei(sum_gwei(SOURCE) - sum_gwei(NO_SOURCE)),
    "attestation_source_reward": gwei_to_wei(sum_gwei(SOURCE)),
    "attestation_source_penalty": gwei_to_wei(sum_gwei(NO_SOURCE)),
    "attestation_source_missed": gwei_to_wei(sum_gwei(NO_SOURCE_REWARD)),
    "attestation_target_total": gwei_to_wei(sum_gwei(TARGET) - sum_gwei(NO_TARGET)),
    "attestation_target_reward": gwei_to_wei(sum_gwei(TARGET)),
    "attestation_target_penalty": gwei_to_wei(sum_gwei(NO_TARGET)),
    "attestation_target_missed": gwei_to_wei(sum_gwei(NO_TARGET_REWARD)),
    "attestation_inactivity_leak_penalty": gwei_to_wei(sum_gwei(LEAK)),
    "attestation_inclusion_delay_total": pl.lit(None, pl.Decimal(28, 0)),
    "attestation_inclusion_delay_missed": pl.lit(None, pl.Decimal(28, 0)),
    "sync_committee_total": gwei_to_wei(sum_gwei(SYNC) - sum_gwei(NO_SYNC)),
    "sync_committee_reward": gwei_to_wei(sum_gwei(SYNC)),
    "sync_committee_penalty": gwei_to_wei(sum_gwei(NO_SYNC)),
    "sync_committee_missed": gwei_to_wei(sum_gwei(NO_SYNC)),
    "proposal_total": PROPOSED,
    "proposal_execution_layer_reward": EXECUTION,
    "proposal_attestation_inclusion_reward": gwei_to_wei(sum_gwei(INCLUDED)),
    "proposal_sync_inclusion_reward": gwei_to_wei(sum_gwei(INCLUDED_SYNC)),
    "proposal_slashing_inclusion_reward": gwei_to_wei(
        sum_gwei(INCLUDED_SLASHING, "slashing_reward")
    ),
    "proposal_missed_cl_reward": gwei_to_wei(sum_gwei(NO_BLOCK)),
    "proposal_missed_el_reward": MISSED_EXECUTION,
}
"""Each part of the rewards in terms of the income and of the missed rewards."""


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

    The priority fees in the income of V1 go to the builder of a block, if it has one. Without
    execution blocks, what a proposer received is null, and so is what a missed block would have
    earned. Without the table of missed rewards, these are null.
    """
    key = ["validator_index", "epoch"]
    received, missed = view.derive(sum_payments), view.derive(derive_missed_blocks, days="epoch")
    return (
        add_missed_rewards(view, scan_income(view).drop("tx_fee_reward_wei"))
        .join(received, on=key, how="left", maintain_order="left")
        .join(missed, on=key, how="left", maintain_order="left")
        .with_columns(
            pl.when("has_missed").then(f"{NO_BLOCK}_gwei").otherwise(0).alias(f"{NO_BLOCK}_gwei"),
            pl.when("has_block").then("producer_reward_wei").otherwise(ZERO),
            pl.when("has_missed").then("missed_producer_reward_wei").otherwise(ZERO),
        )
        .drop("has_block", "has_missed")
    )


def scan_payments(view: View) -> pl.LazyFrame:
    """Return what proposers received for canonical blocks, one row per block; null if unknown.

    A block without a payload, from before the merge, paid nothing.
    """
    has_payload = pl.col("exec_block_number").is_not_null()
    blocks = (
        view.scan("blocks")
        .filter(pl.col("status") == "proposed", pl.col("proposer_index").is_not_null())
        .select("slot", "epoch", has_payload.alias("has_payload"), validator_index="proposer_index")
    )
    unknown = pl.lit(None, pl.Decimal(28, 0)).alias("producer_reward_wei")
    if view.has_table("execution_blocks"):
        # An orphaned execution block of the same slot has no epoch.
        payments = view.scan("execution_blocks").select("slot", "epoch", "producer_reward_wei")
        blocks = blocks.join(payments, on=["slot", "epoch"], how="left", maintain_order="left")
    else:
        blocks = blocks.with_columns(unknown)
    payment = pl.when("has_payload").then("producer_reward_wei").otherwise(ZERO)
    return blocks.select("slot", "epoch", "validator_index", payment)


def sum_payments(view: View) -> pl.LazyFrame:
    """Return what proposers received, one row per validator and epoch with any block."""
    key = ["validator_index", "epoch"]
    payments = scan_payments(view).group_by(key)
    return payments.agg(sum_known("producer_reward_wei"), has_block=pl.lit(value=True))


def add_missed_rewards(view: View, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return *rows* of validators and epochs with what their votes missed; null if unknown."""
    names = [f"{name}_gwei" for name in (NO_HEAD_REWARD, NO_SOURCE_REWARD, NO_TARGET_REWARD)]
    if not view.has_table(MISSED_REWARDS):
        return rows.with_columns(pl.lit(None, pl.Int64).alias(name) for name in names)
    missed = view.scan(MISSED_REWARDS).select("validator_index", "epoch", *names, has_missed=True)
    joined = rows.join(missed, ["validator_index", "epoch"], how="left", maintain_order="left")
    # Votes that missed nothing have no row; null in a row is unknown.
    return joined.with_columns(
        pl.when("has_missed").then(pl.col(name)).otherwise(0).alias(name) for name in names
    ).drop("has_missed")


def derive_proposals(view: View) -> pl.LazyFrame:
    """Return counts of assigned and successful proposals, one row per validator and epoch."""
    is_canonical = pl.col("status") == "proposed"
    slashings = pl.col("attester_slashings_count") + pl.col("proposer_slashings_count")
    slots = (
        view.scan("blocks")
        .filter(pl.col("status").is_in(["proposed", "missed", "orphaned"]))
        .group_by("slot", "epoch", validator_index="proposer_index")
        .agg(proposed=is_canonical.any(), slashings=slashings.filter(is_canonical).sum())
    )
    return slots.group_by("validator_index", "epoch").agg(
        proposals_assigned=pl.len().cast(pl.Int64),
        proposals_successful=pl.col("proposed").sum().cast(pl.Int64),
        slashings_included=pl.col("slashings").sum(),
    )


def derive_missed_blocks(view: View) -> pl.LazyFrame:
    """Return what missed blocks would have earned, one row per proposer and epoch with any.

    That is the mean of the rewards of the blocks of the same epoch, rounded down. It is null if the
    reward of one of them is unknown: an index of chosen validators has the income of these only.
    """
    cl_reward = sum_gwei(INCLUDED, INCLUDED_SYNC, INCLUDED_SLASHING, "slashing_reward")
    # The income of an epoch has the rewards of all blocks that a validator proposed in it.
    key = ["epoch", "validator_index"]
    proposers = scan_payments(view).select(key).unique()
    incomes = scan_income(view).select(*key, cl_reward=cl_reward)
    # First the semi join, so that memory holds the few rows of proposers.
    known = incomes.join(proposers, on=key, how="semi")
    el_reward = sum_known("producer_reward_wei").cast(pl.Int128)
    missed = pl.col("proposals_assigned") - pl.col("proposals_successful")
    return (
        derive_proposals(view)
        .filter(missed > 0)
        .join(
            proposers.join(known, on=key, how="left").group_by("epoch").agg(sum_known("cl_reward")),
            on="epoch",
            how="left",
        )
        .join(
            scan_payments(view)
            .with_columns(pl.col("producer_reward_wei").cast(pl.Int128))
            .group_by("epoch")
            .agg(el_reward=el_reward, blocks=pl.len().cast(pl.Int64)),
            on="epoch",
            how="left",
        )
        .select(
            "epoch",
            "validator_index",
            has_missed=pl.lit(value=True),
            proposal_cl_missed_gwei=pl.col("cl_reward") // pl.col("blocks") * missed,
            missed_producer_reward_wei=(pl.col("el_reward") // pl.col("blocks") * missed).cast(
                pl.Decimal(28, 0)
            ),
        )
    )


def derive_rows_to_sum(view: View) -> pl.LazyFrame:
    """Return sums of rewards, one row per validator and day."""
    return view.derive(sum_rewards, days="last_epoch")


def sum_rewards(view: View) -> pl.LazyFrame:
    """Return sums of rewards, one row per validator and day."""
    rewards = scan_rewards(view)
    days = rewards.with_columns(last_epoch=find_last_epoch(view))
    return days.group_by("validator_index", "last_epoch").agg(sum_amounts(rewards))


def sum_amounts(rows: pl.LazyFrame) -> list[pl.Expr]:
    """Return the sums of all amounts in *rows*; a sum with an unknown part is null."""
    names = rows.collect_schema()
    return [sum_known(name) for name in names if name.endswith(("_gwei", "reward_wei"))]


def summarize(income: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rewards of all rows together, one row; a sum with an unknown part is null."""
    return income.select(sum_amounts(income)).select(
        *(part.alias(f"{name}_wei") for name, part in PARTS.items()),
        finality=pl.lit("finalized"),
    )
