"""Attestation rewards from states alone, compared with the executable specification."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beaconframes.consensus.attestation_rewards import (
    AttestationRewards,
    Justification,
    update_inactivity_scores,
)
from beaconframes.consensus.spec import Spec
from beaconframes.errors import UsageError

from ..support.beacon_states import load_states

LEAKS = {"capella": range(25, 34), "electra": range(35, 39), "forks": {15, *range(33, 53)}}
PARTS = ("source", "target", "head", "inactivity")


@pytest.fixture(params=LEAKS)
def name(request):
    return request.param


def test_every_cell_equals_the_specification(name):
    """59, 48 and 70 duty epochs: fork upgrades, slashings, a leak, compounding balances."""
    chain, cells = load_states(name), 0
    expected = chain.expected["attestation_rewards_of_duty_epoch"]
    for epoch in map(int, expected):
        rewards = AttestationRewards.from_state(chain.spec, chain.state(epoch + 1))
        assert epoch == rewards.epoch
        for part in PARTS:
            assert expected[str(epoch)][part] == getattr(rewards, part).tolist(), (epoch, part)
            cells += len(rewards.source)
        assert (epoch in LEAKS[name]) == expected[str(epoch)]["leak"] == rewards.is_leak
        assert sum(getattr(rewards, part) for part in PARTS).tolist() == rewards.total.tolist()
    assert {"capella": 59 * 4 * 16, "electra": 13_928, "forks": 29_644}[name] == cells


def test_the_implied_justification_is_that_of_the_next_state(name):
    chain = load_states(name)
    for epoch in chain.epochs[:-1]:
        implied = Justification.after(chain.spec, chain.state(epoch))
        assert Justification.from_state(chain.state(epoch + 1)) == implied


def test_the_state_of_another_slot_is_refused():
    """The state before the last slot of an epoch does not have all votes yet."""
    chain = load_states("capella")
    state = chain.state(5)

    with pytest.raises(UsageError, match="the state of slot 46 has not the rewards of an epoch"):
        AttestationRewards.from_state(chain.spec, replace(state, slot=46))
    with pytest.raises(UsageError, match="the state of slot 7 "):
        AttestationRewards.from_state(chain.spec, chain.state(0))


class TestJustification:
    """Rules of weigh_justification_and_finalization, epoch by epoch."""

    total = 96

    def weigh(self, before, epoch, previous, current):
        return before.process_epoch(epoch, self.total, previous, current)

    def test_two_thirds_justify(self):
        before = Justification((False,) * 4, 0, 0, 0)

        assert (False,) * 4 == self.weigh(before, 5, 63, 63).bits
        after = self.weigh(before, 5, 63, 64)
        assert ((True, False, False, False), 0, 5, 0) == (
            after.bits, after.previous_justified_epoch, after.current_justified_epoch,
            after.finalized_epoch,
        )  # fmt: skip
        assert self.weigh(before, 5, 64, 63).current_justified_epoch == 4

    def test_two_justified_epochs_in_a_row_finalize_the_first(self):
        before = Justification((True, False, False, False), 0, 4, 0)

        assert self.weigh(before, 5, 0, 64).finalized_epoch == 4

    def test_a_late_target_finalizes_over_three_epochs(self):
        """Epochs 3 and 4 are justified, 3 was the source of the votes for 5."""
        before = Justification((False, True, False, False), 3, 3, 0)

        assert self.weigh(before, 5, 64, 64).finalized_epoch == 3
        assert self.weigh(before, 5, 0, 64).finalized_epoch == 0

    def test_the_first_two_epochs_change_nothing(self):
        before = Justification((False,) * 4, 0, 0, 0)

        assert before == self.weigh(before, 1, 96, 96)

    def test_a_leak_begins_when_finality_is_five_epochs_behind(self):
        spec = Spec(
            name="test", genesis_time=0, genesis_validators_root=b"", fork_epochs={},
            fork_versions={},
        )  # fmt: skip
        behind = Justification((False,) * 4, 3, 3, 3)

        assert [False, False, True] == [behind.is_leak(spec, epoch) for epoch in (7, 8, 9)]


def test_inactivity_scores():
    """A vote lowers the score by 1, a missing one adds 4; without a leak 16 come off."""
    chain = load_states("capella")
    scores = np.array([0, 5, 5, 40, 40])
    eligible = np.array([True, True, True, True, False])
    timely = np.array([True, True, False, False, False])

    def update(*, is_leak):
        return update_inactivity_scores(
            chain.spec, scores, eligible, timely, is_leak=is_leak
        ).tolist()

    assert [0, 4, 9, 44, 40] == update(is_leak=True)
    assert [0, 0, 0, 28, 40] == update(is_leak=False)
