"""The validator queues, from the queue of V1 and the churn limits of the protocol.

The shape of the places of validators in queues is not published; that below is plausible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import ZERO, build_base_status, gwei_to_wei
from beaconframes.answers.v2.queue_events import EVENT, MANUAL
from beaconframes.schema import Count, Epoch, Hex, Table, Text, UnixTime, Wei

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

GWEI_PER_ETH = 10**9
MIN_CHURN, MAX_CHURN = 128 * GWEI_PER_ETH, 256 * GWEI_PER_ETH
CHURN_QUOTIENT = 2**16
KNOWN_CHAINS = ("mainnet", "hoodi")
LOOKAHEAD = 5
"""Minimum number of epochs until an activation or exit takes effect."""
WITHDRAWABILITY_DELAY = 256
"""Number of epochs from then until a withdrawal is paid."""
WITHDRAWALS_PER_BLOCK = 16
MAX_STAKE = {"0x01": 32 * GWEI_PER_ETH, "0x02": 2048 * GWEI_PER_ETH}
"""The maximum effective balance of each kind of withdrawal credentials that a sweep pays."""


class ValidatorQueueRecord(Table):
    """Places in queues. One row per validator in a queue."""

    validator_index = Count("Validator.", wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key")
    queue = Text("deposit or exit.")
    position = Count("Place in the queue, from 1.")
    amount_wei = Wei("Effective balance of the validator.", wire="amount", text=True)
    epoch = Epoch("Estimated epoch of the activation or exit.", wire="estimated_processed_at.epoch")
    time = UnixTime("That estimate as time, UTC.", wire="estimated_processed_at.timestamp")


class OldQueuesRecord(Table):
    """The queues of the network in their shape before July 2026. One row."""

    deposit_churn_wei = Wei("Amount per epoch.", wire="deposit_queue.churn", text=True)
    queued_count = Count("Waiting deposits and top-ups.", wire="deposit_queue.deposit_count")
    queued_balance_wei = Wei("Their sum.", wire="deposit_queue.balance", text=True)
    deposit_processed_time = UnixTime(
        "Estimated time of the last credit, UTC.", wire="deposit_queue.estimated_processed_at"
    )
    exit_churn_wei = Wei("Amount per epoch.", wire="exit_queue.churn", text=True)
    exit_count = Count("Validators waiting to exit.", wire="exit_queue.count")
    exit_balance_wei = Wei("Sum of their balances.", wire="exit_queue.balance", text=True)
    exit_processed_time = UnixTime(
        "Estimated time of the last exit, UTC.", wire="exit_queue.estimated_processed_at"
    )
    last_swept_index = Count(
        "Last validator of the sweep.", wire="withdrawal_sweep.last_swept_validator_index"
    )
    sweep_delay_seconds = Count(
        "Estimated seconds of a full sweep.", wire="withdrawal_sweep.estimated_sweep_delay"
    )
    finality = Text("finalized or not_finalized.")


def derive_churn(view: View) -> pl.LazyFrame:
    """Return the amount in gwei that each queue processes per epoch, one row.

    The limits are those of public chains; of a chain with other constants the amount is null.
    """
    if not (view.is_simulated or view.chain.name in KNOWN_CHAINS):
        return pl.LazyFrame({"churn": [None]}, schema={"churn": pl.Int64})
    active = view.scan("epochs").sort("epoch").tail(1).select("eligible_ether_gwei")
    share = pl.col("eligible_ether_gwei") // CHURN_QUOTIENT
    return active.select(churn=(share - share % GWEI_PER_ETH).clip(MIN_CHURN, MAX_CHURN))


def estimate_epoch(view: View, balance: pl.Expr) -> pl.Expr:
    """Return the epoch in which a queue has processed *balance*, in gwei."""
    epochs = (balance / pl.col("churn")).ceil().cast(pl.Int64)
    return LOOKAHEAD + view.head.epoch + epochs


def derive_places(view: View) -> pl.LazyFrame:
    """Return places in queues, one row per validator in a queue; the longest wait comes last.

    The epoch of an exit is certain as soon as the validator is in the queue, that of an activation
    once the validator is eligible and that is final.
    """
    status = build_base_status()
    queue = status.replace_strict(QUEUES, default=None, return_dtype=pl.String)
    stake = pl.col("effective_balance_gwei")
    estimate = estimate_epoch(view, stake.cum_sum().over("queue"))
    epoch = pl.coalesce("exit_epoch", "activation_epoch", estimate)
    return (
        view.scan("validators")
        .with_columns(queue=queue)
        .filter(pl.col("queue").is_not_null())
        .sort(
            "queue",
            pl.coalesce("exit_epoch", "activation_eligibility_epoch"),
            "validator_index",
        )
        .join(derive_churn(view), how="cross", maintain_order="left")
        .with_columns(
            position=pl.int_range(1, pl.len() + 1).over("queue"),
            amount_wei=gwei_to_wei(stake),
            epoch=epoch,
            time=view.chain.time_expr("epoch", epoch),
        )
    )


def derive_pending_requests(view: View) -> pl.LazyFrame:
    """Return the withdrawal requests that are not paid yet, one row for all.

    Blocks of a real chain do not show which requests are valid: all is null.
    """
    if not view.is_simulated:
        names = ("request_count", "requested_gwei", "paid")
        return pl.LazyFrame({name: [None] for name in names}, schema=dict.fromkeys(names, pl.Int64))
    paid = view.scan("manual_withdrawal_events", MANUAL).drop("slot")
    pending = (
        view.scan("withdrawal_request_events", EVENT)
        .rename({"slot": "request_slot"})
        .join(paid, on=["request_slot", "validator_index"], how="anti")
    )
    latest = pl.col("request_slot").max() // view.chain.slots_per_epoch
    return pending.select(
        request_count=pl.len().cast(pl.Int64),
        requested_gwei=pl.col("amount_gwei").sum(),
        paid=(latest + LOOKAHEAD + WITHDRAWABILITY_DELAY).fill_null(LOOKAHEAD + view.head.epoch),
    )


QUEUES = {"pending": "deposit", "exiting": "exit", "slashing": "exit"}
"""The queue of the validators with each status of V1, without online or offline."""


def derive_rows(view: View) -> pl.LazyFrame:
    """Return the queues, one row; a simulated chain has no top-ups, others do not state them."""
    earliest, chain, churn = LOOKAHEAD + view.head.epoch, view.chain, pl.col("churn")
    activated = estimate_epoch(view, pl.col("entering_balance_gwei"))
    exits = view.scan("validators").filter(pl.col("exit_epoch") > view.head.epoch)
    last_exit = exits.select(exited=pl.col("exit_epoch").max().fill_null(earliest))
    exited, paid = pl.col("exited"), pl.col("paid")
    seconds = int(chain.seconds_per_slot * chain.slots_per_epoch)
    return (
        view.scan("validator_queue")
        .join(derive_churn(view), how="cross")
        .join(last_exit, how="cross")
        .join(derive_pending_requests(view), how="cross")
        .with_columns(
            deposit_count="entering_count",
            deposit_balance_wei=gwei_to_wei(pl.col("entering_balance_gwei")),
            topup_count=pl.lit(0 if view.is_simulated else None, pl.Int64),
            topup_balance_wei=ZERO if view.is_simulated else pl.lit(None, pl.Decimal(28, 0)),
            deposit_processed_epoch=activated,
            deposit_processed_time=chain.time_expr("epoch", activated),
            deposit_churn_wei=gwei_to_wei(churn),
            deposit_churn_seconds=seconds,
            exit_count="exiting_count",
            exit_balance_wei=gwei_to_wei(pl.col("exiting_balance_gwei")),
            exit_processed_epoch=exited,
            exit_processed_time=chain.time_expr("epoch", exited),
            exit_churn_wei=gwei_to_wei(churn),
            exit_churn_seconds=seconds,
            manual_withdrawal_count="request_count",
            manual_withdrawal_balance_wei=gwei_to_wei(pl.col("requested_gwei")),
            manual_withdrawal_processed_epoch=paid,
            manual_withdrawal_processed_time=chain.time_expr("epoch", paid),
            finality=pl.lit("not_finalized"),
        )
    )


def derive_old_rows(view: View) -> pl.LazyFrame:
    """Return the queues in their old shape, one row."""
    topups, topup_balance = pl.col("topup_count"), pl.col("topup_balance_wei")
    return (
        derive_rows(view)
        .join(derive_sweep(view), how="cross")
        .with_columns(
            queued_count=pl.col("deposit_count") + topups,
            queued_balance_wei=pl.col("deposit_balance_wei") + topup_balance,
        )
    )


def derive_sweep(view: View) -> pl.LazyFrame:
    """Return the last validator of the sweep and the seconds of a full one, one row.

    Each block pays sixteen validators. A validator with its maximum effective balance is paid in
    every sweep. In a real chain, which withdrawals belong to the sweep is unknown.
    """
    if not view.is_simulated:
        names = ("last_swept_index", "sweep_delay_seconds")
        return pl.LazyFrame({name: [None] for name in names}, schema=dict.fromkeys(names, pl.Int64))
    swept = view.scan("slot_withdrawals").join(
        view.scan("manual_withdrawal_events", MANUAL),
        left_on=["block_slot", "validator_index"],
        right_on=["slot", "validator_index"],
        how="anti",
    )
    last = swept.sort("withdrawal_index").select(last_swept_index=pl.col("validator_index").last())
    largest = pl.col("withdrawal_credentials").str.slice(0, 4).replace_strict(MAX_STAKE, default=-1)
    paid = view.scan("validators").filter(pl.col("effective_balance_gwei") == largest)
    blocks = (pl.len() / WITHDRAWALS_PER_BLOCK).ceil().cast(pl.Int64)
    seconds = paid.select(sweep_delay_seconds=blocks * view.chain.seconds_per_slot)
    return last.join(seconds, how="cross")
