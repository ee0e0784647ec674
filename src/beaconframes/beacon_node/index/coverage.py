"""Coverage of an index: which tables it can have, by which unit, and which epochs are missing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.beacon_node.tables.income_tables import (
    BlobCommitments,
    DepositEvents,
    EpochMoves,
    ExecutionRequests,
    MissedRewardEvents,
    SlotIncome,
    SwitchEvents,
    TransferEvents,
    UnexplainedChanges,
)
from beaconframes.dataset import Grid
from beaconframes.dataset.coverage import MAX_UNIT
from beaconframes.endpoint.intervals import clip_intervals, intervals_of, subtract_intervals
from beaconframes.v1._blocks import Blocks
from beaconframes.v1._execution_blocks import ExecutionBlocks
from beaconframes.v1._execution_requests import DepositRequests
from beaconframes.v1.attestations import Attestations
from beaconframes.v1.attester_slashings import AttesterSlashings
from beaconframes.v1.balance_history import BalanceHistory
from beaconframes.v1.bls_changes import BlsChanges
from beaconframes.v1.graffiti_wall import GraffitiWall
from beaconframes.v1.income_history import IncomeHistory
from beaconframes.v1.proposer_slashings import ProposerSlashings
from beaconframes.v1.slot_attestations import SlotAttestations
from beaconframes.v1.slot_deposits import SlotDeposits
from beaconframes.v1.slot_withdrawals import SlotWithdrawals
from beaconframes.v1.sync_committees import SyncCommittees
from beaconframes.v1.validator_withdrawals import ValidatorWithdrawals
from beaconframes.v1.voluntary_exits import VoluntaryExits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset
    from beaconframes.endpoint.intervals import Interval, Intervals
    from beaconframes.schema import Table

WHOLE_CHAIN = ""
"""The subject of rows of the whole chain."""


@dataclass(frozen=True)
class IndexedTable:
    """A table of an index, and the column by which its epochs are covered."""

    table: type[Table]
    unit: str
    """The column of the unit: an epoch, a slot or a period."""
    by_validator: bool = False
    """Whether an index of chosen validators has rows of these only."""

    def grid(self, *, chosen: bool) -> Grid:
        """Return the grid of the table, in an index of *chosen* validators or of all."""
        subject = "validator_index" if chosen and self.by_validator else None
        key = tuple(self.table.key())
        if subject is not None and key[0] != subject:
            key = (subject, *(name for name in key if name != subject))
        return Grid(subject, self.unit, key)

    def units_of(self, epoch: int, chain: Chain) -> tuple[int, int]:
        """Return the first and the last unit of an epoch."""
        if self.unit == "epoch":
            return epoch, epoch
        if self.unit == "period":
            period = epoch // chain.epochs_per_sync_period
            return period, period
        return chain.first_slot_of(epoch), chain.last_slot_of(epoch)

    def find_epochs(self, units: Iterable[Interval], chain: Chain) -> Intervals:
        """Return the epochs whose units are all among *units*."""
        if self.unit == "epoch":
            return tuple(units)
        if self.unit == "period":
            size = chain.epochs_per_sync_period
            return tuple((low * size, (high + 1) * size - 1) for low, high in units)
        size = chain.slots_per_epoch
        found = ((-(-low // size), (high + 1) // size - 1) for low, high in units)
        return tuple((low, high) for low, high in found if low <= high)


INDEXED_TABLES = {
    indexed.table.table_name: indexed
    for indexed in (
        IndexedTable(IncomeHistory, "epoch", by_validator=True),
        IndexedTable(BalanceHistory, "epoch", by_validator=True),
        IndexedTable(Attestations, "epoch", by_validator=True),
        IndexedTable(SlotIncome, "slot", by_validator=True),
        IndexedTable(EpochMoves, "epoch", by_validator=True),
        IndexedTable(DepositEvents, "slot", by_validator=True),
        IndexedTable(TransferEvents, "slot", by_validator=True),
        IndexedTable(SwitchEvents, "slot", by_validator=True),
        IndexedTable(MissedRewardEvents, "epoch", by_validator=True),
        IndexedTable(UnexplainedChanges, "epoch", by_validator=True),
        IndexedTable(Blocks, "epoch"),
        IndexedTable(SlotAttestations, "block_slot"),
        IndexedTable(AttesterSlashings, "block_slot"),
        IndexedTable(ProposerSlashings, "block_slot"),
        IndexedTable(VoluntaryExits, "block_slot"),
        IndexedTable(SlotDeposits, "block_slot"),
        IndexedTable(DepositRequests, "block_slot"),
        IndexedTable(BlobCommitments, "block_slot"),
        IndexedTable(ExecutionRequests, "block_slot"),
        IndexedTable(SlotWithdrawals, "block_slot"),
        IndexedTable(ValidatorWithdrawals, "epoch"),
        IndexedTable(BlsChanges, "epoch"),
        IndexedTable(GraffitiWall, "slot"),
        IndexedTable(SyncCommittees, "period"),
        IndexedTable(ExecutionBlocks, "epoch"),
    )
}
"""The tables that are written epoch by epoch, in the order of writing."""

REWARD_TABLES = (
    "income_history",
    "balance_history",
    "slot_income",
    "epoch_moves",
    "deposit_events",
    "transfer_events",
    "switch_events",
    "missed_reward_events",
    "unexplained_changes",
)
"""Tables that are built, reconciled and stored together."""

BLOCK_TABLES = (
    "blocks",
    "attester_slashings",
    "proposer_slashings",
    "voluntary_exits",
    "slot_deposits",
    "deposit_requests",
    "blob_commitments",
    "execution_requests",
    "slot_withdrawals",
    "validator_withdrawals",
    "bls_changes",
    "graffiti_wall",
)
"""Tables that follow from the blocks alone, and are stored together."""


LARGE_TABLES = ("slot_attestations",)
"""Tables that an index of many validators leaves out by default.

