"""Slot income of recorded blocks, compared with the executable specification."""

from __future__ import annotations

from collections import Counter

import pytest

from beaconframes.consensus.participation import BlockParticipation
from beaconframes.consensus.slot_income import KINDS

from ..support.beacon_states import load_states
from ..support.chain_income import load_income, start_epoch

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
"""The part of the expected values for each kind of rows."""


@pytest.mark.parametrize(
    ("name", "count"), [("capella", 7274), ("electra", 12118), ("forks", 16532)]
)
def test_every_cell_of_slot_income_is_that_of_the_specification(name, count):
    rows = load_income(name).slot_income
    found, expected = Counter(), Counter()
    for slot, kind, index, amount in rows:
        found[slot, PARTS[kind], index] += amount
    for slot, part, index, amount in load_states(name).expected["slot_income"]:
        expected[slot, "slashing" if "slashing" in part else part, index] += amount
    assert len(expected) == count
    assert found == expected


@pytest.mark.parametrize("name", ["capella", "electra", "forks"])
def test_rows_have_one_amount_per_slot_kind_and_validator(name):
    keys = [row[:3] for row in load_income(name).slot_income]
    assert len(keys) == len(set(keys))
    assert {kind for _, kind, _ in keys} <= set(KINDS)


@pytest.mark.parametrize("name", ["capella", "electra", "forks"])
def test_blocks_lead_to_the_flags_and_balances_of_the_next_state(name):
    chain, income = load_states(name), load_income(name)
    for epoch in chain.epochs:
        state = chain.state(epoch)
        previous, current = income.participation[epoch]
        assert current.tolist() == state.current_participation.tolist()
        assert previous.tolist() == state.previous_participation.tolist()
        assert income.balances[epoch].tolist() == state.balances.tolist()


@pytest.mark.parametrize("epoch", [1, 26])
def test_one_epoch_alone_pays_proposers_the_same(epoch):
    """From the state before it, or from the blocks of the epoch before, in any order of epochs."""
    chain = load_states("electra")
    expected = {
        slot: amount
        for slot, kind, _, amount in load_income("electra").slot_income
        if kind == "attestation_inclusion" and chain.spec.epoch_of(slot) == epoch
    }
    from_blocks = BlockParticipation(chain.spec)
    start_epoch(chain, from_blocks, epoch - 1)
    unknown = [from_blocks.process_block(block) for block in chain.blocks(epoch - 1)]
    assert set(unknown) == {None} if epoch > 1 else None not in unknown
    from_state = BlockParticipation.from_state(
        chain.spec, chain.state(epoch - 1), chain.committees(epoch - 1)
    )
    for participation in (from_blocks, from_state):
        start_epoch(chain, participation, epoch)
        found = {
            int(block["slot"]): participation.process_block(block) for block in chain.blocks(epoch)
        }
        assert found == expected
