"""What moved the balances of a recorded chain, computed from its blocks and states."""

from __future__ import annotations

import functools

from beaconframes.consensus.attestation_rewards import AttestationRewards
from beaconframes.consensus.epoch_moves import compute_transition
from beaconframes.consensus.participation import BlockParticipation
from beaconframes.consensus.slot_income import EpochRegistry, compute_slot_income

from .beacon_states import load_states


class ChainIncome:
    """Slot income, attestation rewards by duty epoch, and transitions by epoch."""

    def __init__(self, name):
        chain = load_states(name)
        self.slot_income, self.rewards, self.transitions = [], {}, {}
        self.participation, self.balances = {}, {}
        participation = BlockParticipation(chain.spec)
        balances = chain.state(-1).balances
        for epoch in chain.epochs:
            state = chain.state(epoch)
            start_epoch(chain, participation, epoch)
            registry = build_registry(chain, epoch, balances)
            for block in chain.blocks(epoch):
                reward = participation.process_block(block)
                self.slot_income += compute_slot_income(registry, block, reward)
            self.participation[epoch] = participation.previous, participation.current
            self.balances[epoch] = registry.balances
            rewards = AttestationRewards.from_state(chain.spec, state) if epoch else None
            if rewards:
                self.rewards[rewards.epoch] = rewards
            later = chain.state(min(epoch + 1, chain.epochs[-1]))
            self.transitions[epoch] = compute_transition(
                chain.spec, state, later, rewards, later_blocks=chain.blocks(epoch + 1)
            )
            balances = self.transitions[epoch].balances


def start_epoch(chain, participation, epoch):
    """Start an epoch with the values of its state."""
    state = chain.state(epoch)
    total = state.get_total_active_balance(chain.spec)
    participation.start_epoch(epoch, chain.committees(epoch), state.effective_balances, total)


def build_registry(chain, epoch, balances):
    """Return the validators before the first block of an epoch."""
    after = chain.state(epoch)
    return EpochRegistry.build(
        chain.spec,
        epoch,
        before=chain.state(epoch - 1),
        after=after,
        balances=balances,
        sync_committee=after.current_sync_committee,
        total_active_balance=after.get_total_active_balance(chain.spec),
        blocks=chain.blocks(epoch),
    )


@functools.cache
def load_income(name):
    """Return what moved the balances of a chain: capella, electra or forks."""
    return ChainIncome(name)
