"""How validators did, from their income, the blocks and the last duties of generation 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from beaconframes.service.generation2.rows.duties import worth

if TYPE_CHECKING:
    from beaconframes.endpoint import View

WEIGHTS = {"attestation": 0.844, "proposal": 0.125, "sync_committee": 0.031}
"""What the score of all duties gives to each kind."""

VOTES = {"head": 14, "source": 14, "target": 26}
"""What the protocol gives to each part of a vote."""


def tallies(view: View) -> pl.LazyFrame:
    """Return what each validator had to do and did, one row per validator per finalized epoch."""
    keys = ["validator_index", "epoch"]
    earned = {
        vote: (pl.col(f"attestation_{vote}_reward_gwei") > 0).cast(pl.Int64) for vote in VOTES
    }
    included = pl.max_horizontal(*earned.values())
    fined = pl.max_horizontal(
        (pl.col(f"attestation_{vote}_penalty_gwei") > 0).cast(pl.Int64)
        for vote in ("source", "target")
    )
    assigned = pl.max_horizontal(included, fined)
    seats = view.scan("sync_committees").select("period", "seat", "validator_index")
    signed, unsigned = (
        (pl.col(f"sync_committee_{kind}_gwei") // pl.col("worth")).fill_null(0)
        for kind in ("reward", "penalty")
    )
    return (
        view.scan("income_history")
        .filter(pl.col("epoch") <= view.head.finalized_epoch)
        .join(worth(view, seats), on=keys, how="left")
        .join(proposals(view), on=keys, how="left")
        .join(delays(view), on=keys, how="left")
        .select(
            *keys,
            attestation_assigned=assigned,
            attestation_included=included,
            attestation_missed=assigned - included,
            **{f"attestation_correct_{vote}": one for vote, one in earned.items()},
            **{f"attestation_valuable_correct_{vote}": one for vote, one in earned.items()},
            sync_committee_assigned=signed + unsigned,
            sync_committee_successful=signed,
            sync_committee_missed=unsigned,
            sync_committee_scheduled=pl.lit(0),
            proposal_assigned=pl.col("proposal_assigned").fill_null(0),
            proposal_successful=pl.col("proposal_successful").fill_null(0),
            proposal_missed=pl.col("proposal_missed").fill_null(0),
            proposal_included_slashings=pl.col("proposal_included_slashings").fill_null(0),
            delay="delay",
            delay_without_missed="delay_without_missed",
        )
        .filter(pl.sum_horizontal(cs.ends_with("_assigned")) > 0)
    )


def proposals(view: View) -> pl.LazyFrame:
    """Return what each validator had to propose in each epoch."""
    came = pl.col("status") == "proposed"
    slashings = pl.col("proposer_slashings_count") + pl.col("attester_slashings_count")
    return (
        view.scan("blocks")
        .filter(pl.col("proposer_index").is_not_null())
        .group_by("epoch", validator_index="proposer_index")
        .agg(
            proposal_assigned=pl.len().cast(pl.Int64),
            proposal_successful=came.sum().cast(pl.Int64),
            proposal_missed=(~came).sum().cast(pl.Int64),
            proposal_included_slashings=slashings.filter(came).sum(),
        )
    )


def delays(view: View) -> pl.LazyFrame:
    """Return how long inclusion took, as long as duties are kept."""
    delay = pl.col("inclusion_slot") - pl.col("attester_slot")
    blocks = view.scan("blocks").group_by("slot").agg(came=(pl.col("status") == "proposed").any())
    passed = blocks.sort("slot").select("slot", passed=pl.col("came").cast(pl.Int64).cum_sum())
    return (
        view.scan("attestations")
        .join(passed, left_on="attester_slot", right_on="slot", how="left")
        .join(passed, left_on="inclusion_slot", right_on="slot", how="left", suffix="_since")
        .select(
            "validator_index",
            "epoch",
            delay=delay,
            delay_without_missed=pl.col("passed_since") - pl.col("passed"),
        )
    )


def scored() -> dict[str, pl.Expr]:
    """Return the scores and averages that follow from duties, one by one or added up."""
    weight = sum(VOTES.values())
    votes = pl.sum_horizontal(
        pl.col(f"attestation_correct_{vote}") * share for vote, share in VOTES.items()
    )
    parts = {
        "attestation": votes / (pl.col("attestation_assigned") * weight),
        "proposal": pl.col("proposal_successful") / pl.col("proposal_assigned"),
        "sync_committee": pl.col("sync_committee_successful") / pl.col("sync_committee_assigned"),
    }
    known = {
        name: pl.when(pl.col(f"{name}_assigned") > 0).then(part) for name, part in parts.items()
    }
    total = pl.sum_horizontal(part * WEIGHTS[name] for name, part in known.items())
    of = pl.sum_horizontal(
        pl.when(part.is_not_null()).then(WEIGHTS[name]) for name, part in known.items()
    )
    return {
        **{f"beaconscore_{name}": part for name, part in known.items()},
        "beaconscore": pl.when(of > 0).then(total / of),
        "avg_inclusion_delay": pl.col("delay").cast(pl.Float64),
        "avg_inclusion_delay_excluding_missed_slots": pl.col("delay_without_missed").cast(
            pl.Float64
        ),
        "finality": pl.lit("finalized"),
    }


def rows_to_add(view: View) -> pl.LazyFrame:
    """Return the duties of every validator in every finalized epoch."""
    return tallies(view).rename({"epoch": "last_epoch"})


def summary(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return how all the rows together did."""
    return rows.select(
        cs.matches("^(attestation|sync_committee|proposal)_").sum(),
        cs.starts_with("delay").mean(),
    ).with_columns(**scored())
