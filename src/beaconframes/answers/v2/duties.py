"""Duties by slot: attestations and sync committees."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2 import rewards
from beaconframes.answers.v2.amounts import derive_finality, gwei_to_wei

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

PARTS = {
    name.removeprefix("attestation_"): part
    for name, part in rewards.PARTS.items()
    if name.startswith("attestation_")
}
PARTS["reward_total"] = PARTS.pop("total")
"""Each reward in terms of the income of the epoch, in which a validator attests once."""


def derive_attestations(view: View) -> pl.LazyFrame:
    """Return attestation duties, one row per slot and validator; rewards are null until final."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    income = view.scan("income_history").filter(pl.col("epoch") <= view.head.finalized_epoch)
    has_income = pl.col("attestation_head_reward_gwei").is_not_null()
    delay = pl.col("inclusion_slot") - pl.col("slot") - 1
    without_missed = pl.col("blocks_until") - pl.col("blocks_before") - 1
    return (
        view.scan("attestations")
        .drop("time")
        .rename({"attester_slot": "slot"})
        .join(keys, on="validator_index", how="left")
        .join(
            rewards.add_missed_rewards(view, income.drop("time")),
            on=["validator_index", "epoch"],
            how="left",
        )
        .pipe(partial(count_blocks_between, view))
        .sort("slot", "validator_index")
        .with_columns(
            *(pl.when(has_income).then(part).alias(f"{name}_wei") for name, part in PARTS.items()),
            status=pl.col("status").replace("included", "success"),
            inclusion_delay=delay,
            inclusion_delay_without_missed_block=without_missed,
            finality=derive_finality(view),
        )
    )


MISSED, LATE = "missed_attestation_events", "late_attestation_events"
"""Attestations of final epochs that no block includes, or one after more than one slot.

A dataset without these tables has all attestations.
"""


def has_late_events(view: View) -> bool:
    """Return whether there are tables of missed and late attestations."""
    return view.has_table(MISSED) and view.has_table(LATE)


def count_attestations(view: View) -> pl.LazyFrame:
    """Return how many validators had to attest in each slot, and how many were included."""
    included = (pl.col("status") == "included").sum().cast(pl.Int64)
    attestations, final = view.scan("attestations"), view.head.finalized_epoch
    if has_late_events(view):
        recent = attestations.filter(pl.col("epoch") > final)
        old = [count_old_attestations(view)]
    else:
        recent, old = attestations, []
    recent_counts = recent.group_by(slot="attester_slot").agg(
        assigned=pl.len().cast(pl.Int64), missed=pl.len().cast(pl.Int64) - included
    )
    return pl.concat([*old, recent_counts]).select(
        "slot",
        attestation_assigned="assigned",
        attestation_missed="missed",
        attestation_successful=pl.col("assigned") - pl.col("missed"),
    )


def count_old_attestations(view: View) -> pl.LazyFrame:
    """Return assigned and missed attestations of final epochs, one row per slot.

    The validators of an epoch are divided evenly among its slots; the first slots have the rest.
    """
    length, final = view.chain.slots_per_epoch, view.head.finalized_epoch
    share, rest = pl.col("validators_count") // length, pl.col("validators_count") % length
    missed = view.scan(MISSED).group_by("slot").agg(missed=pl.len().cast(pl.Int64))
    return (
        view.scan("epochs")
        .filter(pl.col("epoch") <= final)
        .select("epoch", share=share, rest=rest, position=pl.int_ranges(0, length))
        .explode("position")
        .select(
            slot=pl.col("epoch") * length + pl.col("position"),
            assigned=pl.col("share") + (pl.col("position") < pl.col("rest")).cast(pl.Int64),
        )
        .join(missed, on="slot", how="left")
        .with_columns(pl.col("missed").fill_null(0))
    )


def count_blocks_between(view: View, attestations: pl.LazyFrame) -> pl.LazyFrame:
    """Return *attestations* with the number of canonical blocks up to both of their slots."""
    counts = view.derive(count_blocks)
    until = {"slot": "inclusion_slot", "blocks": "blocks_until"}
    return attestations.join(
        counts.rename({"blocks": "blocks_before"}), on="slot", how="left"
    ).join(counts.rename(until), on="inclusion_slot", how="left")


def count_blocks(view: View) -> pl.LazyFrame:
    """Return the number of canonical blocks up to each slot, one row per slot."""
    has_block = (pl.col("status") == "proposed").any().cast(pl.Int64)
    slots = view.scan("blocks").group_by("slot").agg(blocks=has_block).sort("slot")
    return slots.with_columns(pl.col("blocks").cum_sum())


def derive_sync_committees(view: View) -> pl.LazyFrame:
    """Return sync committee duties of finalized slots, one row per slot and validator.

    Each seat of a validator signs separately. A slot without a canonical block has no rewards.
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
        .join(derive_seat_rewards(view, seats), on=["epoch", "validator_index"], how="left")
        .join(keys, on="validator_index", how="left")
        .sort("slot", "validator_index")
        .with_columns(
            reward=gwei_to_wei(pl.col("signed") * pl.col("seat_reward").fill_null(0)),
            penalty=gwei_to_wei(pl.col("unsigned") * pl.col("seat_reward").fill_null(0)),
        )
        .select(
            "slot",
            "epoch",
            "validator_index",
            "pubkey",
            status=pl.when(pl.col("signed") > 0)
            .then(pl.lit("success"))
            .otherwise(pl.lit("missed")),
            total_wei=pl.col("reward") - pl.col("penalty"),
            reward_wei="reward",
            penalty_wei="penalty",
            missed_wei="penalty",
            finality=pl.lit("finalized"),
        )
    )


def derive_seat_rewards(view: View, seats: pl.LazyFrame) -> pl.LazyFrame:
    """Return the reward of a seat per block, one row per epoch and member.

    A seat that signs a block earns the reward; a seat that does not sign loses the same amount.
    """
    period = view.chain.epochs_per_sync_period
    seat_counts = seats.group_by("period", "validator_index").agg(seats=pl.len().cast(pl.Int64))
    change = pl.col("sync_committee_reward_gwei") + pl.col("sync_committee_penalty_gwei")
    return (
        view.scan("income_history")
        .select("epoch", "validator_index", change=change, period=pl.col("epoch") // period)
        .join(seat_counts, on=["period", "validator_index"])
        .join(count_epoch_blocks(view), on="epoch")
        .select(
            "epoch",
            "validator_index",
            seat_reward=pl.col("change") // (pl.col("seats") * pl.col("blocks")),
        )
    )


def count_epoch_blocks(view: View) -> pl.LazyFrame:
    """Return the number of canonical blocks with a sync aggregate, one row per epoch."""
    blocks = view.scan("blocks").filter(
        pl.col("sync_aggregate_bits").is_not_null(), pl.col("status") == "proposed"
    )
    return blocks.group_by("epoch").agg(blocks=pl.len().cast(pl.Int64))
