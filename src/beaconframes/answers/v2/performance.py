"""Performance of validators, from their income and from blocks.

A correct vote earns a reward; a wrong, late or missing vote earns none. The average delay of no
included attestation is 0, because the API documents a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from beaconframes.answers.v2.amounts import find_last_epoch
from beaconframes.answers.v2.duties import (
    LATE,
    MISSED,
    count_blocks_between,
    count_epoch_blocks,
    has_late_events,
)
from beaconframes.answers.v2.rewards import derive_proposals, scan_income
from beaconframes.derive.validator_tables import is_active

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

VOTES = {"source": 14, "target": 26, "head": 14}
"""Weights of the votes of an attestation, from the consensus specification."""

WEIGHTS = {"attestation": 0.844, "proposal": 0.125, "sync_committee": 0.031}
"""Weights of the parts of a score; parts without duties do not count."""

SUCCESSES = {
    "proposal": ("proposals_successful", "proposals_assigned"),
    "sync_committee": ("sync_committee_successful", "sync_committee_assigned"),
}


def derive_rows(view: View) -> pl.LazyFrame:
    """Return performance, one row per validator per finalized epoch."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    duties = derive_duties(view).join(keys, on="validator_index", how="left", maintain_order="left")
    return add_scores(
        duties.with_columns(pl.col(AVERAGES).fill_null(0), finality=pl.lit("finalized"))
    )


def derive_rows_to_sum(view: View) -> pl.LazyFrame:
    """Return sums of duties, one row per validator and day."""
    return view.derive(sum_duties, days="last_epoch")


def derive_all_rows_to_sum(view: View) -> pl.LazyFrame:
    """Return sums of duties, one row per validator and day, for a result that needs all of them."""
    return view.derive(sum_duties, days="last_epoch", needs_all=True)


def sum_duties(view: View) -> pl.LazyFrame:
    """Return sums of duties, one row per validator and day."""
    duties = derive_duties(view).with_columns(last_epoch=find_last_epoch(view))
    return duties.group_by("validator_index", "last_epoch").agg(
        COUNTS.sum(),
        pl.col(AVERAGES).sum(),
        pl.col(AVERAGES).count().name.prefix("counted_"),
    )


