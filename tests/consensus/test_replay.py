"""Rewards from blocks, committees and validators alone, compared with expected values."""

from __future__ import annotations

import json

import numpy as np
import pytest

from beaconframes.consensus.registry import compute_total_active_balance
from beaconframes.consensus.replay import Replay
from beaconframes.consensus.slot_income import EpochRegistry, compute_slot_income
from beaconframes.errors import UsageError

from ..support.beacon_states import load_states

PARTS = ("source", "target", "head", "inactivity")


def process_epoch(replay, chain, epoch, registry):
    """Process the blocks of an epoch; return the rewards that its end pays."""
    replay.process_blocks(epoch, chain.blocks(epoch), chain.committees(epoch), registry)
    return replay.end_epoch()


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
        rewards = process_epoch(replay, chain, epoch, registry)
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
        process_epoch(replay, chain, 1, chain.registry(8))
    process_epoch(replay, chain, 0, chain.registry(0))
    with pytest.raises(UsageError, match=r"epoch 2 cannot be replayed after epoch 0.*one is 1"):
        process_epoch(replay, chain, 2, chain.registry(16))


def test_no_gwei_of_a_chain_without_states_is_unexplained():
    """Altair, from the routes for blocks, committees, sync committees and validators alone."""
    chain = load_states("altair")
    spec, expected = chain.spec, chain.expected
    replay, rows = Replay(spec), 0
    before = chain.registry(0)
    balances = before.balances
    for epoch in chain.epochs[:-1]:
        first = spec.first_slot_of(epoch)
        after, blocks = chain.registry(spec.first_slot_of(epoch + 1) - 1), chain.blocks(epoch)
        seats = json.loads(chain.recording.sync_committee(epoch))["data"]["validators"]
        registry = EpochRegistry.build(
            spec,
            epoch,
            before=before,
            after=after,
            balances=balances,
            sync_committee=np.array(seats, np.int64),
            total_active_balance=compute_total_active_balance(spec, after, epoch),
            blocks=blocks,
        )
        rewards = process_epoch(replay, chain, epoch, after)
        for block in blocks:
            slot = int(block["slot"])
            rows += len(compute_slot_income(registry, block, replay.inclusion_rewards[slot]))
            if slot == first:
                after_block = expected["balance_after_block_gwei"][str(first)]
                assert registry.balances.tolist() == after_block
        assert registry.balances.tolist() == after.balances.tolist()
        before, balances = after, after.balances + (rewards.total if rewards else 0)
    assert rows > 1000
