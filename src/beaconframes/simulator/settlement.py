"""Who earns what in an epoch: the formulas of ``rewards``, applied to what happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from beaconframes.simulator import rewards
from beaconframes.simulator.duties import MISSED, NOBODY, VARIANTS

if TYPE_CHECKING:
    from beaconframes.simulator.duties import Votes
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Ints, Preset
    from beaconframes.simulator.registry import Registry


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass
class Pending:
    """Votes that only the next epoch's blocks include."""

    voters: Ints = field(default_factory=_none)
    weights: Ints = field(default_factory=_none)
    codes: Ints = field(default_factory=_none)


def settle(
    preset: Preset, registry: Registry, epoch: Epoch, votes: Votes, pending: Pending, around: int
) -> Pending:
    """Fill in the epoch's income; *around* is what was slashed lately.

    Returns the votes that are still to be included.
    """
    increments = epoch.effective // preset.effective_balance_increment
    per_increment = rewards.base_reward_per_increment(preset, epoch.total)
    base = increments * per_increment
    _for_votes(preset, registry, epoch, votes, base, increments)
    pending = _for_including(preset, epoch, votes, pending, base)
    _for_signatures(preset, epoch, per_increment)
    _for_having_been_slashed(preset, registry, epoch, around)
    _for_blocks(epoch)
    return pending


def _for_votes(
    preset: Preset, registry: Registry, epoch: Epoch, votes: Votes, base: Ints, increments: Ints
) -> None:
    income, known = epoch.income, len(epoch.balance)
    slashed = registry.slashed[:known]
    # The specification's "eligible": the active, and the slashed until they may withdraw.
    income.entitled |= epoch.active
    income.entitled |= slashed & (epoch.number + 1 < registry.withdrawable[:known])
    active_increments = epoch.total // preset.effective_balance_increment
    for flag, voted, weight in (
        ("source", votes.source, preset.timely_source_weight),
        ("target", votes.target, preset.timely_target_weight),
        ("head", votes.head, preset.timely_head_weight),
    ):
        timely = np.zeros(known, np.bool_)
        timely[votes.voters] = voted
        timely &= ~slashed
        income[f"attestation_{flag}_reward_gwei"][:] = rewards.flag_rewards(
            preset, weight, base, increments, timely, active_increments
        )
        if flag != "head":
            income[f"attestation_{flag}_penalty_gwei"][:] = rewards.flag_penalties(
                preset, weight, base, income.entitled & ~timely
            )
        if flag == "target":
            epoch.voted = int(epoch.effective[timely].sum())


def _for_including(
    preset: Preset, epoch: Epoch, votes: Votes, pending: Pending, base: Ints
) -> Pending:
    """Pay the proposers for each attestation: the equal votes of one slot in one block."""
    size = len(epoch.attestations)
    weights = (
        votes.source * preset.timely_source_weight
        + votes.target * preset.timely_target_weight
        + votes.head * preset.timely_head_weight
    )
    codes = (votes.inclusion * size + votes.duty) * VARIANTS + votes.variant
    now = (votes.inclusion >= 0) & (votes.inclusion < size)
    later = votes.inclusion >= size
    earning = epoch.slots.earning
    kinds = size * VARIANTS
    for voters, weight, code in (
        (pending.voters, pending.weights, pending.codes),
        (votes.voters[now], weights[now], codes[now]),
    ):
        # Every value is an integer far below 2**53, so the float sums are exact.
        sums = np.bincount(code, base[voters] * weight, size * kinds).astype(np.int64)
        shares = rewards.inclusion_rewards(preset, sums).reshape(size, kinds).sum(axis=1)
        present = np.bincount(code, minlength=size * kinds).reshape(size, kinds) > 0
        epoch.attestations += present.sum(axis=1)
        np.add.at(
            epoch.income["proposer_attestation_inclusion_reward_gwei"],
            epoch.slots.proposers[earning],
            shares[earning],
        )
    return Pending(votes.voters[later], weights[later], codes[later] - size * kinds)


def _for_signatures(preset: Preset, epoch: Epoch, per_increment: int) -> None:
    earning = epoch.slots.earning
    seat, proposer = rewards.sync_rewards(
        preset,
        per_increment,
        epoch.total // preset.effective_balance_increment,
        slots=len(earning),
        seats=len(epoch.committee),
    )
    signed = epoch.signed[earning]
    got = signed.sum(axis=0)
    for kind, count in (("reward", got), ("penalty", len(signed) - got)):
        per_validator = np.bincount(epoch.committee, count, len(epoch.balance))
        epoch.income[f"sync_committee_{kind}_gwei"][:] = per_validator.astype(np.int64) * seat
    np.add.at(
        epoch.income["proposer_sync_inclusion_reward_gwei"],
        epoch.slots.proposers[earning],
        signed.sum(axis=1) * proposer,
    )


def _for_having_been_slashed(preset: Preset, registry: Registry, epoch: Epoch, around: int) -> None:
    known = len(epoch.balance)
    due = epoch.number + preset.epochs_per_slashings_vector // 2
    half_way = registry.slashed[:known] & (registry.withdrawable[:known] == due)
    for validator in np.flatnonzero(half_way).tolist():
        epoch.income["slashing_penalty_gwei"][validator] += rewards.correlation_penalty(
            preset, int(epoch.effective[validator]), around, epoch.total
        )


def _for_blocks(epoch: Epoch) -> None:
    slots, income = epoch.slots, epoch.income
    np.add.at(income.fees, slots.proposers[slots.earning], epoch.fees[slots.earning])
    lost = (slots.fates >= MISSED) & (slots.proposers != NOBODY)
    np.add.at(income.missed, slots.proposers[lost], 1)
