"""Frames of generation 2 as generation 1 has them: what both tell, in its names and units."""

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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narwhals.stable.v2.typing import IntoFrameT

    from beaconframes.schema import Table


@dataclass(frozen=True)
class Twin:
    """What a table of generation 2 has in common with one of generation 1.

    ``same`` are columns that both have, ``other`` those of generation 1 that follow from one or
    two of generation 2, ``in_gwei`` the same in wei, to become gwei. ``only`` are the rows that
    generation 1 has too.
    """

    table: type[Table]
    key: tuple[str, ...]
    same: tuple[str, ...] = ()
    other: Mapping[str, pl.Expr | str] = field(default_factory=dict)
    in_gwei: Mapping[str, pl.Expr | str] = field(default_factory=dict)
    only: pl.Expr | None = None

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return what *frame* says in the words of the twin, sorted by key."""
        rows = frame if self.only is None else frame.filter(self.only)
        named = rows.select(*self.same, **self.other)
        amounts = to_gwei(rows.select(**self.in_gwei)) if self.in_gwei else pl.DataFrame()
        return pl.concat([named, amounts], how="horizontal").sort(self.key, nulls_last=True)


def each(*names: str) -> dict[str, pl.Expr | str]:
    """Return columns that keep their names."""
    return dict(zip(names, names, strict=True))


def status() -> pl.Expr:
    """Return the status of validators, who are online or not, and exited however long ago."""
    seen = pl.when("online").then(pl.lit("_online")).otherwise(pl.lit("_offline"))
    return (
        pl.when(pl.col("status").str.starts_with("withdrawal_"))
        .then(pl.when("slashed").then(pl.lit("slashed")).otherwise(pl.lit("exited")))
        .when(pl.col("status").is_in(list(ALIVE)))
        .then(pl.col("status").replace(ALIVE) + seen)
        .otherwise(pl.col("status").replace(STILL))
    )


ALIVE = {
    "active_ongoing": "active",
    "active_exiting": "exiting",
    "active_slashed": "slashing",
}
STILL = {
    "pending_initialized": "deposited",
    "pending_queued": "pending",
    "exited_unslashed": "exited",
    "exited_slashed": "slashed",
}


def added(*names: str) -> pl.Expr:
    """Return amounts together; generation 1 writes 0 where there is none."""
    whole = (pl.col(name).cast(pl.Int128) for name in names)
    return pl.sum_horizontal(*whole).cast(pl.Decimal(28, 0))


FINALIZED = pl.when(pl.col("slot").is_not_null()).then(pl.col("finality") == "finalized")

TWINS = {
    "validators": Twin(
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
        in_gwei=each("balance_wei", "effective_balance_wei"),
    ),
    "balances": Twin(
        Balances,
        ("validator_index", "epoch"),
        ("validator_index", "epoch", "time"),
        in_gwei=each("balance_wei", "effective_balance_wei"),
    ),
    "rewards": Twin(
        Rewards,
        ("validator_index", "epoch"),
        ("validator_index", "epoch", "time"),
        {"tx_fee_reward_wei": "proposal_execution_layer_reward_wei"},
        in_gwei={
            **each(
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
            **each("sync_committee_reward_wei", "sync_committee_penalty_wei"),
        },
    ),
    "proposal_slots": Twin(
        ProposalSlots,
        ("slot",),
        ("slot", "time"),
        {"proposer_index": "validator_index", "exec_block_number": "block_number"},
    ),
    "slot": Twin(
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
    "slot_attestation_duties": Twin(
        SlotAttestationDuties,
        ("validator_index", "attester_slot"),
        ("validator_index", "inclusion_slot"),
        {
            "attester_slot": "slot",
            "status": pl.col("status").replace({"success": "included", "scheduled": "missed"}),
        },
    ),
    "slot_withdrawals": Twin(
        SlotWithdrawals,
        ("block_slot", "validator_index"),
        ("time", "validator_index"),
        {"block_slot": "slot", "address": "withdrawal_address"},
        in_gwei=each(
            "amount_wei",
        ),
        # A system withdrawal goes back into the queue, and a rejected one nowhere.
        only=pl.col("type").ne_missing("system") & pl.col("reject_reason").is_null(),
    ),
    "block": Twin(
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
    "block_rewards": Twin(
        BlockRewards,
        ("block_number",),
        ("block_number", "block_hash", "slot", "epoch"),
        {
            "block_reward_wei": added(
                "priority_fees_wei", "static_block_reward_wei", "uncle_inclusion_reward_wei"
            ),
            "block_mev_reward_wei": added("mev_wei"),
            "producer_reward_wei": "total_reward_wei",
            "fee_recipient": "priority_fees_recipient",
            "finalized": FINALIZED,
        },
    ),
    "sync_committee": Twin(SyncCommittee, ("period",), ("period", "start_epoch", "end_epoch")),
    "queues": Twin(
        Queues,
        ("entering_count",),
        other={"entering_count": "deposit_count", "exiting_count": "exit_count"},
        in_gwei={
            "entering_balance_wei": added("deposit_balance_wei", "topup_balance_wei"),
            "exiting_balance_wei": "exit_balance_wei",
        },
    ),
}
"""By loader: what generation 1 tells of the same."""


def same_as_v1(frame: IntoFrameT) -> IntoFrameT:
    """Say in the words of generation 1 what a loader of generation 2 gave.

    What both generations tell comes out in the names, units and order of the loader of generation
    1, exactly: gwei for wei, its words for a status. What only one of them knows is left out, so
    compare with the columns that come out.

    - `load_validators` as `beaconframes.load_validators`
    - `load_balances` as `beaconframes.load_balance_history`
    - `load_rewards` as `beaconframes.load_income_history`: without slashings
    - `load_proposal_slots` as `beaconframes.load_proposals`: orphaned blocks have no number
    - `load_slot` as `beaconframes.load_slots`
    - `load_slot_attestation_duties` as `beaconframes.load_attestations`
    - `load_slot_withdrawals` as `beaconframes.load_slot_withdrawals`
    - `load_block` as `beaconframes.load_execution_blocks`
    - `load_block_rewards` as `beaconframes.load_execution_blocks`
    - `load_sync_committee` as `beaconframes.load_sync_committees`: one row a period
    - `load_queues` as `beaconframes.load_validator_queue`

    Parameters
    ----------
    frame
        A whole frame of one of these loaders, polars or pandas; any of its rows, all its columns.

    Raises
    ------
    UsageError
        The frame is of none of them, or an amount is no whole gwei.
    """
    from beaconframes.frames import return_like, to_polars

    rows = to_polars(frame)
    for twin in TWINS.values():
        if twin.table.schema().keys() == set(rows.columns):
            return return_like(twin.of(rows), frame)
    raise UsageError(
        "the frame is of no loader of generation 2 that generation 1 has too",
        hint="Give all columns of one of these: "
        + ", ".join(f"bf.v2.load_{name}" for name in TWINS),
    )
