"""Amounts of nodes that have neither SSZ states nor rewards routes: a replay from genesis."""

from __future__ import annotations

import numpy as np
import pytest

from beaconframes.beacon_node.amounts import replay as replay_amounts
from beaconframes.beacon_node.amounts.replay import ReplayAmounts
from beaconframes.beacon_node.amounts.states import StateAmounts
from beaconframes.beacon_node.chain.reader import ChainReader
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.errors import NotServed, ResponseError

from ..support.beacon_node_faults import Fault
from ..support.beacon_node_stub import BeaconNodeStub

PARTS = ("source", "target", "head", "inactivity")
ALTAIR_HEAD = 314
"""The last recorded slot."""


def open_replay(name="altair", *, head=ALTAIR_HEAD, faults=()):
    node = BeaconNodeStub(name, faults=faults)
    api = BeaconApi(NodeSession("http://node.test", transport=node.transport))
    reader = ChainReader(api, api.chain_spec, head_slot=head, has_states=False)
    return node, ReplayAmounts(reader)


def check_epoch(amounts, expected, epoch):
    """Compare an epoch of all validators with the expected values of a chain."""
    rewards = (
        expected.get("attestation_rewards_gwei") or (expected["attestation_rewards_of_duty_epoch"])
    )
    found = {part: getattr(amounts, part).tolist() for part in PARTS}
    assert found == {part: rewards[str(epoch)][part] for part in PARTS}
    if "balance_after_block_gwei" in expected:
        balances = expected["balance_after_block_gwei"][str(epoch * 8)]
    else:
        balances = expected["balance_first_slot_post_block"][str(epoch)]
    assert amounts.balances.tolist() == balances
    assert not amounts.unexplained


@pytest.mark.more
def test_altair_chain_is_replayed_to_the_gwei():
    """All cells of 38 duty epochs, all balances; 0 of 576 rows are unexplained."""
    node, replay = open_replay()
    compared = set()
    for epoch in range(38):
        amounts = replay.read(epoch, None)
        check_epoch(amounts, node.recording.expected, epoch)
        compared |= set(range(epoch, amounts.verified_until + 1))
    assert len(compared) * len(amounts.validators) >= 576
    assert amounts.verified_until == 38
    assert not any("/debug/" in route or "/rewards/" in route for route in node.counts)
    assert node.counts["/eth/v1/beacon/states/{state_id}/validators"] == 40


@pytest.mark.more
def test_capella_chain_is_replayed_to_the_gwei():
    """59 duty epochs with withdrawals, slashings and correlation penalties."""
    node, replay = open_replay("capella", head=479)
    for epoch in range(59):
        check_epoch(replay.read(epoch, None), node.recording.expected, epoch)


@pytest.mark.more
def test_correlation_penalties_are_replayed():
    """At the end of epoch 45, which the replay reaches from genesis."""
    node, replay = open_replay("capella", head=479)
    amounts = replay.read(45, None)
    check_epoch(amounts, node.recording.expected, 45)
    penalties = node.recording.expected["correlation_penalties_at_end_of_epoch"]["45"]
    assert {str(index): gwei for _, _, index, gwei in amounts.moves} == penalties


class LostBlock(Fault):
    """The node answers 404 for the block of a *slot*, and for its header."""

    def __init__(self, slot):
        self.slot = str(slot)

    def refuse(self, node, request):
        return node.no_block(self.slot) if request.args.get("block_id") == self.slot else None


@pytest.mark.parametrize("has_states", [True, False])
def test_income_of_an_epoch_with_a_lost_block_is_an_error(has_states):
    """Without the check, the votes in the lost block are missing in the income of its epoch."""
    _, replay = open_replay("capella", head=31, faults=[LostBlock(10)])
    reader = ChainReader(replay.reader.api, replay.spec, head_slot=31, has_states=has_states)
    amounts = (StateAmounts if has_states else ReplayAmounts)(reader)
    with pytest.raises(ResponseError, match=r"block of slot 9 .*has lost a later block"):
        amounts.read(1, None)


def test_a_run_that_starts_later_replays_the_epochs_before_it(monkeypatch):
    monkeypatch.setattr(replay_amounts, "CACHED_EPOCHS", 3)
    node, replay = open_replay(head=63)
    chosen = replay.read(5, [3, 5, 99])
    assert chosen.validators.tolist() == [3, 5]
    expected = node.recording.expected["attestation_rewards_gwei"]["5"]
    assert chosen.source.tolist() == [expected["source"][index] for index in (3, 5)]
    # An epoch that is not cached any more is replayed again, with the same amounts.
    check_epoch(replay.read(1, None), node.recording.expected, 1)
    again = replay.read(5, [3, 5, 99])
    assert np.array_equal(again.balances, chosen.balances)


def test_missing_duties_of_an_old_epoch_are_named():
    _, replay = open_replay(faults=["old-duties"])
    with pytest.raises(NotServed, match=r"replayed from genesis, and epoch 0 cannot be") as caught:
        replay.read(20, None)
    assert "committees of all epochs" in caught.value.hint


def test_states_of_skipped_slots_are_not_needed():
    """The state of the last block of an epoch is that of its last slot."""
    node, replay = open_replay(head=79, faults=["skipped-slot-state"])
    for epoch in range(7):
        check_epoch(replay.read(epoch, None), node.recording.expected, epoch)


def test_epochs_since_electra_are_refused_by_name():
    _, replay = open_replay("electra", head=79)
    with pytest.raises(NotServed, match="epoch 2 belongs to electra"):
        replay.read(1, None)


def test_an_error_within_an_epoch_does_not_change_what_a_later_call_returns(monkeypatch):
    node, replay = open_replay(head=55)
    with monkeypatch.context() as patch:
        patch.setattr(replay, "_add_slashings", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            replay.read(4, None)
    check_epoch(replay.read(4, None), node.recording.expected, 4)
