"""What blocks include besides votes: slashings, voluntary exits and deposits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from beaconframes.simulator import rewards
from beaconframes.simulator.duties import NOBODY
from beaconframes.simulator.epoch import Slashing
from beaconframes.simulator.preset import FAR_FUTURE

if TYPE_CHECKING:
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Bools, Ints, Preset
    from beaconframes.simulator.registry import Plan, Registry


class Events:
    """Lets the plan come true, in blocks that exist."""

    def __init__(self, seed: int, preset: Preset, registry: Registry, plan: Plan) -> None:
        self._rng = np.random.default_rng([seed, 7])
        self._preset, self._registry, self._plan = preset, registry, plan
        self._waiting: list[tuple[int, int]] = []  # deposits: validator, gwei
        self._slashed: list[tuple[int, int]] = []  # epoch, effective balance

    def include(self, epoch: Epoch) -> None:
        """Put the epoch's events into its blocks."""
        blocks = np.flatnonzero(epoch.slots.earning)
        if len(blocks) > 1 and (kind := self._plan.slashings.get(epoch.number)):
            self._slash_somebody(epoch, blocks, kind)
        self._waiting += self._plan.arrivals.get(epoch.number, [])
        self._waiting += self._plan.top_ups.get(epoch.number, [])
        if len(blocks):
            self._let_exit(epoch, blocks)
            self._change_credentials(epoch, blocks)
            self._take_deposits(epoch, blocks)

    def slashed_around(self, epoch: int) -> int:
        """Return the effective balance that was slashed in the time before, in gwei."""
        since = epoch - self._preset.epochs_per_slashings_vector
        return sum(gwei for when, gwei in self._slashed if when > since)

    def _slash_somebody(
        self, epoch: Epoch, blocks: Ints, kind: Literal["attester", "proposer"]
    ) -> None:
        slot = int(self._rng.choice(blocks[1:]))
        proposers = epoch.slots.proposers
        whole = self._candidates(epoch)
        # Who still has a block to propose stays whole, so that every block is a valid one.
        whole[[p for p in proposers[slot:].tolist() if p != NOBODY]] = False
        offences = [int(s) for s in blocks if s < slot and whole[proposers[s]]]
        if kind == "proposer" and offences:
            slashing = Slashing(slot, int(proposers[offences[-1]]), kind, offences[-1])
        elif whole.any():
            validator = int(self._rng.choice(np.flatnonzero(whole)))
            slashing = Slashing(slot, validator, "attester", max(0, slot - 2))
        else:
            return
        self._slash(epoch, slashing)

    def _candidates(self, epoch: Epoch) -> Bools:
        registry, known = self._registry, self._registry.known
        whole: Bools = (
            epoch.active & ~registry.slashed[:known] & (registry.exit[:known] == FAR_FUTURE)
        )
        whole &= registry.prefix[:known] == 1
        whole[: self._plan.steady] = False
        return whole

    def _slash(self, epoch: Epoch, slashing: Slashing) -> None:
        preset, registry, validator = self._preset, self._registry, slashing.validator
        effective = int(epoch.effective[validator])
        penalty, for_including, for_reporting = rewards.slashing_amounts(preset, effective)
        reporter = epoch.slots.proposers[slashing.slot]
        epoch.income["slashing_penalty_gwei"][validator] += penalty
        epoch.income["proposer_slashing_inclusion_reward_gwei"][reporter] += for_including
        epoch.income["slashing_reward_gwei"][reporter] += for_reporting
        epoch.slashings.append(slashing)
        self._leave(validator, epoch.number)
        registry.slashed[validator] = True
        registry.withdrawable[validator] = max(
            int(registry.withdrawable[validator]),
            epoch.number + preset.epochs_per_slashings_vector,
        )
        self._slashed.append((epoch.number, effective))

    def _let_exit(self, epoch: Epoch, blocks: Ints) -> None:
        for validator in self._plan.exits.get(epoch.number, ()):
            if self._registry.exit[validator] == FAR_FUTURE:
                epoch.exits.append((int(self._rng.choice(blocks)), validator))
                self._leave(validator, epoch.number)
        epoch.exits.sort()

    def _change_credentials(self, epoch: Epoch, blocks: Ints) -> None:
        """Turn BLS credentials into an address; the sweep sees it from the next epoch on."""
        for validator in self._plan.bls_changes.get(epoch.number, ()):
            epoch.bls_changes.append((int(self._rng.choice(blocks)), validator))
            self._registry.prefix[validator] = 1
        epoch.bls_changes.sort()

    def _leave(self, validator: int, epoch: int) -> None:
        leaves = epoch + 1 + self._preset.max_seed_lookahead
        delay = self._preset.min_validator_withdrawability_delay
        self._registry.exit[validator] = leaves
        self._registry.withdrawable[validator] = leaves + delay

    def _take_deposits(self, epoch: Epoch, blocks: Ints) -> None:
        """Include what has arrived, in its order; nobody tops up who is leaving."""
        staying = [
            (validator, gwei)
            for validator, gwei in self._waiting
            if self._registry.exit[validator] == FAR_FUTURE
        ]
        slots = np.sort(self._rng.choice(blocks, len(staying))).tolist()
        epoch.deposits = [(slot, *deposit) for slot, deposit in zip(slots, staying, strict=True)]
        self._waiting = []
