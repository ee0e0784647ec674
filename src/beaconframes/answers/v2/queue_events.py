"""What each slot adds to the queues of deposits, withdrawals and consolidations, and what it pays.

A block of a real chain has requests, but not whether they were valid, and not which withdrawals
they led to. Counts that depend on that are null. A block without requests adds nothing to a queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import gwei_to_wei

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

EVENT = pl.Schema(dict.fromkeys(("slot", "validator_index", "amount_gwei"), pl.Int64))
MANUAL = pl.Schema(dict.fromkeys(("slot", "validator_index", "request_slot"), pl.Int64))
REQUESTS, DEPOSIT_REQUESTS = "execution_requests", "deposit_requests"
DEPOSITS, MOVES = "deposit_events", "epoch_moves"


def add_queue_events(view: View, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return *rows* of slots with count and sum of the events of each queue."""
    events = [*count_deposits(view), *count_withdrawals(view), *count_consolidations(view)]
    for counts in events:
        rows = rows.join(counts, on="slot", how="left")
    rows = rows.with_columns(pl.col("^(queued|processed)_.*$").fill_null(0))
    return rows if view.is_simulated else hide_unknown(view, rows)


def hide_unknown(view: View, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return *rows* with null for what requests of unknown validity decide."""
    has_sweeps = pl.col("processed_sweeps_count") > 0
    unknown = {
        "queued_deposits": pl.lit(not view.has_table(DEPOSIT_REQUESTS)),
        "processed_deposits": pl.lit(not view.has_table(DEPOSITS)),
        "queued_manual_withdrawals": pl.col("requests_withdrawal").fill_null(value=False),
        "processed_manual_withdrawals": pl.col("follows_request") & has_sweeps,
        "processed_sweeps": pl.col("follows_request") & has_sweeps,
        "queued_consolidations": pl.col("requests_consolidation").fill_null(value=False),
        "processed_consolidations": pl.lit(not view.has_table(MOVES)),
    }
    return (
        mark_requests(view, rows)
        .with_columns(
            pl.when(~is_unknown).then(pl.col(f"{name}_{unit}")).alias(f"{name}_{unit}")
            for name, is_unknown in unknown.items()
            for unit in ("count", "wei")
        )
        .drop("requests_withdrawal", "requests_consolidation", "follows_request")
    )


def mark_requests(view: View, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return *rows* with whether the slot has requests, and whether a withdrawal request precedes.

    A request with the amount 0 is an exit, which the sweep pays. A consolidation of a validator
    with itself is a switch to compounding credentials.
    """
    if not view.has_table(REQUESTS):
        flags = ("requests_withdrawal", "requests_consolidation", "follows_request")
        return rows.with_columns(pl.lit(value=True).alias(name) for name in flags)
    kind = pl.col("kind")
    requests = view.scan(REQUESTS).select(
        slot="block_slot",
        requests_withdrawal=(kind == "withdrawal") & (pl.col("amount_gwei") > 0),
        requests_consolidation=(kind == "consolidation")
        & (pl.col("pubkey") != pl.col("target_pubkey")),
    )
    first = requests.filter("requests_withdrawal").select(first=pl.col("slot").min())
    return (
        rows.join(
            requests.group_by("slot").agg(pl.all().any()), "slot", how="left", maintain_order="left"
        )
        .join(first, how="cross", maintain_order="left")
        .with_columns(follows_request=(pl.col("slot") > pl.col("first")).fill_null(value=False))
        .drop("first")
    )


def count_deposits(view: View) -> list[pl.LazyFrame]:
    """Return count and sum of deposits, one row per slot: those in blocks, and those credited.

    Deposits in blocks are credited immediately, and deposit requests later.
    """
    in_blocks = view.scan("slot_deposits").select("amount_gwei", slot="block_slot")
    if view.is_simulated:
        return [_count(in_blocks, name) for name in ("queued_deposits", "processed_deposits")]
    queued, credited = [in_blocks], in_blocks
    if view.has_table(DEPOSIT_REQUESTS):
        queued.append(view.scan(DEPOSIT_REQUESTS).select("amount_gwei", slot="block_slot"))
    if view.has_table(DEPOSITS):
        credited = view.scan(DEPOSITS).select("amount_gwei", "slot")
    return [
        _count(pl.concat(queued), "queued_deposits"),
        _count(credited, "processed_deposits"),
    ]


def count_withdrawals(view: View) -> list[pl.LazyFrame]:
    """Return counts and sums of sweeps, of paid requests and of new requests, by slot."""
    withdrawals = view.scan("slot_withdrawals").rename({"block_slot": "slot"})
    requested = view.scan("manual_withdrawal_events", MANUAL)
    is_manual = pl.col("request_slot").is_not_null()
    paid = withdrawals.join(requested, on=["slot", "validator_index"], how="left")
    return [
        _count(paid.filter(~is_manual), "processed_sweeps"),
        _count(paid.filter(is_manual), "processed_manual_withdrawals"),
        _count(view.scan("withdrawal_request_events", EVENT), "queued_manual_withdrawals"),
    ]


def count_consolidations(view: View) -> list[pl.LazyFrame]:
    """Return count and sum of consolidations that moved a balance, and of new ones, by slot."""
    moved = pl.LazyFrame(schema=EVENT)
    if view.has_table(MOVES):
        leaves = (pl.col("kind") == "pending_consolidation") & (pl.col("amount_gwei") < 0)
        last_slot = view.chain.last_slot_of(pl.col("epoch"))
        moved = view.scan(MOVES).filter(leaves).select(-pl.col("amount_gwei"), slot=last_slot)
    queued = pl.LazyFrame(schema=EVENT)
    return [_count(moved, "processed_consolidations"), _count(queued, "queued_consolidations")]


def _count(events: pl.LazyFrame, name: str) -> pl.LazyFrame:
    return events.group_by("slot").agg(
        pl.len().cast(pl.Int64).alias(f"{name}_count"),
        gwei_to_wei(pl.col("amount_gwei").sum()).alias(f"{name}_wei"),
    )
