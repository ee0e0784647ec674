"""A state of Fulu, serialized with the executable specification, which also gave the values."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from beaconframes.consensus.attestation_rewards import AttestationRewards
from beaconframes.consensus.shuffling import compute_committees, compute_proposers
from beaconframes.consensus.spec import Spec
from beaconframes.consensus.state import decode_state
from beaconframes.errors import UsageError

FOLDER = Path(__file__).parent.parent / "recordings" / "fulu_state"


def read(name):
    return lzma.decompress((FOLDER / name).read_bytes())


@pytest.fixture(scope="module")
def expected():
    return json.loads(read("expected.json.xz"))


@pytest.fixture(scope="module")
def spec(expected):
    """The config has a BLOB_SCHEDULE, which is a list."""
    assert expected["config"]["BLOB_SCHEDULE"]
    return Spec.parse(expected["config"], expected["genesis"])


@pytest.fixture(scope="module")
def state(spec):
    return decode_state(read("state.ssz.xz"), spec)


def test_fields(expected, state, spec):
    assert ("fulu", expected["slot"]) == (state.fork, state.slot)
    assert "fulu" == spec.fork_at(spec.epoch_of(state.slot))
    assert expected["balances"] == state.balances.tolist()
    assert expected["next_sync_committee"] == state.next_sync_committee.tolist()
    assert expected["proposer_lookahead"] == state.proposer_lookahead.tolist()


def test_proposers_are_those_of_the_lookahead(expected, state, spec):
    """Those of the next epoch were chosen before two balances grew."""
    epoch = spec.epoch_of(state.slot)
    lookahead = expected["proposer_lookahead"]

    assert lookahead[:8] == compute_proposers(spec, state, epoch).tolist()
    assert lookahead[8:] == compute_proposers(spec, state, epoch + 1).tolist()
    assert lookahead[8:] != expected["proposers_of_next_epoch"]
    for other in (epoch - 1, epoch + 2):
        with pytest.raises(UsageError, match=f"proposers of epoch {other} do not follow"):
            compute_proposers(spec, state, other)


def test_committees(expected, state, spec):
    committees = compute_committees(spec, state, spec.epoch_of(state.slot))

    assert expected["committees"] == [
        [slot, index, committees.of(slot, index).tolist()]
        for slot in range(committees.first_slot, committees.first_slot + 8)
        for index in range(committees.per_slot)
    ]


def test_attestation_rewards(expected, state, spec):
    rewards = AttestationRewards.from_state(spec, state)

    assert expected["leak"] == rewards.is_leak
    for part in ("source", "target", "head", "inactivity"):
        assert expected[part] == getattr(rewards, part).tolist()
