"""The blocks of the recorded chains, as a reader of a node has them."""

from __future__ import annotations

import copy
import functools
import json

from beaconframes.beacon_node.chain.votes import read_votes
from beaconframes.beacon_node.client.slot_blocks import read_slots
from beaconframes.consensus.shuffling import Committees
from beaconframes.consensus.spec import Spec

from .beacon_node_stub import DRIVEN, read_recording


class RecordedBlocks:
    """The blocks, duties and committees of a recorded chain."""

    def __init__(self, name):
        self.recording = read_recording(name)
        self.expected = self.recording.expected
        self.spec = Spec.parse(self.recording.spec, self.recording.genesis)
        slots = range(self.recording.last_slot + 1)
        self.answers = {slot: self.data("block", slot) for slot in slots}
        self.headers = {slot: self.data("header", slot) for slot in slots if self.answers[slot]}

    def data(self, kind, key):
        """Return the data of a recorded answer, None for an error."""
        text = self.recording.ok.get((kind, key))
        return None if text is None else json.loads(text)["data"]

    @property
    def epochs(self):
        """The recorded epochs."""
        return range(self.recording.last_slot // 8 + 1)

    @functools.cached_property
    def proposers(self):
        """The proposers of all slots, from the recorded duties."""
        return {
            int(duty["slot"]): int(duty["validator_index"])
            for epoch in self.epochs
            for duty in self.data("proposer_duties", epoch)
        }

    @functools.cached_property
    def slots(self):
        """The slots with their blocks."""
        return read_slots(self.spec, self.answers, proposers=self.proposers)

    @functools.cached_property
    def committees(self):
        """The expected committees by epoch."""
        return {
            int(epoch): Committees.from_api(self.spec, int(epoch), self._label(int(epoch), rows))
            for epoch, rows in self.expected["committees"].items()
        }

    def _label(self, epoch, rows):
        """Return expected committees as the route lists them; only newer ones have labels."""
        if self.recording.name not in DRIVEN:
            rows = [(epoch * 8 + slot, 0, members) for slot, members in enumerate(rows)]
        return [
            {"slot": str(slot), "index": str(index), "validators": [str(each) for each in members]}
            for slot, index, members in rows
        ]

    @functools.cached_property
    def votes(self):
        """The attestations of all blocks."""
        return read_votes(self.spec, self.slots, self.committees)

    def votes_of(self, epoch):
        """Return the attestations that can fulfill the duties of an epoch."""
        return [vote for vote in self.votes if vote.place.slot // 8 in {epoch, epoch + 1}]

    def change(self, slot, path, value):
        """Return the block of a slot with one other value; ``...`` removes the field."""
        block = copy.deepcopy(self.answers[slot])
        *parents, last = path
        place = block
        for step in parents:
            place = place[step]
        if value is ...:
            del place[last]
        else:
            place[last] = value
        return block


@functools.cache
def load_blocks(name):
    """Return the blocks of a recorded chain: altair, capella, electra or forks."""
    return RecordedBlocks(name)