The lists of validators in the attestations of an epoch of mainnet are three quarters of its bytes.
"""


def add_companions(tables: Collection[str]) -> tuple[str, ...]:
    """Return *tables* with those that need no further request, in the order of writing."""
    found = set(tables)
    for together in (REWARD_TABLES, BLOCK_TABLES):
        if found & set(together):
            found |= set(together)
    return tuple(name for name in INDEXED_TABLES if name in found)


@dataclass(frozen=True)
class EpochTask:
    """The unit of work: the tables of one epoch, for some validators or for all (None)."""

    epoch: int
    tables: tuple[str, ...]
    validators: tuple[int, ...] | None


def find_tasks(
    dataset: Dataset,
    chain: Chain,
    tables: Collection[str],
    epochs: Iterable[int],
    validators: Collection[int] | None,
    starts: Mapping[str, int] | None = None,
) -> list[EpochTask]:
    """Return the tasks that complete *tables* of *dataset*, in the order of epochs.

    *starts* has the first epoch of each table that begins after others.
    """
    all_epochs = intervals_of(epochs)
    subjects = None if validators is None else [str(index) for index in validators]
    begins: dict[int, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    ends: dict[int, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for name in tables:
        indexed = INDEXED_TABLES[name]
        requested = clip_intervals(all_epochs, (starts or {}).get(name, 0), MAX_UNIT)
        own = subjects if subjects is not None and indexed.by_validator else [WHOLE_CHAIN]
        covered = dataset.coverage(name, own)
        # Nearly all validators have the same intervals.
        groups: dict[Intervals, list[str]] = defaultdict(list)
        for subject in own:
            groups[covered.get(subject, ())].append(subject)
        for units, group in groups.items():
            part = name, tuple(group)
            for first, last in subtract_intervals(requested, indexed.find_epochs(units, chain)):
                begins[first].append(part)
                ends[last + 1].append(part)
    tasks: list[EpochTask] = []
    missing: list[tuple[str, tuple[str, ...]]] = []
    begin = 0
    for epoch in sorted({*begins, *ends}):
        tasks += _build_tasks(range(begin, epoch), missing, chosen=subjects is not None)
        for part in ends[epoch]:
            missing.remove(part)
        missing += begins[epoch]
        begin = epoch
    return tasks


def _build_tasks(
    epochs: range, missing: Sequence[tuple[str, tuple[str, ...]]], *, chosen: bool
) -> list[EpochTask]:
    """Return a task for each of *epochs*, all *missing* the same subjects of the same tables."""
    if not missing:
        return []
    names = {name for name, _ in missing}
    tables = tuple(name for name in INDEXED_TABLES if name in names)
    validators = {int(subject) for _, subjects in missing for subject in subjects if subject}
    found = tuple(sorted(validators)) if chosen else None
    return [EpochTask(epoch, tables, found) for epoch in epochs]
