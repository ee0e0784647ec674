"""Committees and proposers, compared with recorded routes and with the shuffle of one index."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from beaconframes.consensus.shuffling import (
    Committees,
    compute_committees,
    compute_proposers,
    shuffle,
)
from beaconframes.consensus.spec import Spec
from beaconframes.errors import ResponseError, UsageError

from ..support.beacon_node_stub import Recording
from ..support.beacon_states import load_states


@pytest.fixture(params=["capella", "electra"])
def chain(request):
    return load_states(request.param)


def expected_committees(chain, epoch):
    """Return slot, index and members of each committee."""
    rows = chain.expected["committees"][str(epoch)]
    if chain.recording.name == "capella":  # One committee in each slot.
        return [(8 * epoch + place, 0, members) for place, members in enumerate(rows)]
    return [tuple(row) for row in rows]


def list_committees(committees):
    slots = range(committees.first_slot, committees.first_slot + 8)
    return [
        (slot, index, committees.of(slot, index).tolist())
        for slot in slots
        for index in range(committees.per_slot)
    ]


def test_committees_of_every_state_are_the_expected_ones(chain):
    """From the state of the same epoch, of the epoch before, and of one long after."""
    spec = chain.spec
    for epoch in chain.epochs:
        expected = expected_committees(chain, epoch)
        later = min(epoch + 40, chain.epochs[-1])
        for source in (epoch, max(epoch - 1, 0), later):
            committees = compute_committees(spec, chain.state(source), epoch)
            assert expected == list_committees(committees)
        slot = spec.first_slot_of(epoch) + 3
        assert [members for at, _, members in expected if at == slot] == [
            members.tolist() for members in committees.at_slot(slot)
        ]


def test_recorded_committees_are_the_expected_ones(chain):
    """Lodestar 1.5.1 labels each committee of the Capella chain with slot 0."""
    count = 0
    for epoch in chain.epochs:
        if rows := chain.data("committees", epoch):
            count += 1
            expected = expected_committees(chain, epoch)
            assert expected == list_committees(Committees.from_api(chain.spec, epoch, rows))
    assert count >= 50


def test_recorded_committees_of_altair_are_the_expected_ones():
    """The same wrong labels, on a chain without states."""
    recording = Recording("altair")
    spec = Spec.parse(recording.spec, recording.genesis)
    epochs = [key for kind, key in recording.ok if kind == "committees"]
    assert len(epochs) > 30
    for epoch in epochs:
        rows = json.loads(recording.ok["committees", epoch])["data"]
        committees = Committees.from_api(spec, epoch, rows)
        assert recording.expected["committees"][str(epoch)] == [
            members for _, _, members in list_committees(committees)
        ]


def test_proposers_of_every_state_are_the_expected_ones(chain):
    for epoch in chain.epochs:
        proposers = compute_proposers(chain.spec, chain.state(epoch), epoch).tolist()
        expected = chain.expected["proposers"]
        assert proposers == (
            expected[str(epoch)] if isinstance(expected, dict) else expected[8 * epoch :][:8]
        )
        if rows := chain.data("proposer_duties", epoch):
            assert proposers == [int(row["validator_index"]) for row in rows]


def shuffle_one(index, count, seed, rounds):
    """compute_shuffled_index, as the specification writes it."""
    for number in range(rounds):
        prefix = seed + bytes([number])
        pivot = int.from_bytes(hashlib.sha256(prefix).digest()[:8], "little") % count
        flip = (pivot + count - index) % count
        position = max(index, flip)
        source = hashlib.sha256(prefix + (position // 256).to_bytes(4, "little")).digest()
        if (source[position % 256 // 8] >> position % 8) % 2:
            index = flip
    return index


@pytest.mark.parametrize("count", [1, 2, 3, 16, 255, 256, 257, 600])
def test_the_whole_list_is_shuffled_as_each_index_is(count):
    seed, validators = hashlib.sha256(bytes([count % 256])).digest(), np.arange(count) * 3

    shuffled = shuffle(validators, seed, 10)

    assert [3 * shuffle_one(place, count, seed, 10) for place in range(count)] == shuffled.tolist()


def test_no_validators_stay_no_validators():
    assert [] == shuffle(np.empty(0, np.int64), bytes(32), 90).tolist()


class TestFromApi:
    def rows(self, epoch=10):
        return load_states("electra").data("committees", epoch)

    def parse(self, rows, epoch=10):
        return Committees.from_api(load_states("electra").spec, epoch, rows)

    def test_the_order_of_rows_is_no_matter(self):
        assert list_committees(self.parse(self.rows())) == list_committees(
            self.parse(self.rows()[::-1])
        )

    def test_committees_of_another_epoch_are_refused(self):
        with pytest.raises(ResponseError, match=r"0 of slot 80 in place of .* of slot 72"):
            self.parse(self.rows(10), epoch=9)

    def test_missing_committees_are_refused(self):
        with pytest.raises(ResponseError, match="lists 0 committees for epoch 10"):
            self.parse([])
        with pytest.raises(ResponseError, match="lists 15 committees for epoch 10"):
            self.parse(self.rows()[1:])
        with pytest.raises(ResponseError, match=r"0 of slot 84 in place of .* of slot 80"):
            self.parse(self.rows()[8:])

    def test_a_validator_in_two_committees_is_refused(self):
        rows = self.rows()
        rows[3]["validators"].append(rows[0]["validators"][0])

        with pytest.raises(
            ResponseError, match=rf"validator {rows[0]['validators'][0]} more than once"
        ):
            self.parse(rows)

    @pytest.mark.parametrize(
        "change",
        [
            {"slot": "x"}, {"index": None}, {"validators": ["1", "x"]}, {"validators": ["-4"]},
            {"validators": "12"}, {"validators": [str(2**64)]}, {"validators": [["1"]]},
        ],
    )  # fmt: skip
    def test_malformed_rows_are_refused(self, change):
        rows = self.rows()
        rows[5] |= change

        with pytest.raises(ResponseError, match="lists an invalid committee: "):
            self.parse(rows)

    def test_a_slot_or_index_that_does_not_exist_is_refused(self):
        committees = self.parse(self.rows())
        for slot in (79, 88):
            with pytest.raises(ResponseError, match=f"slot {slot} is not in epoch 10"):
                committees.at_slot(slot)
        for index in (-1, 2):
            with pytest.raises(ResponseError, match=f"slot 81 has no committee {index}"):
                committees.of(81, index)


def test_epochs_that_a_state_does_not_know_are_refused():
    """The next epoch's proposers depend on balances of that epoch, its committees do not."""
    chain = load_states("electra")
    state, spec = chain.state(10), chain.spec
    for epoch in (-1, 12):
        with pytest.raises(UsageError, match=f"committees of epoch {epoch} do not follow"):
            compute_committees(spec, state, epoch)
    for epoch in (9, 11):
        with pytest.raises(UsageError, match=f"proposers of epoch {epoch} do not follow"):
            compute_proposers(spec, state, epoch)
    # 64 epochs are stored, and the seed of an epoch is two epochs older than the epoch.
    late = replace(state, slot=spec.first_slot_of(70))
    compute_committees(spec, late, 9)
    with pytest.raises(UsageError, match="committees of epoch 8 do not follow"):
        compute_committees(spec, late, 8)


def test_a_state_without_active_validators_is_refused():
    chain = load_states("electra")
    empty = replace(chain.state(10), exit_epochs=np.zeros_like(chain.state(10).exit_epochs))
    for compute in (compute_committees, compute_proposers):
        with pytest.raises(ResponseError, match="no validator of the state is active in epoch 10"):
            compute(chain.spec, empty, 10)
