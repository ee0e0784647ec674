"""The SSZ states of the recorded chains, decoded."""

from __future__ import annotations

import base64
import functools
import json

import msgspec

from beaconframes.beacon_node.client.validator_rows import ValidatorRow, build_whole_registry
from beaconframes.consensus.shuffling import Committees
from beaconframes.consensus.spec import Spec
from beaconframes.consensus.state import decode_state

from .beacon_node_stub import read_recording


class RecordedStates:
    """A recorded chain, with the state of the last slot of each epoch."""

    def __init__(self, name):
        self.recording = read_recording(name)
        self.spec = Spec.parse(self.recording.spec, self.recording.genesis)
        self.expected = self.recording.expected
        self.epochs = range(self.spec.epoch_of(self.recording.last_slot) + 1)

    def data(self, kind, key):
        """Return the data of a recorded answer; None for an error."""
        text = self.recording.ok.get((kind, key))
        return None if text is None else json.loads(text)["data"]

    def ssz(self, epoch):
        """Return the bytes of the state of the last slot of an epoch."""
        slot = "genesis" if epoch < 0 else self.spec.first_slot_of(epoch + 1) - 1
        kind = "state" if ("state", slot) in self.recording.ok else "replayed_state"
        return base64.b64decode(json.loads(self.recording.ok[kind, slot])["ssz"])

    @functools.cache  # noqa: B019 - `load_states` keeps all chains for the whole run
    def state(self, epoch):
        """Return the state of the last slot of an epoch; -1 is that of genesis."""
        return decode_state(self.ssz(epoch), self.spec)

    def registry(self, slot):
        """Return the validators that the node lists for the first or last slot of an epoch."""
        return build_whole_registry(parse_rows(json.loads(self.recording.validators(slot))["data"]))

    def blocks(self, epoch):
        """Return the messages of the blocks of an epoch, in order."""
        first = self.spec.first_slot_of(epoch)
        blocks = [self.data("block", first + n) for n in range(self.spec.slots_per_epoch)]
        return [block["message"] for block in blocks if block is not None]

    def committees(self, epoch):
        """Return the committees of an epoch."""
        rows = [
            {"slot": str(slot), "index": str(index), "validators": members}
            for slot, index, members in self.recording.committees(epoch)
        ]
        return Committees.from_api(self.spec, epoch, rows)


@functools.cache
def load_states(name):
    """Return a recorded chain: altair (without states), capella, electra or forks."""
    return RecordedStates(name)


def parse_rows(data):
    """Return the rows in the data of the validators route."""
    return msgspec.convert(data, list[ValidatorRow], strict=False)
