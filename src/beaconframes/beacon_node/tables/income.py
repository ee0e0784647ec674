"""Tables of what validators earn: income, balances, and the rewards that votes missed."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.beacon_node.amounts.epoch_amounts import UNKNOWN, find_positions
from beaconframes.beacon_node.tables.declaration import INCOME, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.schema import Count, Epoch, Gwei, Table
from beaconframes.v1.balance_history import BalanceHistory
from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.beacon_node.amounts.epoch_amounts import EpochAmounts
    from beaconframes.beacon_node.tables.epoch_data import EpochData
    from beaconframes.consensus.registry import Ints

REWARD_COLUMNS = {
    "attestation_inclusion": "proposer_attestation_inclusion_reward_gwei",
    "sync_inclusion": "proposer_sync_inclusion_reward_gwei",
    "proposer_slashing_inclusion": "proposer_slashing_inclusion_reward_gwei",
    "attester_slashing_inclusion": "proposer_slashing_inclusion_reward_gwei",
}
"""The column of the income history for each kind of income inside blocks that is a reward."""

FEES = "tx_fee_reward_wei"
SYNC_COMMITTEE = "sync_committee"
PENALTIES = ("slashing_penalty", "slashing_correlation")
"""Kinds of the column ``slashing_penalty_gwei``: in the block, and half-way to withdrawal."""


class MissedRewardEvents(Table):
    """Rewards that votes missed. One row per validator and epoch with any.

    A vote that is wrong, late or missing would have earned the amount. In an inactivity leak, and
    for slashed validators, no vote earns anything.
    """

    validator_index = Count("Validator.", key=True)
    epoch = Epoch("Epoch of the duty.", key=True)
    attestation_head_missed_gwei = Gwei(
        "Missed reward of the head vote; null if the node does not state it.", nullable=True
    )
    attestation_source_missed_gwei = Gwei(
        "Missed reward of the source vote; null if the node does not state it.", nullable=True
    )
    attestation_target_missed_gwei = Gwei(
        "Missed reward of the target vote; null if the node does not state it.", nullable=True
    )


def sum_income(amounts: EpochAmounts) -> dict[str, tuple[Ints, Ints]]:
    """Return the income of the epoch without attestations: positions and amounts by column.

    Few validators have such income, so that a column does not name the others.
    """
    sums: dict[str, Counter[int]] = defaultdict(Counter)
    for _, kind, index, amount in [*amounts.slot_income, *amounts.moves]:
        if kind in REWARD_COLUMNS:
            sums[REWARD_COLUMNS[kind]][index] += amount
        elif kind == SYNC_COMMITTEE:
            name = "sync_committee_reward_gwei" if amount > 0 else "sync_committee_penalty_gwei"
            sums[name][index] += abs(amount)
        elif kind in PENALTIES:
            sums["slashing_penalty_gwei"][index] -= amount
    sums["proposals_missed"].update(amounts.proposals_missed)
    found = {}
    for name, by_index in sums.items():
        values = np.array(list(by_index.values()), np.int64)
        indices = np.array(list(by_index), np.int64)
        positions, is_chosen = find_positions(amounts.validators, indices)
        is_chosen &= values != 0
        found[name] = positions[is_chosen], values[is_chosen]
    return found


def build_income(data: EpochData) -> pl.DataFrame:
    """Return the income history of the epoch: validators with duties, and others with income."""
    amounts = data.amounts
    sums = sum_income(amounts)
    has_row = amounts.is_rewarded.copy()
    for positions, _ in sums.values():
        has_row[positions] = True
    rows = np.flatnonzero(has_row)
    validators = amounts.validators[rows]
    inactivity, head = amounts.inactivity[rows], amounts.head[rows]
    # Most columns have no amount at all: these share the memory of one.
    zeros = pl.zeros(len(rows), pl.Int64, eager=True)
    columns: dict[str, Any] = {
        "validator_index": validators,
        "epoch": np.full(len(rows), amounts.epoch),
        "attestation_head_reward_gwei": head,
        "finality_delay_penalty_gwei": -inactivity if inactivity.any() else zeros,
    }
    for flag, signed in (("source", amounts.source[rows]), ("target", amounts.target[rows])):
        columns[f"attestation_{flag}_reward_gwei"] = np.maximum(signed, 0)
        columns[f"attestation_{flag}_penalty_gwei"] = np.maximum(-signed, 0)
    for column in IncomeHistory.columns:
        if column.default == 0 and column.name not in columns and column.name != FEES:
            columns[column.name] = zeros
            if column.name in sums:
                positions, sparse = sums[column.name]
                columns[column.name] = values = np.zeros(len(rows), np.int64)
                values[np.searchsorted(rows, positions)] = sparse
    if amounts.fees_wei is not None:
        columns[FEES] = build_fees(amounts.fees_wei, validators)
    return build_frame(IncomeHistory, columns, data.spec.chain)


def build_fees(fees_wei: Mapping[int, int | None], validators: Ints) -> pl.Series:
    """Return the fees of *validators* in wei: few of them have any."""
    # From integers, polars would refuse amounts of more than 64 bits beside smaller ones.
    amounts = [None if fee is None else Decimal(fee) for fee in fees_wei.values()]
    known = pl.Series(FEES, [Decimal(0), *amounts], pl.Decimal(28, 0))
    positions, is_chosen = find_positions(validators, np.array(list(fees_wei), np.int64))
    places = np.zeros(len(validators), np.uint32)
    places[positions[is_chosen]] = np.flatnonzero(is_chosen) + 1
    return known.gather(places)


def build_balances(data: EpochData) -> pl.DataFrame:
    """Return the balances after the block of the epoch's first slot."""
    amounts, has_balance = data.amounts, data.amounts.has_balance
    # A mask would copy each column.
    rows = slice(None) if has_balance.all() else has_balance
    columns = {
        "validator_index": amounts.validators[rows],
        "epoch": np.full(int(has_balance.sum()), amounts.epoch),
        "balance_gwei": amounts.balances[rows],
        "effective_balance_gwei": amounts.effective_balances[rows],
    }
    return build_frame(BalanceHistory, columns, data.spec.chain)


def build_missed_rewards(data: EpochData) -> pl.DataFrame:
    """Return what votes of the epoch missed, one row per validator with any."""
    amounts = data.amounts
    has_missed = np.any(list(amounts.missed.values()), axis=0)
    validators = amounts.validators[has_missed]
    columns = {
        "validator_index": validators,
        "epoch": np.full(len(validators), amounts.epoch),
        **{
            f"attestation_{vote}_missed_gwei": pl.Series(missed[has_missed]).replace(UNKNOWN, None)
            for vote, missed in amounts.missed.items()
        },
    }
    return build_frame(MissedRewardEvents, columns, data.spec.chain)


TABLES: Final = (
    NodeTable(IncomeHistory, "epoch", INCOME, build_income),
    NodeTable(BalanceHistory, "epoch", INCOME, build_balances),
    NodeTable(MissedRewardEvents, "epoch", INCOME, build_missed_rewards),
)
