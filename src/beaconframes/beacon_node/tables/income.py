"""Tables of income and balances, and whether the balances are explained."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.beacon_node.amounts.epoch_amounts import UNKNOWN, find_positions
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.beacon_node.tables.income_tables import (
    DepositEvents,
    EpochMoves,
    MissedRewardEvents,
    SlotIncome,
    SwitchEvents,
    TransferEvents,
    UnexplainedChanges,
)
from beaconframes.v1.balance_history import BalanceHistory
from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from beaconframes.beacon_node.amounts.epoch_amounts import Change, EpochAmounts
    from beaconframes.calendar import Chain
    from beaconframes.consensus.epoch_moves import Move
    from beaconframes.consensus.slot_income import SlotIncome as SlotIncomeRow
    from beaconframes.schema import Table

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

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


TRANSFERS = ("switch_to_compounding", "pending_consolidation", "fork_upgrade")


SWITCHES = ("switch_to_compounding",)


def build_reward_tables(amounts: EpochAmounts, chain: Chain) -> dict[str, pl.DataFrame]:
    """Return the tables of income, balances and their reconciliation, by name."""
    return {
        IncomeHistory.table_name: build_income(amounts, chain),
        BalanceHistory.table_name: build_balances(amounts, chain),
        SlotIncome.table_name: build_rows(SlotIncome, amounts, amounts.slot_income, chain),
        EpochMoves.table_name: build_rows(EpochMoves, amounts, amounts.moves, chain),
        DepositEvents.table_name: build_deposits(amounts, chain),
        TransferEvents.table_name: build_events(TransferEvents, TRANSFERS, amounts, chain),
        SwitchEvents.table_name: build_switches(amounts, chain),
        MissedRewardEvents.table_name: build_missed_rewards(amounts, chain),
        UnexplainedChanges.table_name: build_unexplained(amounts.unexplained, chain),
    }


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


def build_income(amounts: EpochAmounts, chain: Chain) -> pl.DataFrame:
    """Return the income history of the epoch: validators with duties, and others with income."""
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
    return build_frame(IncomeHistory, columns, chain)


def build_fees(fees_wei: Mapping[int, int | None], validators: Ints) -> pl.Series:
    """Return the fees of *validators* in wei: few of them have any."""
    # From integers, polars would refuse amounts of more than 64 bits beside smaller ones.
    amounts = [None if fee is None else Decimal(fee) for fee in fees_wei.values()]
    known = pl.Series(FEES, [Decimal(0), *amounts], pl.Decimal(28, 0))
    positions, is_chosen = find_positions(validators, np.array(list(fees_wei), np.int64))
    places = np.zeros(len(validators), np.uint32)
    places[positions[is_chosen]] = np.flatnonzero(is_chosen) + 1
    return known.gather(places)


def build_balances(amounts: EpochAmounts, chain: Chain) -> pl.DataFrame:
    """Return the balances after the block of the epoch's first slot."""
    has_balance = amounts.has_balance
    # A mask would copy each column.
    rows = slice(None) if has_balance.all() else has_balance
    columns = {
        "validator_index": amounts.validators[rows],
        "epoch": np.full(int(has_balance.sum()), amounts.epoch),
        "balance_gwei": amounts.balances[rows],
        "effective_balance_gwei": amounts.effective_balances[rows],
    }
    return build_frame(BalanceHistory, columns, chain)


def build_rows(
    table: type[SlotIncome | EpochMoves],
    amounts: EpochAmounts,
    rows: Sequence[SlotIncomeRow] | Sequence[Move],
    chain: Chain,
) -> pl.DataFrame:
    """Return *rows* of amounts by kind, those of the validators of *amounts*."""
    indices = np.array([row.validator_index for row in rows], np.int64)
    _, is_chosen = find_positions(amounts.validators, indices)
    chosen = [rows[place] for place in np.flatnonzero(is_chosen).tolist()]
    unit = "slot" if table is SlotIncome else "epoch"
    columns: dict[str, Any] = {
        unit: np.array([row[0] for row in chosen], np.int64),
        "kind": pl.Series("kind", [row.kind for row in chosen], pl.String),
        "validator_index": np.array([row.validator_index for row in chosen], np.int64),
        "amount_gwei": np.array([row.amount_gwei for row in chosen], np.int64),
    }
    return build_frame(table, columns, chain)


def build_events(
    table: type[Table],
    kinds: Collection[str],
    amounts: EpochAmounts,
    chain: Chain,
) -> pl.DataFrame:
    """Return the amounts of some *kinds*, one row per slot and validator."""
    last_slot = chain.last_slot_of(amounts.epoch)
    moves = [(last_slot, *row[1:]) for row in amounts.moves]
    sums: Counter[tuple[int, int]] = Counter()
    for slot, kind, index, amount in [*amounts.slot_income, *moves]:
        if kind in kinds:
            sums[slot, index] += amount
    indices = np.array([index for _, index in sums], np.int64)
    _, is_chosen = find_positions(amounts.validators, indices)
    columns = {
        "slot": np.array([slot for slot, _ in sums], np.int64)[is_chosen],
        "validator_index": indices[is_chosen],
        "amount_gwei": np.array(list(sums.values()), np.int64)[is_chosen],
    }
    return build_frame(table, columns, chain)


def build_switches(amounts: EpochAmounts, chain: Chain) -> pl.DataFrame:
    """Return the balances that switches to compounding credentials moved, as positive amounts."""
    rows = build_events(SwitchEvents, SWITCHES, amounts, chain)
    return rows.with_columns(-pl.col("amount_gwei"))


def build_deposits(amounts: EpochAmounts, chain: Chain) -> pl.DataFrame:
    """Return the deposits that reached a balance, one row per deposit."""
    counts: Counter[tuple[int, int]] = Counter()
    rows: list[tuple[int, int, int, int]] = []
    for slot, index, amount in amounts.deposits:
        rows.append((slot, index, counts[slot, index], amount))
        counts[slot, index] += 1
    array = np.array(rows, np.int64).reshape(-1, 4)
    names = list(DepositEvents.schema())
    _, is_chosen = find_positions(amounts.validators, array[:, names.index("validator_index")])
    columns = dict(zip(names, array[is_chosen].T, strict=True))
    return build_frame(DepositEvents, columns, chain)


def build_missed_rewards(amounts: EpochAmounts, chain: Chain) -> pl.DataFrame:
    """Return what votes of the epoch missed, one row per validator with any."""
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
    return build_frame(MissedRewardEvents, columns, chain)


def build_unexplained(changes: Sequence[Change], chain: Chain) -> pl.DataFrame:
    """Return the changes of balance that are not explained, one row per validator and epoch."""
    empty = np.zeros(0, np.int64)
    change = np.concatenate([empty, *(one.change for one in changes)])
    explained = np.concatenate([empty, *(one.explained for one in changes)])
    columns = {
        "validator_index": np.concatenate([empty, *(one.validators for one in changes)]),
        "epoch": np.concatenate([empty, *(np.full(len(c.validators), c.epoch) for c in changes)]),
        "change_gwei": change,
        "explained_gwei": explained,
        "unexplained_gwei": change - explained,
    }
    return build_frame(UnexplainedChanges, columns, chain)
