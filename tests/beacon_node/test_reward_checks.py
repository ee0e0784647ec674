"""Which parts of attestation rewards no vote can have, worked out by hand.

16 validators of 32 ETH: the base reward of one ETH is 89,442 gwei, that of a validator 2,862,144. A
missed source costs 14/64 of it, 626,094 gwei; a missed target 26/64, 1,162,746 gwei.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beaconframes.beacon_node.amounts.epoch_amounts import UNKNOWN
from beaconframes.beacon_node.amounts.reward_checks import find_contradicted
from beaconframes.consensus.registry import Registry
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH

from ..support.small_blocks import ETH, build_spec

SOURCE, TARGET = -626_094, -1_162_746
IDEAL = {"source": 586_963, "target": 1_090_074, "head": 586_963}
"""With 15 of 16 validators timely: 15/16 of 14/64 and 26/64 of the base reward."""


def build_registry(count=16):
    return Registry(
        effective_balances=np.full(count, 32 * ETH),
        balances=np.full(count, 32 * ETH),
        slashed=np.zeros(count, np.bool_),
        activation_epochs=np.zeros(count, np.int64),
        exit_epochs=np.full(count, FAR_FUTURE_EPOCH),
        withdrawable_epochs=np.full(count, FAR_FUTURE_EPOCH),
        pubkeys=np.zeros((count, 48), np.uint8),
        withdrawal_credentials=np.zeros((count, 32), np.uint8),
    )


def check(last, *, has_all=True, ideal=IDEAL):
    """Return whether the last validator's parts are contradicted, and whether any other's are."""
    count = 16
    parts = {vote: np.full(count, IDEAL[vote]) for vote in IDEAL}
    parts["inactivity"] = np.zeros(count, np.int64)
    for part, amount in zip(("source", "target", "head", "inactivity"), last, strict=True):
        parts[part][-1] = amount
    found = find_contradicted(
        build_spec("capella"), 5, build_registry(), parts,
        {vote: np.full(count, ideal[vote]) for vote in ideal}, has_all=has_all,
    )  # fmt: skip
    return bool(found[-1]), bool(found[:-1].any())


@pytest.mark.parametrize("has_all", [True, False])
@pytest.mark.parametrize("inactivity", [0, -15, -1907])
def test_missed_votes_cost_the_penalty_of_their_weight(has_all, inactivity):
    """A score of 4 costs 1,907.3 gwei with 32 ETH, bias 4 and quotient 2**24."""
    last = (SOURCE, TARGET, 0, inactivity)
    assert check(last, has_all=has_all) == (inactivity == -15, False)


@pytest.mark.parametrize(
    "last",
    [
        (SOURCE + 1, TARGET, 0, 0),
        (SOURCE - 1, TARGET, 0, 0),
        (SOURCE, TARGET + 1, 0, 0),
        (SOURCE, TARGET - 1, 0, 0),
        (SOURCE + 7, TARGET, 0, 0),
        (SOURCE - 7, TARGET - 13, 0, 0),
        (SOURCE, TARGET, -1, 0),
    ],
)
def test_other_penalties_are_contradicted(last):
    """Of all validators, the base reward is known; 7 and 13 gwei are those of another one."""
    assert check(last) == (True, False)
    assert check(last, has_all=False)[0] == (last != (SOURCE - 7, TARGET - 13, 0, 0))


@pytest.mark.parametrize(("epoch", "is_contradicted"), [(4, False), (5, True)])
def test_an_inactivity_penalty_has_the_quotient_of_the_epoch_that_pays_it(epoch, is_contradicted):
    """Bellatrix begins with epoch 6. A score of 1 costs 158 gwei in Altair, then 476 gwei."""
    spec = replace(build_spec("bellatrix"), fork_epochs={"phase0": 0, "altair": 0, "bellatrix": 6})
    zero = np.zeros(16, np.int64)
    parts = dict.fromkeys(("source", "target", "head"), zero) | {"inactivity": zero - 158}
    found = find_contradicted(
        spec, epoch, build_registry(), parts, dict.fromkeys(IDEAL, zero), has_all=True
    )
    assert set(found.tolist()) == {is_contradicted}


@pytest.mark.parametrize("error", [-1, 1])
@pytest.mark.parametrize("vote", ["source", "target", "head"])
def test_rewards_of_chosen_validators_must_be_the_ideal_ones(vote, error):
    last = [*(IDEAL[each] + error * (each == vote) for each in IDEAL), 0]
    assert check(last, has_all=False) == (True, False)
    assert check(last, has_all=False, ideal=dict.fromkeys(IDEAL, UNKNOWN)) == (False, False)
