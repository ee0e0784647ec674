"""Block operations other than attestations: slashings, exits, BLS changes, deposits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from beaconframes.consensus import rewards
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.simulator.duties import NO_PROPOSER
from beaconframes.simulator.epoch import Slashing
from beaconframes.simulator.registry import WithdrawalRequest

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Preset
    from beaconframes.simulator.registry import EventPlan, Registry


class BlockOperations:
    """Includes the planned operations in blocks."""

    def __init__(self, seed: int, preset: Preset, registry: Registry, plan: EventPlan) -> None:
        self._rng = np.random.default_rng([seed, 7])
        self._preset, self._registry, self._plan = preset, registry, plan
        self._pending_deposits: list[tuple[int, int]] = []  # validator, gwei
        self._slashed: list[tuple[int, int]] = []  # epoch, effective balance

    def process(self, epoch: Epoch) -> None:
        """Include the operations of an epoch in its blocks, and apply them to the registry."""
        blocks = np.flatnonzero(epoch.slots.rewarded)
        if len(blocks) > 1 and (kind := self._plan.slashings.get(epoch.number)):
            self._process_slashing(epoch, blocks, kind)
        self._pending_deposits += self._plan.first_deposits.get(epoch.number, [])
        self._pending_deposits += self._plan.top_ups.get(epoch.number, [])
        if len(blocks):
            self._process_voluntary_exits(epoch, blocks)
            self._process_bls_changes(epoch, blocks)
            self._process_withdrawal_requests(epoch, blocks)
        if len(blocks[blocks > 0]):
            self._process_deposits(epoch, blocks[blocks > 0])
            self._process_switches(epoch, blocks[blocks > 0])

    def sum_recent_slashings(self, epoch: int) -> int:
        """Return the effective balance slashed in the slashings vector of an epoch, in gwei."""
        since = epoch - self._preset.epochs_per_slashings_vector
        return sum(gwei for slashed_epoch, gwei in self._slashed if slashed_epoch > since)

    def _process_slashing(
        self, epoch: Epoch, blocks: Ints, kind: Literal["attester", "proposer"]
    ) -> None:
        slot = int(self._rng.choice(blocks[1:]))
        proposers = epoch.slots.proposers
        candidates = self._find_slashable(epoch)
        # Proposers of the remaining slots are not slashed, so that their blocks are valid.
        candidates[[p for p in proposers[slot:].tolist() if p != NO_PROPOSER]] = False
        offences = [int(s) for s in blocks if s < slot and candidates[proposers[s]]]
        if kind == "proposer" and offences:
            slashing = Slashing(slot, int(proposers[offences[-1]]), kind, offences[-1])
        elif candidates.any():
            validator = int(self._rng.choice(np.flatnonzero(candidates)))
            slashing = Slashing(slot, validator, "attester", max(0, slot - 2))
        else:
            return
        self._slash_validator(epoch, slashing)

    def _find_slashable(self, epoch: Epoch) -> Bools:
        registry, validator_count = self._registry, self._registry.validator_count
        slashable: Bools = (
            epoch.active
            & ~registry.slashed[:validator_count]
            & (registry.exit[:validator_count] == FAR_FUTURE_EPOCH)
        )
        slashable &= registry.prefix[:validator_count] == 1
        slashable[: self._plan.first_exitable] = False
        return slashable

    def _slash_validator(self, epoch: Epoch, slashing: Slashing) -> None:
        preset, registry, validator = self._preset, self._registry, slashing.validator
        effective = int(epoch.effective[validator])
        penalty, inclusion_reward, whistleblower_reward = rewards.compute_slashing_amounts(
            effective, preset.min_slashing_penalty_quotient, preset.whistleblower_reward_quotient
        )
        proposer = epoch.slots.proposers[slashing.slot]
        epoch.income["slashing_penalty_gwei"][validator] += penalty
        epoch.income["proposer_slashing_inclusion_reward_gwei"][proposer] += inclusion_reward
        epoch.income["slashing_reward_gwei"][proposer] += whistleblower_reward
        epoch.slashings.append(slashing)
        self._initiate_exit(validator, epoch.number)
        registry.slashed[validator] = True
        registry.withdrawable[validator] = max(
            int(registry.withdrawable[validator]),
            epoch.number + preset.epochs_per_slashings_vector,
        )
        self._slashed.append((epoch.number, effective))

    def _process_voluntary_exits(self, epoch: Epoch, blocks: Ints) -> None:
        for validator in self._plan.exits.get(epoch.number, ()):
            if self._registry.exit[validator] == FAR_FUTURE_EPOCH:
                epoch.exits.append((int(self._rng.choice(blocks)), validator))
                self._initiate_exit(validator, epoch.number)
        epoch.exits.sort()

    def _process_bls_changes(self, epoch: Epoch, blocks: Ints) -> None:
        """Change BLS credentials to an address; withdrawals start in the next epoch."""
        for validator in self._plan.bls_changes.get(epoch.number, ()):
            epoch.bls_changes.append((int(self._rng.choice(blocks)), validator))
            self._registry.prefix[validator] = 1
        epoch.bls_changes.sort()

    def _process_withdrawal_requests(self, epoch: Epoch, blocks: Ints) -> None:
        """Queue the requests of validators with compounding credentials, and reject others."""
        registry, delay = self._registry, self._preset.min_validator_withdrawability_delay
        first = epoch.number * len(epoch.slots.statuses)
        payable_from = epoch.number + 1 + self._preset.max_seed_lookahead + delay
        for validator, gwei in self._plan.withdrawal_requests.get(epoch.number, ()):
            slot = int(self._rng.choice(blocks))
            if registry.prefix[validator] == 2:
                request = WithdrawalRequest(first + slot, validator, gwei, payable_from)
                epoch.withdrawal_requests.append(request)
            else:
                epoch.rejected_requests.append((slot, validator, gwei))
        epoch.withdrawal_requests.sort(key=lambda request: request.slot)
        epoch.rejected_requests.sort()
        registry.withdrawal_requests += epoch.withdrawal_requests

    def _process_switches(self, epoch: Epoch, blocks: Ints) -> None:
        """Switch credentials to compounding ones; the balance above 32 ETH becomes a deposit.

        That deposit is processed at the end of the same epoch, so that the balances of epochs
        always have it. The switches are in the first block after the first slot.
        """
        registry, minimum = self._registry, self._preset.min_activation_balance
        paid = set(epoch.withdrawals.validators.tolist())
        for validator in self._plan.switches.get(epoch.number, ()):
            is_free = registry.exit[validator] == FAR_FUTURE_EPOCH
            if registry.prefix[validator] != 1 or not is_free:
                continue
            if validator in paid:  # before the switch; there is nothing left above 32 ETH
                self._plan.switches.setdefault(epoch.number + 1, []).append(validator)
                continue
            excess = max(int(registry.balance[validator]) - minimum, 0)
            epoch.switches.append((int(blocks[0]), validator, excess))
            registry.prefix[validator] = 2
            registry.max_effective[validator] = self._preset.max_effective_balance_compounding
        epoch.switches.sort()

    def _initiate_exit(self, validator: int, epoch: int) -> None:
        exit_epoch = epoch + 1 + self._preset.max_seed_lookahead
        delay = self._preset.min_validator_withdrawability_delay
        self._registry.exit[validator] = exit_epoch
        self._registry.withdrawable[validator] = exit_epoch + delay

    def _process_deposits(self, epoch: Epoch, blocks: Ints) -> None:
        """Include pending deposits in their order, except top-ups of exiting validators.

        They are in later blocks than that of the first slot.
        """
        accepted = [
            (validator, gwei)
            for validator, gwei in self._pending_deposits
            if self._registry.exit[validator] == FAR_FUTURE_EPOCH
        ]
        slots = np.sort(self._rng.choice(blocks, len(accepted))).tolist()
        epoch.deposits = [(slot, *deposit) for slot, deposit in zip(slots, accepted, strict=True)]
        self._pending_deposits = []
