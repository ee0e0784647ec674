"""The duties of an epoch: proposals, sync committee signatures and attestations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.simulator.registry import EventPlan, Registry

NO_PROPOSER = -1  # of the genesis block
VOTE_VARIANTS = 3  # correct, wrong head, wrong target

# The positions are the codes of the API. Orphaned: the only block of the slot is not canonical.
SLOT_STATUSES = ("scheduled", "proposed", "missed", "orphaned")
SCHEDULED, PROPOSED, MISSED, ORPHANED = range(len(SLOT_STATUSES))


@dataclass
class Slots:
    """The slots of an epoch, drawn one epoch ahead: proposers, statuses, online validators."""

    proposers: Ints
    statuses: Ints
    online: Bools  # per validator

    @cached_property
    def canonical(self) -> Bools:
        """Return which slots have a canonical block."""
        canonical: Bools = self.statuses == PROPOSED
        return canonical

    @cached_property
    def rewarded(self) -> Bools:
        """Return which slots have a canonical block with a proposer: not the genesis block."""
        rewarded: Bools = self.canonical & (self.proposers != NO_PROPOSER)
        return rewarded


@dataclass
class Attestations:
    """Attestations of an epoch and their participation flags, one entry per active validator."""

    validators: Ints
    slots: Ints  # in the epoch
    # Counted from the start of this epoch, up to the end of the next; -1: never.
    inclusion_slots: Ints
    timely_source: Bools
    timely_target: Bools
    timely_head: Bools
    variants: Ints


def draw_online(rng: np.random.Generator, registry: Registry, plan: EventPlan, epoch: int) -> Bools:
    """Draw which validators are online in an epoch, given those in the previous epoch."""
    chance = rng.random(len(registry.online))
    online = np.where(
        registry.online, chance >= registry.offline_chance, chance < registry.recovery_chance
    )
    # Validators go offline independently, except in the planned outage of less than a third.
    online &= epoch < plan.offline_from
    if epoch in plan.outage:
        online &= ~plan.in_outage
    return online & ~registry.slashed


def draw_slots(rng: np.random.Generator, registry: Registry, epoch: int, slots: int) -> Slots:
    """Draw the proposers of an epoch by effective balance, and the statuses of their slots."""
    online = registry.online
    candidates = np.flatnonzero(registry.active(epoch))
    proposers = draw_by_balance(rng, registry.effective, candidates, slots)
    chance = rng.random(slots)
    statuses = np.where(
        (chance < 0.004) | ~online[proposers],
        MISSED,
        np.where(chance < 0.0065, ORPHANED, PROPOSED),
    ).astype(np.int64)
    return Slots(proposers, statuses, online)


def draw_by_balance(
    rng: np.random.Generator, effective: Ints, candidates: Ints, count: int
) -> Ints:
    """Draw validators with probability proportional to effective balance, with replacement."""
    upper = np.cumsum(effective[candidates] // 10**9)
    return candidates[np.searchsorted(upper, rng.integers(0, upper[-1], count), side="right")]


def draw_sync_bits(rng: np.random.Generator, committee: Ints, online: Bools, slots: int) -> Bools:
    """Draw which seats of the sync committee sign in which slots: slots x seats."""
    available = np.frombuffer(rng.bytes(slots * len(committee)), np.uint8) != 0
    bits: Bools = available.reshape(slots, len(committee)) & online[committee]
    return bits


def draw_attestations(
    seed: int, epoch: int, validators: Ints, online: Bools, has_block: Bools
) -> Attestations:
    """Draw one attestation per validator, and find the block that includes it.

    *online* says which of the *validators* attest, and *has_block* which slots of the *epoch* and
    the next have a canonical block: the last slots in which an attestation can be included. The
    same arguments give the same attestations, so those of old epochs need not be stored.
    """
    rng = np.random.default_rng([seed, 2, 1, epoch])
    slot_count, count = len(has_block) // 2, len(validators)
    never = len(has_block)
    # next_block[p] is the first slot from p on that has a canonical block.
    next_block = np.full(never + 2, never)
    next_block[:never] = np.where(has_block, np.arange(never), never)
    next_block = np.minimum.accumulate(next_block[::-1])[::-1]

    slots = rng.permutation(count) % slot_count
    inclusion = next_block[slots + 1]
    is_late = rng.random(count) < 0.004
    inclusion = np.where(is_late, next_block[np.minimum(inclusion + 1, never)], inclusion)
    inclusion = np.where(online & (inclusion < never), inclusion, -1)
    included = inclusion >= 0
    delay = inclusion - slots

    # Most attesters of the slot receive a late block too late, or there is none.
    unseen = (rng.random(slot_count) < 0.02) | ~has_block[:slot_count]
    sees_target = np.full(slot_count, 0.9985)
    if unseen[0]:
        sees_target[0] = 0.85
    sees_head = np.where(unseen, 0.6, 0.988)
    correct_target = rng.random(count) < sees_target[slots]
    correct_head = correct_target & (rng.random(count) < sees_head[slots])
    return Attestations(
        validators=validators,
        slots=slots,
        inclusion_slots=inclusion,
        timely_source=included & (delay <= math.isqrt(slot_count)),
        timely_target=included & correct_target,
        timely_head=included & correct_head & (delay == 1),
        variants=np.where(correct_head, 0, np.where(correct_target, 1, 2)),
    )
