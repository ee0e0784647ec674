"""Tables of what moves balances: inside blocks, at the end of epochs, and without explanation."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.beacon_node.amounts.epoch_amounts import find_positions
from beaconframes.beacon_node.tables.declaration import INCOME, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.schema import Count, Epoch, EpochTime, Gwei, Slot, SlotTime, Table, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from beaconframes.beacon_node.tables.epoch_data import EpochData
    from beaconframes.consensus.epoch_moves import Move
    from beaconframes.consensus.slot_income import SlotIncome as SlotIncomeRow


class SlotIncome(Table):
    """Amounts inside blocks. One row per slot, validator and kind; penalties are negative."""

    slot = Slot("Slot of the block.", key=True)
    validator_index = Count("Validator.", key=True)
    kind = Text(
        "attestation_inclusion, sync_inclusion, proposer_slashing_inclusion or "
        "attester_slashing_inclusion (to the proposer), sync_committee (to a member), "
        "slashing_penalty, withdrawal, deposit, or switch_to_compounding.",
        key=True,
    )
    time = SlotTime("Start of the slot, UTC.")
    amount_gwei = Gwei("Change of the balance; negative if the validator loses it.")


class EpochMoves(Table):
    """Amounts at the end of an epoch, without attestations. One row per validator and kind."""

    epoch = Epoch("Epoch at whose end the balance moves.", key=True)
    validator_index = Count("Validator.", key=True)
    kind = Text(
        "slashing_correlation, pending_deposit, pending_consolidation or fork_upgrade.", key=True
    )
    time = EpochTime("Start of the epoch, UTC.")
    amount_gwei = Gwei("Change of the balance; negative if the validator loses it.")


class UnexplainedChanges(Table):
    """Changes of balance that income and transfers do not explain. One row per validator, epoch.

    A validator and epoch that the index covers, and that has no row here, is explained to the gwei.
    """

    validator_index = Count("Validator.", key=True)
    epoch = Epoch(
        "Epoch of the change: it contains the blocks of this epoch, and the attestation rewards of "
        "two epochs before.",
        key=True,
    )
    time = EpochTime("Start of the epoch, UTC.")
    change_gwei = Gwei("Change of the balance.")
    explained_gwei = Gwei("Income, deposits, withdrawals and other moves of that time.")
    unexplained_gwei = Gwei("Change of the balance without its explained part.")


class DepositEvents(Table):
    """Deposits that reached a balance. One row per deposit.

    Before Electra: in a block. Since then: at the end of an epoch, which has its last slot here.
    """

    slot = Slot("Slot in which, or after which, the balance grew.", key=True)
    validator_index = Count("Validator.", key=True)
    deposit_index = Count("Position among its deposits of the slot, from 0.", key=True)
    amount_gwei = Gwei("Amount.")


class TransferEvents(Table):
    """Other moves of balances, signed. One row per slot and validator.

    Consolidations, and balances that became deposits in the queue: at the fork to Electra, and by
    a switch to compounding credentials.
    """

    slot = Slot("Slot in which, or after which, the balance changed.", key=True)
    validator_index = Count("Validator.", key=True)
    amount_gwei = Gwei("Change of the balance.")


class SwitchEvents(Table):
    """Switches to compounding credentials that moved a balance. One row per slot and validator."""

    slot = Slot("Slot of the block.", key=True)
    validator_index = Count("Validator.", key=True)
    amount_gwei = Gwei("Balance above 32 ETH, which became a pending deposit.")


TRANSFERS = ("switch_to_compounding", "pending_consolidation", "fork_upgrade")
SWITCHES = ("switch_to_compounding",)


def build_rows(table: type[SlotIncome | EpochMoves], data: EpochData) -> pl.DataFrame:
    """Return the amounts by kind of chosen validators, in blocks or at the end of the epoch."""
    rows: Sequence[SlotIncomeRow] | Sequence[Move] = data.amounts.moves
    unit = "epoch"
    if table is SlotIncome:
        rows, unit = data.amounts.slot_income, "slot"
    indices = np.array([row.validator_index for row in rows], np.int64)
    _, is_chosen = find_positions(data.amounts.validators, indices)
    chosen = [rows[place] for place in np.flatnonzero(is_chosen).tolist()]
    columns: dict[str, Any] = {
        unit: np.array([row[0] for row in chosen], np.int64),
        "kind": pl.Series("kind", [row.kind for row in chosen], pl.String),
        "validator_index": np.array([row.validator_index for row in chosen], np.int64),
        "amount_gwei": np.array([row.amount_gwei for row in chosen], np.int64),
    }
    return build_frame(table, columns, data.spec.chain)


def build_events(table: type[Table], kinds: Collection[str], data: EpochData) -> pl.DataFrame:
    """Return the amounts of some *kinds*, one row per slot and validator."""
    amounts, last_slot = data.amounts, data.spec.chain.last_slot_of(data.amounts.epoch)
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
    return build_frame(table, columns, data.spec.chain)


def build_switches(data: EpochData) -> pl.DataFrame:
    """Return the balances that switches to compounding credentials moved, as positive amounts."""
    rows = build_events(SwitchEvents, SWITCHES, data)
    return rows.with_columns(-pl.col("amount_gwei"))


def build_deposits(data: EpochData) -> pl.DataFrame:
    """Return the deposits that reached a balance, one row per deposit."""
    counts: Counter[tuple[int, int]] = Counter()
    rows: list[tuple[int, int, int, int]] = []
    for slot, index, amount in data.amounts.deposits:
        rows.append((slot, index, counts[slot, index], amount))
        counts[slot, index] += 1
    array = np.array(rows, np.int64).reshape(-1, 4)
    names = list(DepositEvents.schema())
    indices = array[:, names.index("validator_index")]
    _, is_chosen = find_positions(data.amounts.validators, indices)
    columns = dict(zip(names, array[is_chosen].T, strict=True))
    return build_frame(DepositEvents, columns, data.spec.chain)


def build_unexplained(data: EpochData) -> pl.DataFrame:
    """Return the changes of balance that are not explained, one row per validator and epoch."""
    changes, empty = data.amounts.unexplained, np.zeros(0, np.int64)
    change = np.concatenate([empty, *(one.change for one in changes)])
    explained = np.concatenate([empty, *(one.explained for one in changes)])
    columns = {
        "validator_index": np.concatenate([empty, *(one.validators for one in changes)]),
        "epoch": np.concatenate([empty, *(np.full(len(c.validators), c.epoch) for c in changes)]),
        "change_gwei": change,
        "explained_gwei": explained,
        "unexplained_gwei": change - explained,
    }
    return build_frame(UnexplainedChanges, columns, data.spec.chain)


TABLES: Final = (
    NodeTable(SlotIncome, "slot", INCOME, partial(build_rows, SlotIncome)),
    NodeTable(EpochMoves, "epoch", INCOME, partial(build_rows, EpochMoves)),
    NodeTable(DepositEvents, "slot", INCOME, build_deposits),
    NodeTable(TransferEvents, "slot", INCOME, partial(build_events, TransferEvents, TRANSFERS)),
    NodeTable(SwitchEvents, "slot", INCOME, build_switches),
    NodeTable(UnexplainedChanges, "epoch", INCOME, build_unexplained),
)
