"""Participation flags and slot income of blocks, compared with the executable specification."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from beaconframes.consensus.participation import BlockParticipation, find_attesters
from beaconframes.consensus.slot_income import KINDS, EpochRegistry, compute_slot_income
from beaconframes.errors import ResponseError, UsageError

from ..support.beacon_states import load_states

PARTS = {
    "withdrawal": "withdrawals",
    "attestation_inclusion": "proposer_attestations",
    "sync_committee": "sync",
    "sync_inclusion": "sync",
    "proposer_slashing_inclusion": "slashing",
    "attester_slashing_inclusion": "slashing",
    "slashing_penalty": "slashing",
    "switch_to_compounding": "switch_to_compounding",
}
"""The part of the expected values that has a kind of rows."""


def build_registry(chain, epoch):
    """Return the validators before the first block of an epoch."""
    after = chain.state(epoch)
    return EpochRegistry.build(
        chain.spec,
        epoch,
        before=chain.state(epoch - 1),
        after=after,
        balances=np.array(chain.expected["balance_first_slot_pre_block"][str(epoch)]),
        sync_committee=after.current_sync_committee,
        total_active_balance=after.get_total_active_balance(chain.spec),
    )


def start_epoch(chain, participation, epoch):
    """Start an epoch with the values of its state."""
    state = chain.state(epoch)
    participation.start_epoch(
        epoch,
        chain.committees(epoch),
        state.effective_balances,
        state.get_total_active_balance(chain.spec),
    )


@pytest.mark.parametrize(("name", "count"), [("capella", 7274), ("electra", 12118)])
def test_blocks_move_balances_as_the_specification_says(name, count):
    """Every cell of `slot_income`; flags and balances equal those of the next state."""
    chain = load_states(name)
    participation = BlockParticipation(chain.spec)
    rows = []
    for epoch in chain.epochs:
        state, registry = chain.state(epoch), build_registry(chain, epoch)
        start_epoch(chain, participation, epoch)
        for block in chain.blocks(epoch):
            rows += compute_slot_income(registry, block, participation.process_block(block))
        assert participation.current.tolist() == state.current_participation.tolist()
        assert participation.previous.tolist() == state.previous_participation.tolist()
        assert registry.balances.tolist() == state.balances.tolist()
    found, expected = Counter(), Counter()
    for slot, kind, index, amount in rows:
        found[slot, PARTS[kind], index] += amount
    for slot, part, index, amount in chain.expected["slot_income"]:
        expected[slot, "slashing" if "slashing" in part else part, index] += amount
    assert len(expected) == count
    assert found == expected
    keys = [row[:3] for row in rows]
    assert len(keys) == len(set(keys))
    assert {kind for _, kind, _ in keys} <= set(KINDS)
