"""Withdrawals of slots: those of V1 with columns of the validators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import build_credential_columns, gwei_to_wei
from beaconframes.answers.v2.queue_events import EVENT, MANUAL, mark_requests

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


NO_COMPOUNDING = "validator has no compounding credentials"


def derive_rows(view: View) -> pl.LazyFrame:
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
