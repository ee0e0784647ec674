"""The duties of an epoch: who proposes, who signs, who votes, and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from beaconframes.simulator.preset import Bools, Ints
    from beaconframes.simulator.registry import Plan, Registry

NOBODY = -1  # proposer of the genesis block
VARIANTS = 3  # of a vote: right, wrong head, wrong target

# What came of a slot; the numbers are the codes of the API. Orphaned: its only block did not become
# canonical.
FATES = ("scheduled", "proposed", "missed", "orphaned")
SCHEDULED, PROPOSED, MISSED, ORPHANED = range(len(FATES))


@dataclass
class Slots:
    """The slots of an epoch, known one epoch ahead: proposers, fates, and who will be there."""

    proposers: Ints
    fates: Ints
    late: Bools  # blocks that came too late for most votes of their slot
    online: Bools  # per validator

    @cached_property
    def canonical(self) -> Bools:
        """Return which slots have a canonical block."""
        canonical: Bools = self.fates == PROPOSED
        return canonical

    @cached_property
    def earning(self) -> Bools:
        """Return which slots have a canonical block that somebody proposed."""
        earning: Bools = self.canonical & (self.proposers != NOBODY)
        return earning


@dataclass
class Votes:
    """The attestations of an epoch; one entry per active validator."""

    voters: Ints
    duty: Ints  # slot in the epoch
    inclusion: Ints  # slot in the epoch, or in the next one when beyond its end; -1 never
    source: Bools
    target: Bools
    head: Bools
    variant: Ints


def go_on_and_offline(
    rng: np.random.Generator, registry: Registry, plan: Plan, epoch: int
) -> Bools:
    """Return who is online in an epoch, given who was in the one before."""
    chance = rng.random(len(registry.online))
    online = np.where(registry.online, chance >= registry.flake, chance < registry.mend)
    # Nobody is switched off by chance together: outages are planned, and stay below a third.
    online &= epoch < plan.offline_from
    if epoch in plan.outage:
        online &= ~plan.hit_by_outage
    return online & ~registry.slashed


def draw_slots(rng: np.random.Generator, registry: Registry, epoch: int, slots: int) -> Slots:
    """Draw the proposers of an epoch by effective balance, and what will come of their slots."""
    online = registry.online
    candidates = np.flatnonzero(registry.active(epoch))
    proposers = draw_by_balance(rng, registry.effective, candidates, slots)
    chance = rng.random(slots)
    fates = np.where(
        (chance < 0.004) | ~online[proposers],
        MISSED,
        np.where(chance < 0.0065, ORPHANED, PROPOSED),
    ).astype(np.int64)
    return Slots(proposers, fates, rng.random(slots) < 0.02, online)


def draw_by_balance(
    rng: np.random.Generator, effective: Ints, candidates: Ints, count: int
) -> Ints:
    """Draw validators with chances proportional to effective balance; some more than once."""
    upper = np.cumsum(effective[candidates] // 10**9)
    return candidates[np.searchsorted(upper, rng.integers(0, upper[-1], count), side="right")]


def sign(rng: np.random.Generator, committee: Ints, online: Bools, slots: int) -> Bools:
    """Return who of the sync committee signs in which slot: slots x seats."""
    heard = np.frombuffer(rng.bytes(slots * len(committee)), np.uint8) != 0
    signed: Bools = heard.reshape(slots, len(committee)) & online[committee]
    return signed


def vote(rng: np.random.Generator, voters: Ints, here: Slots, ahead: Slots) -> Votes:
    """Let every active validator attest once, and find the block that includes it.

    An attestation can be included from the slot after its own to the end of the next epoch.
    """
    slots = len(here.fates)
    count = len(voters)
    never = 2 * slots
    present = np.concatenate([here.canonical, ahead.canonical])
    # following[p] is the first slot from p on that has a canonical block.
    following = np.full(never + 2, never)
    following[:never] = np.where(present, np.arange(never), never)
    following = np.minimum.accumulate(following[::-1])[::-1]

    duty = rng.permutation(count) % slots
    inclusion = following[duty + 1]
    straggles = rng.random(count) < 0.004
    inclusion = np.where(straggles, following[np.minimum(inclusion + 1, never)], inclusion)
    inclusion = np.where(here.online[voters] & (inclusion < never), inclusion, -1)
    included = inclusion >= 0
    delay = inclusion - duty

    sees_target = np.full(slots, 0.9985)
    if here.late[0] or not here.canonical[0]:
        sees_target[0] = 0.85
    sees_head = np.where(here.late | ~here.canonical, 0.6, 0.988)
    right_target = rng.random(count) < sees_target[duty]
    right_head = right_target & (rng.random(count) < sees_head[duty])
    return Votes(
        voters=voters,
        duty=duty,
        inclusion=inclusion,
        source=included & (delay <= math.isqrt(slots)),
        target=included & right_target,
        head=included & right_head & (delay == 1),
        variant=np.where(right_head, 0, np.where(right_target, 1, 2)),
    )
