"""How duties were done: from income, which tells of every epoch, and from blocks.

A vote that was right earned something; one that was wrong, late or missing did not. Delays are
known as long as duties are kept, and null before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from beaconframes.server.v2.rows.duties import counted
from beaconframes.server.v2.rows.rewards import income

if TYPE_CHECKING:
    from beaconframes.endpoint import View

VOTES = {"source": 14, "target": 26, "head": 14}
"""What the protocol weighs the votes of an attestation with."""

WEIGHTS = {"attestation": 0.844, "proposal": 0.125, "sync_committee": 0.031}
"""What the service weighs the parts of a score with; of parts that there are, in proportion."""

SUCCESSES = {
    "proposal": ("proposals_successful", "proposals_assigned"),
    "sync_committee": ("sync_committee_successful", "sync_committee_assigned"),
}


def rows(view: View) -> pl.LazyFrame:
    """Return the performance of every validator in every finalized epoch."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    found = duties(view).join(keys, on="validator_index", how="left", maintain_order="left")
    return scored(found.with_columns(finality=pl.lit("finalized")))


def rows_to_add(view: View) -> pl.LazyFrame:
    """Return the duties of every validator in every finalized epoch."""
    return duties(view).rename({"epoch": "last_epoch"})


def summary(found: pl.LazyFrame) -> pl.LazyFrame:
    """Return the performance of all rows together, its scores from the sums."""
    return scored(found.select(*SUMS)).with_columns(finality=pl.lit("finalized"))


SUMS = [
    cs.starts_with("attestations_", "proposals_", "sync_committee_").sum(),
    cs.contains("correct_").sum(),
    pl.col("slashings_included").sum(),
    cs.starts_with("average_").mean(),
]
"""What of the duties of several rows makes that of all of them."""


def scored(found: pl.LazyFrame) -> pl.LazyFrame:
    """Return duties with the scores that follow from them."""
    votes = pl.sum_horizontal(pl.col(f"correct_{vote}") * by for vote, by in VOTES.items())
    parts = {"attestation": ratio(votes / sum(VOTES.values()), pl.col("attestations_assigned"))}
    parts |= {part: ratio(pl.col(of), pl.col(all_)) for part, (of, all_) in SUCCESSES.items()}
    named = {part: pl.col(f"beaconscore_{part}") for part in parts}
    total = pl.sum_horizontal(named[part] * by for part, by in WEIGHTS.items())
    weight = pl.sum_horizontal(named[part].is_not_null() * by for part, by in WEIGHTS.items())
    scores = {f"beaconscore_{part}": score for part, score in parts.items()}
    return found.with_columns(**scores).with_columns(beaconscore=ratio(total, weight))


def ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Return a part of a whole, null where there is no whole."""
    return pl.when(whole > 0).then(part / whole)


def duties(view: View) -> pl.LazyFrame:
    """Return how many duties every validator had and did in every finalized epoch."""
    right = {f"correct_{vote}": pl.col(f"attestation_{vote}_reward_gwei") > 0 for vote in VOTES}
    got, lost = pl.col("sync_committee_reward_gwei"), pl.col("sync_committee_penalty_gwei")
    both = ["validator_index", "epoch"]
    signed = pl.when(got > 0).then((got * pl.col("blocks") / (got + lost)).round()).otherwise(0)
    slots = view.chain.slots_per_epoch
    return (
        income(view)
        .with_columns(period=pl.col("epoch") // view.chain.epochs_per_sync_period)
        .join(members(view), on=["validator_index", "period"], how="left", maintain_order="left")
        .join(blocks(view), on="epoch", how="left", maintain_order="left")
        .join(proposals(view), on=both, how="left", maintain_order="left")
        .join(delays(view), on=both, how="left", maintain_order="left")
        .with_columns(**right, voted=pl.any_horizontal(*right.values()))
        .select(
            *both,
            cs.starts_with("average_"),
            cs.starts_with("correct_").cast(pl.Int64),
            cs.starts_with("correct_").cast(pl.Int64).name.prefix("valuable_"),
            cs.starts_with("proposals_").fill_null(0),
            pl.col("slashings_included").fill_null(0),
            attestations_assigned=1,
            attestations_included=pl.coalesce("kept", "voted").cast(pl.Int64),
            attestations_missed=1 - pl.coalesce("kept", "voted").cast(pl.Int64),
            sync_committee_assigned=pl.when("member").then(slots).otherwise(0).cast(pl.Int64),
            sync_committee_successful=pl.when("member").then(signed).otherwise(0).cast(pl.Int64),
            sync_committee_scheduled=0,
        )
        .with_columns(
            sync_committee_missed=pl.col("sync_committee_assigned")
            - pl.col("sync_committee_successful")
        )
    )


def members(view: View) -> pl.LazyFrame:
    """Return who is in a sync committee, however many seats they have."""
    seats = view.scan("sync_committees").select("validator_index", "period").unique()
    return seats.with_columns(member=pl.lit(value=True))


def blocks(view: View) -> pl.LazyFrame:
    """Return how many blocks of every epoch could carry signatures of the committee."""
    found = view.scan("blocks").filter(
        pl.col("sync_aggregate_bits").is_not_null(), pl.col("status") == "proposed"
    )
    return found.group_by("epoch").agg(blocks=pl.len().cast(pl.Int64))


def proposals(view: View) -> pl.LazyFrame:
    """Return how many slots every validator was to propose in, and what came of it."""
    came = pl.col("status") == "proposed"
    reported = pl.col("attester_slashings_count") + pl.col("proposer_slashings_count")
    slots = (
        view.scan("blocks")
        .filter(pl.col("status").is_in(["proposed", "missed", "orphaned"]))
        .group_by("slot", "epoch", validator_index="proposer_index")
        .agg(came=came.any(), reported=reported.filter(came).sum())
    )
    return slots.group_by("validator_index", "epoch").agg(
        proposals_assigned=pl.len().cast(pl.Int64),
        proposals_successful=pl.col("came").sum().cast(pl.Int64),
        proposals_missed=(~pl.col("came")).sum().cast(pl.Int64),
        slashings_included=pl.col("reported").sum(),
    )


def delays(view: View) -> pl.LazyFrame:
    """Return whether and how late votes were included, as long as duties are kept."""
    until = counted(view, "until").rename({"slot": "inclusion_slot"})
    late = pl.col("inclusion_slot") - pl.col("attester_slot")
    return (
        view.scan("attestations")
        .join(counted(view, "before").rename({"slot": "attester_slot"}), "attester_slot", "left")
        .join(until, on="inclusion_slot", how="left")
        .select(
            "validator_index",
            "epoch",
            kept=pl.col("status") == "included",
            average_inclusion_delay=late.cast(pl.Float64),
            average_inclusion_delay_without_missed_slots=(pl.col("until") - pl.col("before")).cast(
                pl.Float64
            ),
        )
    )
