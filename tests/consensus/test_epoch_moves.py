"""What transitions move, compared with the executable specification; identities of balances."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from beaconframes.consensus.epoch_moves import compute_transition

from ..support.beacon_states import load_states
from ..support.chain_income import load_income

KINDS = {
    "slashing_correlation": "slashing_correlation",
    "pending_deposits": "pending_deposit",
    "pending_consolidations": "pending_consolidation",
}


def list_expected(chain):
    """Return the expected moves of a chain."""
    expected = chain.expected
    if "epoch_end_moves" not in expected:
        penalties = expected["correlation_penalties_at_end_of_epoch"]
        return {
            (int(epoch), "slashing_correlation", int(index), amount)
            for epoch, by_validator in penalties.items()
            for index, amount in by_validator.items()
        }
    moves = {(epoch, KINDS[part], *rest) for epoch, part, *rest in expected["epoch_end_moves"]}
    upgrade = {
        (chain.spec.epoch_of(slot) - 1, "fork_upgrade", index, amount)
        for slot, index, amount in expected["fork_upgrade_moves"]
    }
    assert len(moves | upgrade) == {"electra": 29, "forks": 51}[chain.recording.name]
    return moves | upgrade


@pytest.mark.parametrize("name", ["capella", "electra", "forks"])
def test_moves_and_balances_of_transitions_are_those_of_the_specification(name):
    """Correlation penalties, `epoch_end_moves`, `fork_upgrade_moves`; balances before blocks."""
    chain, income = load_states(name), load_income(name)
    rows = [move for transition in income.transitions.values() for move in transition.moves]
    assert len(rows) == len(set(rows))
    assert set(rows) == list_expected(chain)
    for epoch in chain.epochs[1:]:
        balances = income.transitions[epoch - 1].balances.tolist()
        assert balances == chain.expected["balance_first_slot_pre_block"][str(epoch)]


@pytest.mark.parametrize("name", ["capella", "electra", "forks"])
@pytest.mark.parametrize(
    ("balance", "first_slot"),
    [("balance_last_slot", 0), ("balance_first_slot_post_block", 1)],
)
def test_no_gwei_is_unexplained(name, balance, first_slot):
    """Balance changes = slot income + attestation rewards + moves, with both readings of balances.

    A balance after the first slot's block has the slot income of that block.
    """
    chain, income = load_states(name), load_income(name)
    size, balances = chain.spec.slots_per_epoch, chain.expected[balance]
    count = len(balances[str(chain.epochs[-1])])
    change = np.zeros((len(chain.epochs), count), np.int64)
    for slot, _, index, amount in income.slot_income:
        reading = (slot - first_slot + size) // size if first_slot else slot // size
        if reading < len(change):
            change[reading, index] += amount
    for epoch in chain.epochs[1:]:
        if epoch > 1:
            total = income.rewards[epoch - 2].total
            change[epoch, : len(total)] += total
        for _, _, index, amount in income.transitions[epoch - 1].moves:
            change[epoch, index] += amount
    read = np.zeros_like(change)
    for epoch in chain.epochs:
        row = balances[str(epoch)]
        read[epoch, : len(row)] = row
    unexplained = read[1:] - read[:-1] - change[1:]
    assert np.count_nonzero(unexplained) == 0


def test_moves_of_known_validators_need_one_state_only():
    """The one difference: a deposit with an invalid signature counts as that of a validator."""
    chain, income = load_states("electra"), load_income("electra")
    found, expected = Counter(), Counter()
    for epoch in chain.epochs:
        found.update(compute_transition(chain.spec, chain.state(epoch)).moves)
        expected.update(income.transitions[epoch].moves)
    assert found - expected == {(7, "pending_deposit", 71, 32 * 10**9): 1}
    assert not expected - found


def test_requests_move_balances_at_these_moments():
    """The labels of `operations`: epoch of the request, and the epoch at whose end it moves."""
    income = load_income("electra")
    ends = {
        (kind, index): epoch
        for epoch, transition in income.transitions.items()
        for _, kind, index, _ in transition.moves
    }
    assert ends["pending_deposit", 70] == 6  # Slot 34 (epoch 4) is finalized in this transition.
    assert ends["pending_deposit", 20] == 16  # Requested in epoch 8, exiting until then.
    assert ends["pending_consolidation", 60] == 17  # Requested in epoch 9.
    switches = [row for row in income.slot_income if row.kind == "switch_to_compounding"]
    assert switches == [(74, "switch_to_compounding", 11, -23804)]  # In the block, epoch 9;
    assert ends["pending_deposit", 11] == 10  # and its excess one epoch later.
