"""Columns of consecutive states: copies that do not hold their responses, and that are shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beaconframes.consensus.state import SharedColumns, decode_state

from ..support.beacon_states import load_states


@pytest.fixture(scope="module")
def recorded():
    """The specification and the first SSZ states of the Electra chain."""
    recorded = load_states("electra")
    return recorded.spec, {epoch: recorded.ssz(epoch) for epoch in range(3, 9)}


def columns_of(state):
    """Return the arrays of a state by name."""
    return {name: value for name, value in vars(state).items() if isinstance(value, np.ndarray)}


def test_shared_states_are_equal_to_decoded_ones(recorded):
    """Also of a registry that grows and of an earlier state, which is requested later."""
    spec, states = recorded
    shared = SharedColumns()
    order = [*states, next(iter(states))]
    made = [(slot, shared.share(decode_state(states[slot], spec))) for slot in order]
    assert 2 <= len({len(state.pubkeys) for _, state in made})
    for slot, state in made:
        decoded = decode_state(states[slot], spec)
        assert columns_of(decoded).keys() == columns_of(state).keys()
        for name, column in columns_of(decoded).items():
            np.testing.assert_array_equal(column, getattr(state, name), name)


def find_base(array):
    """Return the object that owns the memory of an array."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def test_a_shared_state_does_not_hold_its_response(recorded):
    spec, states = recorded
    shared = SharedColumns()
    first, second = list(states.values())[:2]
    one, two = (shared.share(decode_state(ssz, spec)) for ssz in (first, second))
    for state in (one, two):
        for name, column in columns_of(state).items():
            assert isinstance(find_base(column), np.ndarray), name
    assert np.shares_memory(one.pubkeys, two.pubkeys)
    assert one.exit_epochs is two.exit_epochs
    assert one.balances is not two.balances


def test_a_registry_with_other_keys_is_not_mixed_with_the_known_one(recorded):
    """A state of another chain of the same node must not change the states that are in use."""
    spec, states = recorded
    shared = SharedColumns()
    known = shared.share(decode_state(next(iter(states.values())), spec))
    before = known.pubkeys.copy()
    other = replace(known, pubkeys=known.pubkeys[::-1])
    assert shared.share(other).pubkeys.tolist() == before[::-1].tolist()
    assert before.tolist() == known.pubkeys.tolist()
