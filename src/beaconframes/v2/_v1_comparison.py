"""Frames of V2 in the columns and units of V1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.units import to_gwei
from beaconframes.v2.balances import Balances
from beaconframes.v2.block import Block
from beaconframes.v2.block_rewards import BlockRewards
from beaconframes.v2.proposal_slots import ProposalSlots
from beaconframes.v2.queues import Queues
from beaconframes.v2.rewards import Rewards
from beaconframes.v2.slot import SlotOverview
from beaconframes.v2.slot_attestation_duties import SlotAttestationDuties
from beaconframes.v2.slot_withdrawals import SlotWithdrawals
from beaconframes.v2.sync_committee import SyncCommittee
from beaconframes.v2.validator_list import Validators
from beaconframes.v2.yield_index import YieldIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narwhals.stable.v2.typing import IntoFrameT

    from beaconframes.schema import Table


@dataclass(frozen=True)
class V1Equivalent:
    """The columns that a table of V2 shares with one of V1.

    ``same`` are columns of both tables. ``other`` are columns of V1 that are computed from columns
    of V2; ``in_gwei`` are also converted from wei to gwei. ``only`` selects the rows that V1 has.
    """

    table: type[Table]
    key: tuple[str, ...]
    same: tuple[str, ...] = ()
    other: Mapping[str, pl.Expr | str] = field(default_factory=dict)
    in_gwei: Mapping[str, pl.Expr | str] = field(default_factory=dict)
    only: pl.Expr | None = None

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return *frame* in the columns of V1, sorted by key."""
        rows = frame if self.only is None else frame.filter(self.only)
        named = rows.select(*self.same, **self.other)
        amounts = to_gwei(rows.select(**self.in_gwei)) if self.in_gwei else pl.DataFrame()
        return pl.concat([named, amounts], how="horizontal").sort(self.key, nulls_last=True)


def same_names(*names: str) -> dict[str, pl.Expr | str]:
    """Return a mapping of columns to themselves."""
    return dict(zip(names, names, strict=True))


def status() -> pl.Expr:
    """Return the expression of the status of V1, which includes online and offline."""
    online_suffix = pl.when("online").then(pl.lit("_online")).otherwise(pl.lit("_offline"))
    return (
        pl.when(pl.col("status").str.starts_with("withdrawal_"))
        .then(pl.when("slashed").then(pl.lit("slashed")).otherwise(pl.lit("exited")))
        .when(pl.col("status").is_in(list(ACTIVE_STATUS)))
        .then(pl.col("status").replace(ACTIVE_STATUS) + online_suffix)
        .otherwise(pl.col("status").replace(OTHER_STATUS))
    )


ACTIVE_STATUS = {
    "active_ongoing": "active",
    "active_exiting": "exiting",
    "active_slashed": "slashing",
}
OTHER_STATUS = {
    "pending_initialized": "deposited",
    "pending_queued": "pending",
    "exited_unslashed": "exited",
    "exited_slashed": "slashed",
}


def sum_of(*names: str) -> pl.Expr:
    """Return the expression of the sum of amounts; 0 without amounts, as in V1."""
    whole = (pl.col(name).cast(pl.Int128) for name in names)
    return pl.sum_horizontal(*whole).cast(pl.Decimal(28, 0))


FINALIZED = pl.when(pl.col("slot").is_not_null()).then(pl.col("finality") == "finalized")

