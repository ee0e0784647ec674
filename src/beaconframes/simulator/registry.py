"""The validators: who they are at first, and what is in store for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from beaconframes.simulator.preset import ETH, FAR_FUTURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.simulator.preset import Bools, Floats, Ints


@dataclass
class Registry:
    """The state of all validators; entries from ``known`` on have not deposited yet."""

    known: int
    prefix: Ints  # of the withdrawal credentials: 0 BLS, 1 address, 2 compounding
    ceiling: Ints  # of the effective balance
    balance: Ints
    effective: Ints
    eligibility: Ints
    activation: Ints
    exit: Ints
    withdrawable: Ints
    slashed: Bools
    online: Bools
    last_attestation: Ints
    withdrawn: Ints
    flake: Floats  # chance to go offline, per epoch
    mend: Floats  # chance to come back
    queue: list[int] = field(default_factory=list)  # eligible, waiting for activation

    def active(self, epoch: int) -> Bools:
        """Return who of the known is active in an epoch."""
        known = self.known
        return (self.activation[:known] <= epoch) & (epoch < self.exit[:known])


@dataclass
class Plan:
    """What will happen when; the rest is chance. All lists are by epoch."""

    steady: int  # validators below this index never exit, so that a first look meets no gaps
    arrivals: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # validator, gwei
    top_ups: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    exits: dict[int, list[int]] = field(default_factory=dict)
    slashings: dict[int, Literal["attester", "proposer"]] = field(default_factory=dict)
    bls_changes: dict[int, list[int]] = field(default_factory=dict)
    exit_request: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    offline_from: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    outage: range = range(0)
    hit_by_outage: Bools = field(default_factory=lambda: np.empty(0, np.bool_))


def populate(
    seed: int, validators: int, first: int, last: int, epochs_per_day: int
) -> tuple[Registry, Plan]:
    """Return the validators as they stand at the first epoch, and the plan for their lives."""
    rng = np.random.default_rng([seed, 1])
    newcomers = max(4, validators * 15 // 1000)
    known = validators - newcomers
    registry = _first_validators(rng, validators, known, first)
    plan = Plan(steady=validators // 8)
    plan.exit_request = np.full(validators, FAR_FUTURE, np.int64)
    plan.offline_from = np.full(validators, FAR_FUTURE, np.int64)

    # Everybody with a fate is drawn once, so that no two fates meet in one validator.
    drawn = plan.steady + rng.permutation(known - plan.steady)
    plain = [int(i) for i in drawn if registry.prefix[i] == 1]
    count = max(4, validators * 12 // 1000)
    leaving, dim = plain[:count], plain[count : count + max(2, validators * 6 // 1000)]
    _plan_exits(rng, plan, leaving, first, last)
    plan.offline_from[dim] = first + rng.integers(2, max(3, last - first), len(dim))
    _plan_slashings(rng, plan, max(3, validators * 3 // 1000), first, last)
    _plan_newcomers(rng, plan, range(known, validators), first, last)
    _plan_top_ups(rng, plan, registry, plain[count + len(dim) :], first, last)

    begins = first + (last - first) * 3 // 5
    plan.outage = range(begins, begins + min(14, (last - first) // 8))
    plan.hit_by_outage = rng.random(validators) < 0.09
    _plan_bls_changes(plan, np.flatnonzero(registry.prefix[:known] == 0).tolist(), first, last)
    if first:
        _give_a_past(rng, registry, plain[::-1], first, 90 * epochs_per_day)
    return registry, plan


def _first_validators(
    rng: np.random.Generator, validators: int, known: int, first: int
) -> Registry:
    kinds = rng.random(validators)
    prefix = np.where(kinds < 0.03, 0, np.where(kinds < 0.05, 2, 1)).astype(np.int64)
    prefix[known - 1] = 2  # there is one of every kind, however few there are
    prefix[known - 3 : known - 1] = 0  # and of the kind that changes, two
    ceiling = np.where(prefix == 2, 2048, 32) * ETH
    balance = np.full(validators, 32 * ETH)
    big = prefix == 2
    balance[big] += np.minimum(rng.geometric(1 / 250, int(big.sum())), 2000) * ETH
    balance[big] += rng.integers(0, ETH, int(big.sum()))
    if first:  # a running chain has rewards that wait for the sweep, or have nowhere to go
        balance[~big] += rng.integers(0, 60_000, int((~big).sum()))
        balance[prefix == 0] += rng.integers(0, ETH, int((prefix == 0).sum()))
    balance[known:] = 0
    entered = np.zeros(validators, np.int64)
    if first:
        entered = np.sort(rng.integers(0, max(1, first - 300), validators))
        entered[: validators // 5] = 0
    entered[known:] = FAR_FUTURE
    shaky = rng.random(validators) < 0.05
    flake = np.where(shaky, 0.012, rng.uniform(0.0002, 0.0018, validators))
    flake[big] = 0.0002
    return Registry(
        known=known,
        prefix=prefix,
        ceiling=ceiling,
        balance=balance,
        effective=np.minimum(balance - balance % ETH, ceiling),
        eligibility=np.where(
            entered < 10, 0, np.where(entered == FAR_FUTURE, entered, entered - 9)
        ),
        activation=np.where(entered < 10, 0, entered),
        exit=np.full(validators, FAR_FUTURE),
        withdrawable=np.full(validators, FAR_FUTURE),
        slashed=np.zeros(validators, np.bool_),
        online=rng.random(validators) > 0.006,
        last_attestation=np.zeros(validators, np.int64),
        withdrawn=np.zeros(validators, np.int64),
        flake=flake,
        mend=rng.uniform(0.08, 0.5, validators),
    )


def _plan_exits(
    rng: np.random.Generator, plan: Plan, leaving: Sequence[int], first: int, last: int
) -> None:
    """Spread voluntary exits: one early enough to see its end, the last two still under way."""
    when = first + rng.integers(3, max(4, last - first - 6), len(leaving))
    when[0] = first + min(3, last - first - 2)
    when[-2:] = last - 2
    plan.offline_from[leaving[-1]] = last - 3
    for validator, epoch in zip(leaving, when.tolist(), strict=True):
        plan.exits.setdefault(epoch, []).append(validator)
        plan.exit_request[validator] = epoch


def _plan_slashings(
    rng: np.random.Generator, plan: Plan, count: int, first: int, last: int
) -> None:
    """Spread slashings, at most one an epoch; the last two are too fresh to have left."""
    when = first + rng.integers(3, max(4, last - first - 6), count)
    when[0] = first + min(5, last - first - 2)
    when[-2:] = last - 4, last - 1
    for turn, epoch in enumerate(sorted(int(e) for e in when if e > first)):
        plan.slashings[epoch] = "attester" if turn % 2 else "proposer"


def _plan_newcomers(
    rng: np.random.Generator, plan: Plan, newcomers: range, first: int, last: int
) -> None:
    """Let new validators deposit, in the order of their indices; the last are still waiting."""
    when = np.sort(first + rng.integers(2, max(3, (last - first) * 9 // 10), len(newcomers)))
    when[0] = first + min(2, last - first - 3)
    when[-2:] = last - 5 if last - first > 6 else first + 1, last - 3
    when = np.maximum.accumulate(np.clip(when, first + 1, last - 3))
    for validator, epoch in zip(newcomers, when.tolist(), strict=True):
        amount = 32 * ETH
        if validator == newcomers[1]:  # tries with a little first
            amount = ETH
            later = min(epoch + 20, last - 3)
            plan.top_ups.setdefault(later, []).append((validator, 31 * ETH))
        elif validator == newcomers[-2]:  # only ever deposits a little
            amount = ETH
        plan.arrivals.setdefault(epoch, []).append((validator, amount))


def _plan_top_ups(
    rng: np.random.Generator,
    plan: Plan,
    registry: Registry,
    others: Sequence[int],
    first: int,
    last: int,
) -> None:
    big = np.flatnonzero(registry.prefix[: registry.known] == 2)
    count = max(6, registry.known * (last - first) // 100_000)
    for turn in range(count):
        epoch = int(first + rng.integers(2, max(3, last - first - 2)))
        validator, eth = int(rng.choice(big)), int(rng.integers(1, 64))
        amount = eth * ETH + int(rng.integers(0, 2)) * int(rng.integers(0, ETH))
        if turn == 0:  # so that the balance ends up where the effective one does not follow yet
            epoch, validator = first + 1, int(big[0])
            amount = ETH * 9 // 8 - int(registry.balance[validator] % ETH)
        elif turn % 3 == 2 and others:
            validator, amount = int(rng.choice(others)), int(rng.integers(ETH // 10, ETH))
        plan.top_ups.setdefault(epoch, []).append((validator, amount))


def _plan_bls_changes(plan: Plan, candidates: Sequence[int], first: int, last: int) -> None:
    """Let two in five of the BLS credentials become addresses, one after the other."""
    changing = candidates[: max(1, len(candidates) * 2 // 5)]
    for turn, validator in enumerate(changing):
        epoch = first + 1 + (last - first - 3) * turn // len(changing)
        plan.bls_changes.setdefault(epoch, []).append(validator)


def _give_a_past(
    rng: np.random.Generator,
    registry: Registry,
    candidates: Sequence[int],
    first: int,
    season: int,
) -> None:
    """Let some have left before the first epoch, within a *season*; the others were paid so far."""
    served = np.maximum(first - registry.activation, 0) * (registry.prefix == 1)
    served[registry.known :] = 0
    registry.withdrawn[:] = served * rng.integers(10_900, 11_300, len(served))
    gone = list(candidates[: max(2, registry.known // 80)])
    # Long enough ago to be withdrawable, and after an activation that leaves time for a life.
    left = np.maximum(first - rng.integers(300, max(301, min(first, season)), len(gone)), 20)
    registry.activation[gone] = np.minimum(registry.activation[gone], left - 10)
    registry.eligibility[gone] = np.minimum(registry.eligibility[gone], registry.activation[gone])
    registry.exit[gone] = left
    registry.withdrawable[gone] = left + 256
    registry.slashed[gone[: max(1, len(gone) // 8)]] = True
    registry.withdrawn[gone] = 32 * ETH + rng.integers(0, ETH, len(gone))
    registry.balance[gone] = registry.effective[gone] = 0
    registry.online[gone] = False
