"""Epoch processing: the rewards and penalties of each validator in an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from beaconframes.consensus import rewards
from beaconframes.simulator.duties import MISSED as MISSED_SLOT
from beaconframes.simulator.duties import NO_PROPOSER, VOTE_VARIANTS
from beaconframes.simulator.income import MISSED

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Ints
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Preset
    from beaconframes.simulator.registry import Registry


_NONE: Final = np.empty(0, np.int64)


class PendingAttestations(NamedTuple):
    """Attestations that blocks of the next epoch include."""

    validators: Ints = _NONE
    weights: Ints = _NONE
    codes: Ints = _NONE


def process_rewards_and_penalties(
    preset: Preset,
    registry: Registry,
    epoch: Epoch,
    pending: PendingAttestations,
    slashed_balance: int,
) -> PendingAttestations:
    """Add the income of an epoch; *slashed_balance* is the recently slashed effective balance.

    Returns the attestations that are not included yet.
    """
    increments = epoch.effective // preset.effective_balance_increment
    per_increment = rewards.compute_base_reward_per_increment(preset, epoch.active_balance)
    base = increments * per_increment
    _process_participation_flags(preset, registry, epoch, base, increments)
    pending = _process_inclusion(epoch, pending, base)
    _process_sync_aggregates(preset, epoch, per_increment)
    _process_slashings(preset, registry, epoch, slashed_balance)
    _process_blocks(epoch)
    return pending


def _process_participation_flags(
    preset: Preset, registry: Registry, epoch: Epoch, base: Ints, increments: Ints
) -> None:
    income, attestations, validator_count = epoch.income, epoch.attestations, len(epoch.balance)
    slashed = registry.slashed[:validator_count]
    # Eligible: active validators, and slashed validators until they are withdrawable.
    income.is_eligible |= epoch.active
    income.is_eligible |= slashed & (epoch.number + 1 < registry.withdrawable[:validator_count])
    active_increments = epoch.active_balance // preset.effective_balance_increment
    for flag, has_flag, weight in (
        ("source", attestations.timely_source, rewards.TIMELY_SOURCE_WEIGHT),
        ("target", attestations.timely_target, rewards.TIMELY_TARGET_WEIGHT),
        ("head", attestations.timely_head, rewards.TIMELY_HEAD_WEIGHT),
    ):
        timely = np.zeros(validator_count, np.bool_)
        timely[attestations.validators] = has_flag
        timely &= ~slashed
        reward = rewards.compute_flag_reward(
            weight, base, int(increments[timely].sum()), active_increments
        )
        income[f"attestation_{flag}_reward_gwei"][:] = np.where(timely, reward, 0)
        not_timely = np.zeros(validator_count, np.bool_)
        not_timely[attestations.validators] = ~has_flag
        income.missed[MISSED.index(f"attestation_{flag}_missed_gwei")] = np.where(
            not_timely & ~slashed, reward, 0
        )
        if flag != "head":
            income[f"attestation_{flag}_penalty_gwei"][:] = rewards.compute_flag_penalties(
                weight, base, income.is_eligible & ~timely
            )
        if flag == "target":
            epoch.target_balance = int(epoch.effective[timely].sum())


def _process_inclusion(
    epoch: Epoch, pending: PendingAttestations, base: Ints
) -> PendingAttestations:
    """Reward proposers for each included aggregate: the equal votes of one slot in one block."""
    attestations, size = epoch.attestations, len(epoch.included_attestations)
    weights = (
        attestations.timely_source * rewards.TIMELY_SOURCE_WEIGHT
        + attestations.timely_target * rewards.TIMELY_TARGET_WEIGHT
        + attestations.timely_head * rewards.TIMELY_HEAD_WEIGHT
    )
    inclusion = attestations.inclusion_slots
    codes = (inclusion * size + attestations.slots) * VOTE_VARIANTS + attestations.variants
    columns = (attestations.validators, weights, codes)
    in_this_epoch = (inclusion >= 0) & (inclusion < size)
    included = [column[in_this_epoch] for column in columns]
    rewarded = epoch.slots.rewarded
    kinds = size * VOTE_VARIANTS
    for validators, weight, code in (pending, included):
        # All values are integers far below 2**53, so the float sums are exact.
        sums = np.bincount(code, base[validators] * weight, size * kinds).astype(np.int64)
        shares = rewards.compute_inclusion_rewards(sums).reshape(size, kinds).sum(axis=1)
        is_included = np.bincount(code, minlength=size * kinds).reshape(size, kinds) > 0
        epoch.included_attestations += is_included.sum(axis=1)
        np.add.at(
            epoch.income["proposer_attestation_inclusion_reward_gwei"],
            epoch.slots.proposers[rewarded],
            shares[rewarded],
        )
        if rewarded[0]:
            epoch.first_block[epoch.slots.proposers[0]] += shares[0]
    validators, weights, codes = (column[inclusion >= size] for column in columns)
    return PendingAttestations(validators, weights, codes - size * kinds)


def _process_sync_aggregates(preset: Preset, epoch: Epoch, per_increment: int) -> None:
    rewarded = epoch.slots.rewarded
    seat, proposer = rewards.compute_sync_rewards(
        per_increment,
        epoch.active_balance // preset.effective_balance_increment,
        slots=len(rewarded),
        seats=len(epoch.committee),
    )
    bits = epoch.sync_bits[rewarded]
    signed = bits.sum(axis=0)
    for kind, count in (("reward", signed), ("penalty", len(bits) - signed)):
        per_validator = np.bincount(epoch.committee, count, len(epoch.balance))
        epoch.income[f"sync_committee_{kind}_gwei"][:] = per_validator.astype(np.int64) * seat
    np.add.at(
        epoch.income["proposer_sync_inclusion_reward_gwei"],
        epoch.slots.proposers[rewarded],
        bits.sum(axis=1) * proposer,
    )
    if rewarded[0]:
        np.add.at(epoch.first_block, epoch.committee, np.where(bits[0], seat, -seat))
        epoch.first_block[epoch.slots.proposers[0]] += bits[0].sum() * proposer


def _process_slashings(
    preset: Preset, registry: Registry, epoch: Epoch, slashed_balance: int
) -> None:
    validator_count = len(epoch.balance)
    withdrawable = epoch.number + preset.epochs_per_slashings_vector // 2
    half_way = registry.slashed[:validator_count] & (
        registry.withdrawable[:validator_count] == withdrawable
    )
    for validator in np.flatnonzero(half_way).tolist():
        epoch.income["slashing_penalty_gwei"][validator] += rewards.compute_correlation_penalty(
            preset,
            int(epoch.effective[validator]),
            slashed_balance,
            epoch.active_balance,
            preset.proportional_slashing_multiplier,
        )


def _process_blocks(epoch: Epoch) -> None:
    slots, income = epoch.slots, epoch.income
    np.add.at(income.fees, slots.proposers[slots.rewarded], epoch.fees[slots.rewarded])
    missed = (slots.statuses >= MISSED_SLOT) & (slots.proposers != NO_PROPOSER)
    np.add.at(income.missed_proposals, slots.proposers[missed], 1)