V1_EQUIVALENTS = {
    "validators": V1Equivalent(
        Validators,
        ("validator_index", "pubkey"),
        (
            "validator_index",
            "pubkey",
            "slashed",
            "activation_eligibility_epoch",
            "activation_epoch",
            "exit_epoch",
            "withdrawable_epoch",
            "withdrawal_credentials",
        ),
        {"status": status()},
        in_gwei=same_names("balance_wei", "effective_balance_wei"),
    ),
    "balances": V1Equivalent(
        Balances,
        ("validator_index", "epoch"),
        ("validator_index", "epoch", "time"),
        in_gwei=same_names("balance_wei", "effective_balance_wei"),
    ),
    "rewards": V1Equivalent(
        Rewards,
        ("validator_index", "epoch"),
        # V2 reports what the proposer received, `tx_fee_reward_wei` of V1 the fees of the block,
        # which go to its builder if it has one.
        ("validator_index", "epoch", "time"),
        in_gwei={
            **same_names(
                "attestation_head_reward_wei",
                "attestation_source_reward_wei",
                "attestation_source_penalty_wei",
                "attestation_target_reward_wei",
                "attestation_target_penalty_wei",
            ),
            "finality_delay_penalty_wei": "attestation_inactivity_leak_penalty_wei",
            **{
                f"proposer_{kind}_inclusion_reward_wei": f"proposal_{kind}_inclusion_reward_wei"
                for kind in ("attestation", "sync")
            },
            **same_names("sync_committee_reward_wei", "sync_committee_penalty_wei"),
        },
    ),
    "proposal_slots": V1Equivalent(
        ProposalSlots,
        ("slot",),
        ("slot", "time"),
        {"proposer_index": "validator_index", "exec_block_number": "block_number"},
    ),
    "slot": V1Equivalent(
        SlotOverview,
        ("slot", "block_root"),
        (
            "slot",
            "block_root",
            "epoch",
            "time",
            "proposer_index",
            "parent_root",
            "state_root",
            "randao_reveal",
            "signature",
            "graffiti",
            "attester_slashings_count",
            "proposer_slashings_count",
            "voluntary_exits_count",
            "exec_block_number",
            "exec_block_hash",
        ),
        {
            "status": pl.col("status").replace("success", "proposed"),
            "sync_aggregate_participation": pl.col("sync_successful") / pl.col("sync_assigned"),
        },
    ),
    "slot_attestation_duties": V1Equivalent(
        SlotAttestationDuties,
        ("validator_index", "attester_slot"),
        ("validator_index", "inclusion_slot"),
        {
            "attester_slot": "slot",
            "status": pl.col("status").replace({"success": "included", "scheduled": "pending"}),
        },
    ),
    "slot_withdrawals": V1Equivalent(
        SlotWithdrawals,
        ("block_slot", "validator_index"),
        ("time", "validator_index"),
        {"block_slot": "slot", "address": "withdrawal_address"},
        in_gwei=same_names(
            "amount_wei",
        ),
        # V1 has paid withdrawals only, neither system withdrawals nor rejected ones.
        only=pl.col("type").ne_missing("system") & pl.col("reject_reason").is_null(),
    ),
    "block": V1Equivalent(
        Block,
        ("block_number",),
        (
            "block_number",
            "block_hash",
            "time",
            "gas_limit",
            "gas_used",
            "base_fee_per_gas_wei",
            "transactions_count",
            "internal_transactions_count",
            "parent_hash",
            "slot",
            "epoch",
        ),
        {"finalized": FINALIZED},
    ),
    "block_rewards": V1Equivalent(
        BlockRewards,
        ("block_number",),
        ("block_number", "block_hash", "slot", "epoch"),
        {
            "block_reward_wei": sum_of(
                "priority_fees_wei", "static_block_reward_wei", "uncle_inclusion_reward_wei"
            ),
            "block_mev_reward_wei": sum_of("mev_wei"),
            "producer_reward_wei": "total_reward_wei",
            "fee_recipient": "priority_fees_recipient",
            "finalized": FINALIZED,
        },
    ),
    "sync_committee": V1Equivalent(
        SyncCommittee, ("period",), ("period", "start_epoch", "end_epoch")
    ),
    "queues": V1Equivalent(
        Queues,
        ("entering_count",),
        other={"entering_count": "deposit_count", "exiting_count": "exit_count"},
        in_gwei={
            "entering_balance_wei": sum_of("deposit_balance_wei", "topup_balance_wei"),
            "exiting_balance_wei": "exit_balance_wei",
        },
    ),
    "yield_index": V1Equivalent(
        YieldIndex,
        ("day",),
        tuple(name for name in YieldIndex.schema() if name not in ("finality", "more")),
    ),
}
"""The equivalent in V1 of each loader of V2."""


def same_as_v1(frame: IntoFrameT) -> IntoFrameT:
    """Convert a frame of a V2 loader to the columns, units and order of the V1 loader.

    The result has the columns that both versions report, exactly: gwei for wei, and the status
    names of V1. Columns of only one version are left out, so compare the columns of the result.

    - `load_validators` as `beaconframes.load_validators`
    - `load_balances` as `beaconframes.load_balance_history`
    - `load_rewards` as `beaconframes.load_income_history`: without slashings
    - `load_proposal_slots` as `beaconframes.load_proposals`: orphaned blocks have no number
    - `load_slot` as `beaconframes.load_slots`
    - `load_slot_attestation_duties` as `beaconframes.load_attestations`
    - `load_slot_withdrawals` as `beaconframes.load_slot_withdrawals`
    - `load_block` as `beaconframes.load_execution_blocks`
    - `load_block_rewards` as `beaconframes.load_execution_blocks`
    - `load_sync_committee` as `beaconframes.load_sync_committees`: one row per period
    - `load_queues` as `beaconframes.load_validator_queue`
    - `load_yield_index` as `beaconframes.load_yield_index`

    Parameters
    ----------
    frame
        A frame of one of these loaders, polars or pandas, with all columns and any rows.

    Raises
    ------
    UsageError
        The frame is of another loader, or an amount is not a whole number of gwei.
    """
    from beaconframes.frames import return_like, to_polars

    rows = to_polars(frame)
    for equivalent in V1_EQUIVALENTS.values():
        if equivalent.table.schema().keys() == set(rows.columns):
            return return_like(equivalent.of(rows), frame)
    raise UsageError(
        "the frame does not have the columns of a V2 loader with an equivalent in V1",
        hint="Pass all columns of one of these loaders: "
        + ", ".join(f"bf.v2.load_{name}" for name in V1_EQUIVALENTS),
    )
