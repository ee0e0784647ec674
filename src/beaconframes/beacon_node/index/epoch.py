"""One epoch of a chain: its tables, from what a reader requests for them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.beacon_node.amounts.states import VERIFIED_LATER
from beaconframes.beacon_node.chain.votes import count_votes
from beaconframes.beacon_node.execution.payments import sum_fees
from beaconframes.beacon_node.index.coverage import REWARD_TABLES
from beaconframes.beacon_node.tables.attestations import build_attestations, build_slot_attestations
from beaconframes.beacon_node.tables.blocks import build_block_tables
from beaconframes.beacon_node.tables.execution_blocks import build_execution_blocks
from beaconframes.beacon_node.tables.income import build_reward_tables
from beaconframes.beacon_node.tables.state import build_sync_committees
from beaconframes.consensus.spec import is_since
from beaconframes.errors import BeaconframesError
from beaconframes.memory import trim_heap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.beacon_node.amounts.epoch_amounts import AmountSource, EpochAmounts
    from beaconframes.beacon_node.chain.reader import ChainReader
    from beaconframes.beacon_node.chain.votes import IncludedVote
    from beaconframes.beacon_node.index.coverage import EpochTask

ATTESTATIONS = "attestations"
SLOT_ATTESTATIONS = "slot_attestations"
EXECUTION_BLOCKS = "execution_blocks"
SYNC_COMMITTEES = "sync_committees"
VOTING_EPOCHS = 2
"""Epochs after that of a block whose blocks may include votes for it."""
UNEXPLAINED_CHANGES = "unexplained_changes"
OPTIMISTIC = "the execution node of the beacon node had not verified the blocks"
"""The remark on an epoch with optimistic responses."""


@dataclass(frozen=True)
class EpochResult:
    """The rows of each table of a task."""

    frames: dict[str, pl.DataFrame]
    verified_until: int = -1
    """The last epoch whose changes of balance were compared."""
    remarks: tuple[str, ...] = ()
    """What the coverage says of the epoch besides its status."""

    @property
    def is_explained(self) -> bool:
        """Return whether no change of balance is unexplained."""
        changes = self.frames.get(UNEXPLAINED_CHANGES)
        return changes is None or changes.is_empty()


def build_epoch(reader: ChainReader, amounts: AmountSource | None, task: EpochTask) -> EpochResult:
    """Return the tables of an epoch; what they need is requested, and nothing else.

    Tables of income need *amounts*.

    An error names the client and the epoch.
    """
    try:
        return _build_epoch(reader, amounts, task)
    except BeaconframesError as error:
        client = reader.api.session.client_version
        if not re.search(r"\bepoch \d", error.message):
            error.message = f"epoch {task.epoch}: {error.message}"
        if client not in error.message:
            error.message = f"{client}: {error.message}"
        raise


def _build_epoch(reader: ChainReader, amounts: AmountSource | None, task: EpochTask) -> EpochResult:
    names, earned, verified_until = set(task.tables), None, -1
    with reader.reading(task.epoch):
        if names & set(REWARD_TABLES):
            # Earlier epochs have compared this epoch as well, but not those after it.
            names.add(UNEXPLAINED_CHANGES)
            assert amounts is not None
            earned = _read_amounts(reader, amounts, task)
            verified_until = earned.verified_until
        frames = _build_tables(reader, task, names.difference(REWARD_TABLES, [UNEXPLAINED_CHANGES]))
    if earned is not None:
        if verified_until >= task.epoch + VERIFIED_LATER:
            # All that the next epoch needs of these states is cached; its rows need much memory.
            reader.release_states(task.epoch + 1)
            if reader.has_large_states:
                trim_heap()
        frames |= build_reward_tables(earned, reader.spec.chain)
    found = {name: frames[name] for name in frames if name in names}
    optimistic_slot = reader.api.optimistic_slot
    is_optimistic = optimistic_slot is not None and optimistic_slot in range(
        reader.slots_of(task.epoch).stop
    )
    return EpochResult(found, verified_until, (OPTIMISTIC,) if is_optimistic else ())


def _read_amounts(reader: ChainReader, amounts: AmountSource, task: EpochTask) -> EpochAmounts:
    """Return the amounts of an epoch, with the fees of its proposers."""
    earned = amounts.read(task.epoch, task.validators)
    if reader.execution is None:
        return replace(earned, fees_wei=find_proposers(reader, task.epoch, earned.proposals_missed))
    fees = sum_fees(reader.spec, reader.payments(task.epoch))
    return replace(earned, fees_wei={validator: amount for (validator, _), amount in fees.items()})


def _build_tables(reader: ChainReader, task: EpochTask, names: set[str]) -> dict[str, pl.DataFrame]:
    """Return the tables *names* of an epoch that do not need its amounts, and some others."""
    frames: dict[str, pl.DataFrame] = {}
    if ATTESTATIONS in names:
        committees, votes = (
            reader.committees(task.epoch),
            read_votes(reader, task.epoch, task.epoch + 1),
        )
        duties = build_attestations(reader.spec, task.epoch, committees, votes)
        if task.validators is not None:
            duties = duties.filter(pl.col("validator_index").is_in(task.validators))
        frames[ATTESTATIONS] = duties
    if SYNC_COMMITTEES in names:
        period = task.epoch // reader.spec.epochs_per_sync_committee_period
        members = {period: reader.sync_committee(task.epoch)}
        frames[SYNC_COMMITTEES] = build_sync_committees(reader.spec, members)
    if SLOT_ATTESTATIONS in names:
        frames[SLOT_ATTESTATIONS] = build_slot_attestations(reader.spec, reader.votes(task.epoch))
    if EXECUTION_BLOCKS in names:
        # The rows of an epoch are stored once it is final.
        frames[EXECUTION_BLOCKS] = build_execution_blocks(
            reader.spec, reader.payments(task.epoch), finalized_epoch=task.epoch
        )
    if names - frames.keys():
        votes_by_root = None
        # The votes for the first slots of an epoch are those of committees of the epoch before.
        if reader.has_committees(max(task.epoch - 1, 0)):
            votes_by_root = count_votes(read_votes(reader, task.epoch, task.epoch + VOTING_EPOCHS))
        slots = reader.slots_with_orphans(task.epoch)
        frames |= build_block_tables(reader.spec, slots, votes=votes_by_root)
    return frames


def find_proposers(reader: ChainReader, epoch: int, missed: Mapping[int, int]) -> dict[int, None]:
    """Return the validators that proposed a block, whose fees are unknown.

    Before Bellatrix, blocks have no payload and pay no fees.
    """
    if not is_since(reader.spec.fork_at(epoch), "bellatrix"):
        return {}
    if not reader.has_proposers(epoch):
        blocks = reader.block_messages(epoch).items()
        return {int(message["proposer_index"]): None for slot, message in blocks if slot > 0}
    proposers = (index for slot, index in reader.proposers(epoch).items() if slot > 0)
    duties = Counter(proposers)
    return {index: None for index, count in duties.items() if count > missed.get(index, 0)}


def read_votes(reader: ChainReader, first: int, last: int) -> list[IncludedVote]:
    """Return the attestations in the blocks of some epochs, as far as the chain has them.

    Attestations for the slots of an epoch are in its blocks and those of the next epoch. Votes for
    its blocks also come from slots of the next epoch without a block: one epoch later at most.
    """
    votes = []
    for epoch in range(first, min(last, reader.head_epoch) + 1):
        needs_no_last_root = first + 1 < epoch <= reader.last_complete_epoch
        read = reader.votes_without_last_root if needs_no_last_root else reader.votes
        votes += read(epoch)
    return votes
