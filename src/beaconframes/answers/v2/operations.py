"""Deposits and withdrawals of slots, and the slots with those of a validator, from tables of V1.

Only the shape of withdrawals is published. Deposits have their fields, as far as they can. Slots
with operations have the validator and the slot of ``proposal-slots``, and the count and the amount
of the queue events of ``slot``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import build_credential_columns, gwei_to_wei
from beaconframes.answers.v2.queue_events import EVENT, MANUAL, mark_requests
from beaconframes.schema import Count, Hex, Slot, Table, Text, Wei

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

NO_COMPOUNDING = "validator has no compounding credentials"


class OperationSlotRecord(Table):
    """Slots with operations. One row per slot and validator."""

    validator_index = Count("Validator.", wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key")
    slot = Slot("Slot of the block.")
    count = Count("Operations of the validator in this slot.")
    amount_wei = Wei("Sum of their amounts.", wire="amount", text=True)
    finality = Text("Always finalized.")


def derive_deposit_slots(view: View) -> pl.LazyFrame:
    """Return deposits, one row per deposit of a validator with an index."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    deposits = view.scan("slot_deposits").select("pubkey", "amount_gwei", slot="block_slot")
    return deposits.join(keys, on="pubkey")


def derive_withdrawal_slots(view: View) -> pl.LazyFrame:
    """Return withdrawals, one row per withdrawal."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    withdrawals = view.scan("slot_withdrawals")
    return withdrawals.select("validator_index", "amount_gwei", slot="block_slot").join(
        keys, on="validator_index", how="left"
    )


def summarize(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return count and sum, one row per slot and validator, newest first."""
    return (
        rows.group_by("slot", "validator_index", "pubkey")
        .agg(count=pl.len(), amount_wei=gwei_to_wei(pl.col("amount_gwei").sum()))
        .sort("slot", "validator_index", descending=[True, False])
        .with_columns(finality=pl.lit("finalized"))
    )


class SlotDepositRecord(Table):
    """Deposits of slots. One row per deposit."""

    block_index = Count("Number of the deposit in the block, from 0.", wire="index")
    validator_index = Count(
        "Validator; null before it has an index.", wire="validator.index", nullable=True
    )
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key")
    amount_wei = Wei("Deposited amount.", wire="amount", text=True)
    withdrawal_type = Text(
        "Kind of the withdrawal credentials: bls or execution_address.",
        wire="withdrawal_credentials.type",
    )
    withdrawal_prefix = Hex("First byte of the credentials.", wire="withdrawal_credentials.prefix")
    withdrawal_credentials = Hex(
        "Withdrawal credentials, 32 bytes.", wire="withdrawal_credentials.credential"
    )
    withdrawal_address = Hex(
        "Withdrawal address.", wire="withdrawal_credentials.address", nullable=True
    )
    signature = Hex("Signature of the deposit.")


def derive_deposits(view: View) -> pl.LazyFrame:
    """Return deposits, one row per deposit, in the order of the block."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    return (
        view.scan("slot_deposits")
        .rename({"block_slot": "slot"})
        .join(keys, on="pubkey", how="left")
        .sort("slot", "block_index")
        .with_columns(amount_wei=gwei_to_wei(pl.col("amount_gwei")), **build_credential_columns())
    )


def derive_withdrawals(view: View) -> pl.LazyFrame:
    """Return withdrawals, one row per withdrawal, in the order of the payload.

    Then come what is not paid: the balance that a switch to compounding credentials queues as
    a deposit, and rejected requests. The shape of their stages is not published; this one is
    plausible. On a real chain, requests show neither whether they are rejected nor which
    withdrawals pay them: the type of a partial withdrawal after the first request is null.
    """
    validators = view.scan("validators").select(
        "validator_index", "pubkey", "withdrawal_credentials", "withdrawable_epoch"
    )
    epoch = pl.col("slot") // view.chain.slots_per_epoch
    is_full = pl.col("withdrawable_epoch").fill_null(2**62) <= epoch
    is_manual = pl.col("request_slot").is_not_null()
    swept = pl.when(is_full).then(pl.lit("full_exit_sweep")).otherwise(pl.lit("partial_sweep"))
    switched = view.scan("switch_events", EVENT).filter(pl.col("amount_gwei") > 0)
    rejected = view.scan("rejected_request_events", EVENT)
    done, queued = describe_stage("completed", "slot"), describe_stage("queued", "request_slot")
    columns = ["slot", "validator_index", "amount_gwei"]
    rows = pl.concat(
        [
            view.scan("slot_withdrawals").rename({"block_slot": "slot"}).select(columns),
            switched.with_columns(type=pl.lit("system")),
            rejected.with_columns(type=pl.lit("manual"), reject_reason=pl.lit(NO_COMPOUNDING)),
        ],
        how="diagonal",
    )
    if not view.is_simulated:
        rows = mark_requests(view, rows)
    is_unknown = pl.lit(value=False) if view.is_simulated else pl.col("follows_request") & ~is_full
    is_unknown &= pl.col("type").is_null()
    is_rejected = pl.col("reject_reason").is_not_null()
    return (
        rows.join(
            view.scan("manual_withdrawal_events", MANUAL),
            on=["slot", "validator_index"],
            how="left",
            maintain_order="left",
        )
        .join(validators, on="validator_index", how="left", maintain_order="left")
        .sort("slot", maintain_order=True)
        .with_columns(
            type=pl.when(~is_unknown).then(
                pl.coalesce("type", pl.when(is_manual).then(pl.lit("manual")), swept)
            ),
            amount_wei=gwei_to_wei(pl.col("amount_gwei")),
            status=pl.when(is_rejected).then(pl.lit("rejected")).otherwise(pl.lit("completed")),
            stage_history=pl.when(is_unknown)
            .then(None)
            .when(is_rejected)
            .then(pl.format("[{}]", describe_stage("rejected", "slot")))
            .when(is_manual)
            .then(pl.format("[{},{}]", queued, done))
            .otherwise(pl.format("[{}]", done)),
            **build_credential_columns(),
        )
    )


def describe_stage(stage: str, slot: str) -> pl.Expr:
    """Return a stage of a withdrawal and its slot, as JSON."""
    before, after = f'{{"stage":"{stage}","slot":', "}"
    return pl.concat_str(pl.lit(before), pl.col(slot).cast(pl.String), pl.lit(after))
