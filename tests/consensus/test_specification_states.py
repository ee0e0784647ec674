"""States that the executable specification made: Fulu, and the mainnet preset."""

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

FOLDER = Path(__file__).parent.parent / "recordings" / "specification_states"


class SpecificationState:
    """A state with the values that the specification computes from it."""

    def __init__(self, name):
        self.fork = {"fulu": "fulu", "mainnet": "electra"}[name]
        self.expected = json.loads(self.read(f"{name}-expected.json.xz"))
        if name == "fulu":
            # The blob parameters of the config are a list.
            assert self.expected["config"]["BLOB_SCHEDULE"]
            self.spec = Spec.parse(self.expected["config"], self.expected["genesis"])
        else:
            self.spec = Spec(
                name="invented",
                genesis_time=0,
                genesis_validators_root=b"\x11" * 32,
                fork_epochs={"electra": 0},
                fork_versions={"electra": bytes.fromhex("05000000")},
            )
        self.state = decode_state(self.read(f"{name}-state.ssz.xz"), self.spec)
        self.epoch = self.spec.epoch_of(self.state.slot)

    def read(self, name):
        return lzma.decompress((FOLDER / name).read_bytes())


@pytest.fixture(scope="module")
def fulu():
    return SpecificationState("fulu")


@pytest.fixture(scope="module", params=["fulu", "mainnet"])
def made(request):
    return SpecificationState(request.param)


def test_fields(made):
    state, expected = made.state, made.expected

    assert (made.fork, expected["slot"]) == (state.fork, state.slot)
    assert made.fork == made.spec.fork_at(made.epoch)
    assert expected["balances"] == state.balances.tolist()
    assert expected["next_sync_committee"] == state.next_sync_committee.tolist()


def test_committees_and_proposers(made):
    committees = compute_committees(made.spec, made.state, made.epoch)
    slots = range(committees.first_slot, made.state.slot + 1)

    assert made.expected["committees"] == [
        [slot, index, committees.of(slot, index).tolist()]
        for slot in slots
        for index in range(committees.per_slot)
    ]
    assert (
        made.expected["proposers"] == compute_proposers(made.spec, made.state, made.epoch).tolist()
    )


def test_attestation_rewards(made):
    rewards = AttestationRewards.from_state(made.spec, made.state)

    assert made.expected["leak"] == rewards.is_leak
    for part in ("source", "target", "head", "inactivity"):
        assert made.expected[part] == getattr(rewards, part).tolist()


def test_proposers_since_fulu_are_those_of_the_lookahead(fulu):
    """Those of the next epoch were chosen before two balances grew."""
    lookahead = fulu.expected["proposer_lookahead"]

    assert lookahead == fulu.state.proposer_lookahead.tolist()
    assert lookahead[8:] == compute_proposers(fulu.spec, fulu.state, fulu.epoch + 1).tolist()
    assert lookahead[8:] != fulu.expected["proposers_of_next_epoch"]
    for other in (fulu.epoch - 1, fulu.epoch + 2):
        with pytest.raises(UsageError, match=f"proposers of epoch {other} do not follow"):
            compute_proposers(fulu.spec, fulu.state, other)
