"""Tables of what moves balances: inside blocks, at the end of epochs, and without explanation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from beaconframes.beacon_node.tables.declaration import INCOME, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.schema import Count, Epoch, EpochTime, Gwei, Slot, SlotTime, Table, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from beaconframes.beacon_node.tables.epoch_data import EpochData


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


def select_rows(data: EpochData, rows: Sequence[Any], unit: str = "slot") -> pl.DataFrame:
    """Return the amounts of chosen validators: *rows* of unit, kind, validator and amount."""
    schema = {unit: pl.Int64, "kind": pl.String, "validator_index": pl.Int64}
    frame = pl.DataFrame(rows, schema | {"amount_gwei": pl.Int64}, orient="row")
    if data.validators is None:
        return frame
    return frame.filter(pl.col("validator_index").is_in(data.validators))


def build_slot_income(data: EpochData) -> pl.DataFrame:
    """Return the amounts by kind in blocks."""
    rows = select_rows(data, data.amounts.slot_income)
    return build_frame(SlotIncome, rows.to_dict(), data.spec.chain)


def build_epoch_moves(data: EpochData) -> pl.DataFrame:
    """Return the amounts by kind at the end of the epoch."""
    rows = select_rows(data, data.amounts.moves, "epoch")
    return build_frame(EpochMoves, rows.to_dict(), data.spec.chain)


def build_events(
    table: type[Table], kinds: Collection[str], data: EpochData, sign: int = 1
) -> pl.DataFrame:
    """Return the amounts of some *kinds* times *sign*, one row per slot and validator."""
    amounts, last_slot = data.amounts, data.spec.chain.last_slot_of(data.amounts.epoch)
    moves = [(last_slot, *row[1:]) for row in amounts.moves]
    rows = [row for row in [*amounts.slot_income, *moves] if row[1] in kinds]
    if not rows:  # As in most epochs.
        return table.empty()
    sums = select_rows(data, rows).group_by("slot", "validator_index")
    frame = sums.agg(pl.col("amount_gwei").sum() * sign)
    return build_frame(table, frame.to_dict(), data.spec.chain)


def build_deposits(data: EpochData) -> pl.DataFrame:
    """Return the deposits that reached a balance, one row per deposit."""
    if not data.amounts.deposits:
        return DepositEvents.empty()
    rows = select_rows(data, [(slot, None, *row) for slot, *row in data.amounts.deposits])
    number = pl.int_range(pl.len()).over("slot", "validator_index").alias("deposit_index")
    columns = rows.drop("kind").with_columns(number).to_dict()
    return build_frame(DepositEvents, columns, data.spec.chain)


def build_unexplained(data: EpochData) -> pl.DataFrame:
    """Return the changes of balance that are not explained, one row per validator and epoch."""
    columns = ("validator_index", "change_gwei", "explained_gwei")
    changes = [
        pl.DataFrame(dict(zip(columns, arrays, strict=True))).with_columns(epoch=pl.lit(epoch))
        for epoch, *arrays in data.amounts.unexplained
    ]
    if not changes:
        return UnexplainedChanges.empty()
    unexplained = pl.col("change_gwei") - pl.col("explained_gwei")
    rows = pl.concat(changes).with_columns(unexplained_gwei=unexplained)
    return build_frame(UnexplainedChanges, rows.to_dict(), data.spec.chain)


TABLES: Final = (
    NodeTable(SlotIncome, "slot", INCOME, build_slot_income),
    NodeTable(EpochMoves, "epoch", INCOME, build_epoch_moves),
    NodeTable(DepositEvents, "slot", INCOME, build_deposits),
    NodeTable(TransferEvents, "slot", INCOME, partial(build_events, TransferEvents, TRANSFERS)),
    NodeTable(SwitchEvents, "slot", INCOME, partial(build_events, SwitchEvents, SWITCHES, sign=-1)),
    NodeTable(UnexplainedChanges, "epoch", INCOME, build_unexplained),
)
