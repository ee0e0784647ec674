"""The validator registry at the first epoch, and the plan of its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.simulator import identities
from beaconframes.simulator.preset import ETH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.consensus.registry import Bools, Floats, Ints

    Payment = tuple[int, int]  # validator, gwei


@dataclass(frozen=True)
class WithdrawalRequest:
    """A request of an operator, which the chain pays from an epoch on."""

    slot: int
    validator: int
    amount: int  # gwei
    payable_from: int  # epoch


@dataclass
class Registry:
    """The state of all validators; only the first ``validator_count`` have deposited so far."""

    validator_count: int
    prefix: Ints  # of the withdrawal credentials: 0 BLS, 1 address, 2 compounding
    max_effective: Ints  # maximum effective balance
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
    offline_chance: Floats  # probability of going offline, per epoch
    recovery_chance: Floats  # probability of coming back online
    activation_queue: list[int] = field(default_factory=list)
    withdrawal_requests: list[WithdrawalRequest] = field(default_factory=list)

    def active(self, epoch: int) -> Bools:
        """Return which of the deposited validators are active in an epoch."""
        validator_count = self.validator_count
        return (self.activation[:validator_count] <= epoch) & (epoch < self.exit[:validator_count])


@dataclass
class EventPlan:
    """The planned events, by epoch; all other events are drawn at random."""

    first_exitable: int  # validators below this index never exit
    first_deposits: dict[int, list[Payment]] = field(default_factory=dict)
    top_ups: dict[int, list[Payment]] = field(default_factory=dict)
    exits: dict[int, list[int]] = field(default_factory=dict)
    slashings: dict[int, Literal["attester", "proposer"]] = field(default_factory=dict)
    bls_changes: dict[int, list[int]] = field(default_factory=dict)
    switches: dict[int, list[int]] = field(default_factory=dict)  # to compounding credentials
    withdrawal_requests: dict[int, list[Payment]] = field(default_factory=dict)
    exit_request_epoch: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    offline_from: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    outage: range = range(0)
    in_outage: Bools = field(default_factory=lambda: np.empty(0, np.bool_))


def create_registry(
    seed: int, validators: int, first: int, last: int, epochs_per_day: int
) -> tuple[Registry, EventPlan]:
    """Return the validators at the first epoch, and the plan of their events."""
    rng = np.random.default_rng([seed, 1])
    new_validators = max(4, validators * 15 // 1000)
    validator_count = validators - new_validators
    registry = _create_validators(rng, validators, validator_count, first)
    plan = EventPlan(first_exitable=validators // 8)
    plan.exit_request_epoch = np.full(validators, FAR_FUTURE_EPOCH, np.int64)
    plan.offline_from = np.full(validators, FAR_FUTURE_EPOCH, np.int64)

    # Drawn without replacement, so that each validator has at most one planned event.
    drawn = plan.first_exitable + rng.permutation(validator_count - plan.first_exitable)
    candidates = [int(i) for i in drawn if registry.prefix[i] == 1]
    count = max(4, validators * 12 // 1000)
    exiting = candidates[:count]
    going_offline = candidates[count : count + max(2, validators * 6 // 1000)]
    others = candidates[count + len(going_offline) :]
    _plan_exits(rng, plan, exiting, first, last)
    plan.offline_from[going_offline] = first + rng.integers(
        2, max(3, last - first), len(going_offline)
    )
    _plan_slashings(rng, plan, max(3, validators * 3 // 1000), first, last)
    _plan_new_validators(rng, plan, range(validator_count, validators), first, last)
    _plan_top_ups(rng, plan, registry, others, first, last)

    outage_start = first + (last - first) * 3 // 5
    plan.outage = range(outage_start, outage_start + min(14, (last - first) // 8))
    plan.in_outage = rng.random(validators) < 0.09
    with_bls = np.flatnonzero(registry.prefix[:validator_count] == 0).tolist()
    _plan_bls_changes(plan, with_bls, first, last)
    _plan_switches(rng, plan, others, validators, first, last)
    _plan_withdrawal_requests(rng, plan, registry, others, first, last)
    if first:
        _add_past_exits(rng, registry, candidates[::-1], first, 90 * epochs_per_day)
    return registry, plan


def _create_validators(
    rng: np.random.Generator, validators: int, validator_count: int, first: int
) -> Registry:
    kinds = rng.random(validators)
    prefix = np.where(kinds < 0.03, 0, np.where(kinds < 0.05, 2, 1)).astype(np.int64)
    prefix[validator_count - 1] = 2  # each kind of credentials occurs, in small chains as well
    # Two with BLS credentials: some of them change.
    prefix[validator_count - 3 : validator_count - 1] = 0
    max_effective = np.where(prefix == 2, 2048, 32) * ETH
    balance = np.full(validators, 32 * ETH)
    compounding = prefix == 2
    balance[compounding] += np.minimum(rng.geometric(1 / 250, int(compounding.sum())), 2000) * ETH
    balance[compounding] += rng.integers(0, ETH, int(compounding.sum()))
    if first:  # validators of a running chain have rewards that were not withdrawn
        balance[~compounding] += rng.integers(0, 60_000, int((~compounding).sum()))
        balance[prefix == 0] += rng.integers(0, ETH, int((prefix == 0).sum()))
    balance[validator_count:] = 0
    activation = np.zeros(validators, np.int64)
    if first:
        activation = np.sort(rng.integers(0, max(1, first - 300), validators))
        activation[: validators // 5] = 0
    activation[validator_count:] = FAR_FUTURE_EPOCH
    unreliable = rng.random(validators) < 0.05
    offline_chance = np.where(unreliable, 0.012, rng.uniform(0.0002, 0.0018, validators))
    offline_chance[compounding] = 0.0002
    return Registry(
        validator_count=validator_count,
        prefix=prefix,
        max_effective=max_effective,
        balance=balance,
        effective=np.minimum(balance - balance % ETH, max_effective),
        eligibility=np.where(
            activation < 10, 0, np.where(activation == FAR_FUTURE_EPOCH, activation, activation - 9)
        ),
        activation=np.where(activation < 10, 0, activation),
        exit=np.full(validators, FAR_FUTURE_EPOCH),
        withdrawable=np.full(validators, FAR_FUTURE_EPOCH),
        slashed=np.zeros(validators, np.bool_),
        online=rng.random(validators) > 0.006,
        last_attestation=np.zeros(validators, np.int64),
        withdrawn=np.zeros(validators, np.int64),
        offline_chance=offline_chance,
        recovery_chance=rng.uniform(0.08, 0.5, validators),
    )


def _plan_exits(
    rng: np.random.Generator, plan: EventPlan, exiting: Sequence[int], first: int, last: int
) -> None:
    """Plan voluntary exits: the first completes early, the last two are pending at the end."""
    epochs = first + rng.integers(3, max(4, last - first - 6), len(exiting))
    epochs[0] = first + min(3, last - first - 2)
    epochs[-2:] = last - 2
    plan.offline_from[exiting[-1]] = last - 3
    for validator, epoch in zip(exiting, epochs.tolist(), strict=True):
        plan.exits.setdefault(epoch, []).append(validator)
        plan.exit_request_epoch[validator] = epoch


def _plan_slashings(
    rng: np.random.Generator, plan: EventPlan, count: int, first: int, last: int
) -> None:
    """Plan slashings, at most one per epoch; the last two have not exited at the end."""
    epochs = first + rng.integers(3, max(4, last - first - 6), count)
    epochs[0] = first + min(5, last - first - 2)
    epochs[-2:] = last - 4, last - 1
    for number, epoch in enumerate(sorted(int(e) for e in epochs if e > first)):
        plan.slashings[epoch] = "attester" if number % 2 else "proposer"


def _plan_new_validators(
    rng: np.random.Generator, plan: EventPlan, new_validators: range, first: int, last: int
) -> None:
    """Plan first deposits, in the order of the indices; the last are not active at the end."""
    epochs = np.sort(first + rng.integers(2, max(3, (last - first) * 9 // 10), len(new_validators)))
    epochs[0] = first + min(2, last - first - 3)
    epochs[-2:] = last - 5 if last - first > 6 else first + 1, last - 3
    epochs = np.maximum.accumulate(np.clip(epochs, first + 1, last - 3))
    for validator, epoch in zip(new_validators, epochs.tolist(), strict=True):
        amount = 32 * ETH
        if validator == new_validators[1]:  # a small deposit first
            amount = ETH
            top_up_epoch = min(epoch + 20, last - 3)
            plan.top_ups.setdefault(top_up_epoch, []).append((validator, 31 * ETH))
        elif validator == new_validators[-2]:  # never enough to activate
            amount = ETH
        plan.first_deposits.setdefault(epoch, []).append((validator, amount))


def _plan_top_ups(
    rng: np.random.Generator,
    plan: EventPlan,
    registry: Registry,
    others: Sequence[int],
    first: int,
    last: int,
) -> None:
    compounding = np.flatnonzero(registry.prefix[: registry.validator_count] == 2)
    count = max(6, registry.validator_count * (last - first) // 100_000)
    for number in range(count):
        epoch = int(first + rng.integers(2, max(3, last - first - 2)))
        validator, eth = int(rng.choice(compounding)), int(rng.integers(1, 64))
        amount = eth * ETH + int(rng.integers(0, 2)) * int(rng.integers(0, ETH))
        if number == 0:  # hysteresis: the effective balance does not follow this balance
            epoch, validator = first + 1, int(compounding[0])
            amount = ETH * 9 // 8 - int(registry.balance[validator] % ETH)
        elif number % 3 == 2 and others:
            validator, amount = int(rng.choice(others)), int(rng.integers(ETH // 10, ETH))
        plan.top_ups.setdefault(epoch, []).append((validator, amount))


def _plan_bls_changes(plan: EventPlan, candidates: Sequence[int], first: int, last: int) -> None:
    """Plan BLS changes of two fifths of the validators with BLS credentials."""
    changing = candidates[: max(1, len(candidates) * 2 // 5)]
    for number, validator in enumerate(changing):
        epoch = first + 1 + (last - first - 3) * number // len(changing)
        plan.bls_changes.setdefault(epoch, []).append(validator)


def _plan_switches(
    rng: np.random.Generator,
    plan: EventPlan,
    others: Sequence[int],
    validators: int,
    first: int,
    last: int,
) -> None:
    """Plan switches to compounding credentials; the validators of a pool never switch."""
    numbers = identities.find_operators(validators)
    own = [validator for validator in others if not identities.is_pool_node(numbers[validator])]
    switching = own[: max(2, validators * 4 // 1000)]
    epochs = first + rng.integers(2, max(3, last - first - 2), len(switching))
    for validator, epoch in zip(switching, epochs.tolist(), strict=True):
        plan.switches.setdefault(epoch, []).append(validator)


def _plan_withdrawal_requests(
    rng: np.random.Generator,
    plan: EventPlan,
    registry: Registry,
    others: Sequence[int],
    first: int,
    last: int,
) -> None:
    """Plan withdrawal requests; the first two are early, and two are rejected."""
    compounding = np.flatnonzero(registry.prefix[: registry.validator_count] == 2)
    balance = registry.balance[compounding]
    # The first has the planned top-up for hysteresis. None reaches its maximum.
    rich = compounding[1:][((balance >= 34 * ETH) & (balance < 1500 * ETH))[1:]].tolist()
    epochs = first + rng.integers(1, max(2, last - first - 1), len(rich))
    epochs[:2] = first + 1
    for validator, epoch in zip(rich, epochs.tolist(), strict=True):
        spare = (int(registry.balance[validator]) // ETH - 32) // 2
        amount = int(rng.integers(1, spare + 1)) * ETH
        plan.withdrawal_requests.setdefault(epoch, []).append((validator, amount))
    for validator in others[-2:]:
        epoch = int(first + rng.integers(1, max(2, last - first - 1)))
        plan.withdrawal_requests.setdefault(epoch, []).append((validator, ETH))


def _add_past_exits(
    rng: np.random.Generator,
    registry: Registry,
    candidates: Sequence[int],
    first: int,
    max_age: int,
) -> None:
    """Add withdrawals so far, and exits up to *max_age* epochs before the first epoch."""
    active_epochs = np.maximum(first - registry.activation, 0) * (registry.prefix == 1)
    active_epochs[registry.validator_count :] = 0
    registry.withdrawn[:] = active_epochs * rng.integers(10_900, 11_300, len(active_epochs))
    exited = list(candidates[: max(2, registry.validator_count // 80)])
    # Early enough to be withdrawable, and after an activation some time before.
    exit_epoch = np.maximum(
        first - rng.integers(300, max(301, min(first, max_age)), len(exited)), 20
    )
    registry.activation[exited] = np.minimum(registry.activation[exited], exit_epoch - 10)
    registry.eligibility[exited] = np.minimum(
        registry.eligibility[exited], registry.activation[exited]
    )
    registry.exit[exited] = exit_epoch
    registry.withdrawable[exited] = exit_epoch + 256
    registry.slashed[exited[: max(1, len(exited) // 8)]] = True
    registry.withdrawn[exited] = 32 * ETH + rng.integers(0, ETH, len(exited))
    registry.balance[exited] = registry.effective[exited] = 0
    registry.online[exited] = False
