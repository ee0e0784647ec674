"""What the tables of one epoch follow from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from beaconframes.beacon_node.chain.votes import count_votes
from beaconframes.beacon_node.client.slot_blocks import MISSED
from beaconframes.beacon_node.execution.payments import sum_fees
from beaconframes.consensus.spec import is_since

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.beacon_node.amounts.epoch_amounts import AmountSource, EpochAmounts
    from beaconframes.beacon_node.chain.reader import ChainReader
    from beaconframes.beacon_node.chain.votes import IncludedVote
    from beaconframes.beacon_node.client.slot_blocks import SlotBlock
    from beaconframes.consensus.spec import Spec

VOTING_EPOCHS = 2
"""Epochs after that of a block whose blocks may include votes for it."""


@dataclass
class EpochData:
    """An epoch of a chain; each part is requested when it is used first."""

    reader: ChainReader
    source: AmountSource | None
    """Where its amounts come from; None if they are not needed."""
    epoch: int
    validators: Sequence[int] | None
    """The chosen validators, or all."""

    @property
    def spec(self) -> Spec:
        """Return the constants of the chain."""
        return self.reader.spec

    @cached_property
    def slots(self) -> list[SlotBlock]:
        """Return the slots with their blocks, and with those known to be orphaned.

        A slot without a canonical block is not missed if an orphaned block was proposed in it.
        """
        slots, numbers = self.reader.slots(self.epoch), self.reader.slots_of(self.epoch)
        canonical = {slot.root for slot in slots}
        orphans = [
            block
            for block in list(self.reader.orphans.values())
            if block.slot in numbers and block.root not in canonical
        ]
        proposed = {block.slot for block in orphans}
        found = [slot for slot in slots if slot.status != MISSED or slot.slot not in proposed]
        return sorted([*found, *orphans], key=lambda slot: slot.slot)

    @cached_property
    def amounts(self) -> EpochAmounts:
        """Return what validators earned, with the fees of proposers."""
        assert self.source is not None
        amounts = self.source.read(self.epoch, self.validators)
        fees: Mapping[int, int | None]
        if self.reader.execution is None:
            fees = self._find_proposers(amounts.proposals_missed)
        else:
            fees = {**sum_fees(self.reader.payments(self.epoch))}
        return replace(amounts, fees_wei=fees)

    @cached_property
    def vote_counts(self) -> dict[str, int | None] | None:
        """Return the number of votes for each block by root; None if committees are unknown."""
        # The votes for the first slots of an epoch are those of committees of the epoch before.
        if not self.reader.has_committees(max(self.epoch - 1, 0)):
            return None
        return count_votes(self.read_votes(VOTING_EPOCHS))

    def read_votes(self, later: int) -> list[IncludedVote]:
        """Return the attestations in the blocks of the epoch and of *later* ones.

        Attestations for the slots of an epoch are in its blocks and those of the next epoch. Votes
        for its blocks also come from slots of the next epoch without a block: one epoch later at
        most. Blocks after the head do not exist yet.
        """
        votes, reader = [], self.reader
        for epoch in range(self.epoch, min(self.epoch + later, reader.head_epoch) + 1):
            needs_no_last_root = self.epoch + 1 < epoch <= reader.last_complete_epoch
            read = reader.votes_without_last_root if needs_no_last_root else reader.votes
            votes += read(epoch)
        return votes

    def _find_proposers(self, missed: Mapping[int, int]) -> dict[int, None]:
        """Return the validators that proposed a block, whose fees are unknown.

        Before Bellatrix, blocks have no payload and pay no fees.
        """
        reader, epoch = self.reader, self.epoch
        if not is_since(self.spec.fork_at(epoch), "bellatrix"):
            return {}
        if not reader.has_proposers(epoch):
            blocks = reader.block_messages(epoch).items()
            return {int(message["proposer_index"]): None for slot, message in blocks if slot > 0}
        duties = Counter(index for slot, index in reader.proposers(epoch).items() if slot > 0)
        return {index: None for index, count in duties.items() if count > missed.get(index, 0)}
