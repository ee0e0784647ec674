"""Rewards from blocks, committees and validators alone, compared with expected values."""

from __future__ import annotations

import pytest

from beaconframes.consensus.replay import Replay
from beaconframes.errors import UsageError

from ..support.beacon_states import load_states

PARTS = ("source", "target", "head", "inactivity")


@pytest.mark.parametrize(
    ("name", "key", "count"),
    [
        ("altair", "attestation_rewards_gwei", 38),
        ("capella", "attestation_rewards_of_duty_epoch", 59),
        ("electra", "attestation_rewards_of_duty_epoch", 48),
    ],
)
def test_replay_from_genesis_gives_the_rewards_of_the_specification(name, key, count):
    """Altair: a chain of which no state and no rewards were recorded, with an inactivity leak."""
    chain = load_states(name)
    replay, checked, leaks = Replay(chain.spec), 0, 0
    for epoch in chain.epochs:
        if name == "capella":  # The validators of some skipped slots were not recorded.
            registry = chain.state(epoch)
        else:
            registry = chain.registry(chain.spec.first_slot_of(epoch))
        rewards = replay.process_epoch(
            epoch, chain.blocks(epoch), chain.committees(epoch), registry
        )
        expected = chain.expected[key].get(str(epoch - 1))
        assert (rewards is None) == (epoch == 0)
        if rewards and expected:
            assert rewards.epoch == epoch - 1
            found = {part: getattr(rewards, part).tolist() for part in PARTS}
            assert found == {part: expected[part] for part in PARTS}
            checked, leaks = checked + 1, leaks + rewards.is_leak
    assert checked == count
    assert leaks > 0


def test_epochs_of_a_replay_must_be_consecutive():
    chain = load_states("altair")
    replay = Replay(chain.spec)
    with pytest.raises(UsageError, match=r"from genesis cannot start with epoch 1.*one is 0"):
        replay.process_epoch(1, chain.blocks(1), chain.committees(1), chain.registry(8))
    replay.process_epoch(0, chain.blocks(0), chain.committees(0), chain.registry(0))
    with pytest.raises(UsageError, match=r"epoch 2 cannot be replayed after epoch 0.*one is 1"):
        replay.process_epoch(2, chain.blocks(2), chain.committees(2), chain.registry(16))