def summarize(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the performance of all rows together, one row; scores follow from the sums."""
    return add_scores(rows.select(*SUMS)).with_columns(finality=pl.lit("finalized"))


AVERAGES = ("average_inclusion_delay", "average_inclusion_delay_without_missed_slots")
COUNTS = cs.starts_with(
    "attestations_", "proposals_", "sync_committee_", "slashings_"
) | cs.contains("correct_")

SUMS = [
    COUNTS.sum(),
    *(
        pl.when(pl.col(f"counted_{name}").sum() > 0)
        .then(pl.col(name).sum() / pl.col(f"counted_{name}").sum())
        .otherwise(0.0)
        .alias(name)
        for name in AVERAGES
    ),
]
"""The expressions that summarize the sums of duties in several rows."""


def add_scores(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return duties with their scores."""
    votes = pl.sum_horizontal(pl.col(f"correct_{vote}") * by for vote, by in VOTES.items())
    parts = {"attestation": divide(votes / sum(VOTES.values()), pl.col("attestations_assigned"))}
    parts |= {
        part: divide(pl.col(successful), pl.col(assigned))
        for part, (successful, assigned) in SUCCESSES.items()
    }
    scores_by_part = {part: pl.col(f"beaconscore_{part}") for part in parts}
    total = pl.sum_horizontal(scores_by_part[part] * by for part, by in WEIGHTS.items())
    weight = pl.sum_horizontal(
        scores_by_part[part].is_not_null() * by for part, by in WEIGHTS.items()
    )
    scores = {f"beaconscore_{part}": score for part, score in parts.items()}
    return rows.with_columns(**scores).with_columns(beaconscore=divide(total, weight))


def divide(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Return *part* divided by *whole*, null where *whole* is 0."""
    return pl.when(whole > 0).then(part / whole)


def derive_duties(view: View) -> pl.LazyFrame:
    """Return counts of duties, one row per validator per finalized epoch."""
    correct = {f"correct_{vote}": pl.col(f"attestation_{vote}_reward_gwei") > 0 for vote in VOTES}
    active, is_missed = is_active(pl.col("epoch")), pl.col("is_missed")
    lifetimes = view.scan("validators").select("validator_index", "activation_epoch", "exit_epoch")
    reward, penalty = pl.col("sync_committee_reward_gwei"), pl.col("sync_committee_penalty_gwei")
    key = ["validator_index", "epoch"]
    signed = (
        pl.when(reward > 0)
        .then((reward * pl.col("blocks") / (reward + penalty)).round())
        .otherwise(0)
    )
    slots = view.chain.slots_per_epoch
    defaults = []
    if has_late_events(view):
        in_time = pl.col("is_missed").is_null()
        defaults = [pl.when(in_time).then(0.0).otherwise(pl.col(n)).alias(n) for n in AVERAGES]
        defaults.append(pl.col("is_missed").fill_null(value=False))
    return (
        scan_income(view)
        .with_columns(period=pl.col("epoch") // view.chain.epochs_per_sync_period)
        .join(
            view.derive(derive_members),
            on=["validator_index", "period"],
            how="left",
            maintain_order="left",
        )
        .join(view.derive(count_epoch_blocks), on="epoch", how="left", maintain_order="left")
        .join(view.derive(derive_proposals), on=key, how="left", maintain_order="left")
        .join(lifetimes, on="validator_index", how="left", maintain_order="left")
        .join(derive_delays(view), on=key, how="left", maintain_order="left")
        .with_columns(*defaults, **correct)
        .with_columns(
            is_active=active, is_included=active & ~is_missed, is_missed=active & is_missed
        )
        .select(
            *key,
            *(pl.when("is_included").then(pl.col(n)).alias(n) for n in AVERAGES),
            cs.starts_with("correct_").cast(pl.Int64),
            cs.starts_with("correct_").cast(pl.Int64).name.prefix("valuable_"),
            cs.starts_with("proposals_").fill_null(0),
            pl.col("slashings_included").fill_null(0),
            attestations_assigned=pl.col("is_active").cast(pl.Int64),
            attestations_included=pl.col("is_included").cast(pl.Int64),
            attestations_missed=pl.col("is_missed").cast(pl.Int64),
            sync_committee_assigned=pl.when("is_member").then(slots).otherwise(0).cast(pl.Int64),
            sync_committee_successful=pl.when("is_member").then(signed).otherwise(0).cast(pl.Int64),
            sync_committee_scheduled=0,
        )
        .with_columns(
            sync_committee_missed=pl.col("sync_committee_assigned")
            - pl.col("sync_committee_successful")
        )
    )


def derive_members(view: View) -> pl.LazyFrame:
    """Return the members of sync committees, one row per validator and period."""
    seats = view.scan("sync_committees").select("validator_index", "period").unique()
    return seats.with_columns(is_member=pl.lit(value=True))


def derive_delays(view: View) -> pl.LazyFrame:
    """Return whether an attestation was missed, and its delays, one row per validator and epoch.

    With tables of missed and late attestations, a row that is not here has no delay.
    """
    slot = pl.col("slot")
    if has_late_events(view):
        rows = [
            view.scan(LATE).with_columns(is_missed=pl.lit(value=False)),
            view.scan(MISSED).with_columns(is_missed=pl.lit(value=True)),
        ]
        attestations = pl.concat(rows, how="diagonal")
    else:
        attestations = view.scan("attestations").select(
            "validator_index",
            "epoch",
            "inclusion_slot",
            slot="attester_slot",
            is_missed=pl.col("status") == "missed",
        )
    return count_blocks_between(view, attestations).select(
        "validator_index",
        "epoch",
        "is_missed",
        average_inclusion_delay=(pl.col("inclusion_slot") - slot - 1).cast(pl.Float64),
        average_inclusion_delay_without_missed_slots=(
            pl.col("blocks_until") - pl.col("blocks_before") - 1
        ).cast(pl.Float64),
    )
