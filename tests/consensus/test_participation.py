"""Participation flags of hand-made blocks, and what they pay the proposer.

16 validators of 32 ETH: the base reward of one is 32 * (64e9 // isqrt(512e9)) = 2,862,144 gwei.
The weights are 14 (source), 26 (target) and 14 (head); a proposer earns 8 / (64 * 56) of them.
"""

from __future__ import annotations

import numpy as np
import pytest

from beaconframes.consensus.participation import BlockParticipation
from beaconframes.consensus.shuffling import Committees
from beaconframes.errors import ResponseError, UsageError

from ..support.small_blocks import ETH, TOTAL, build_block, build_spec


def build_attestation(slot, bits, head=None, target=None, **more):
    """Return an attestation of the validators of a slot; by default the vote is right."""
    epoch = slot // 8
    root = f"0x{slot:064x}" if head is None else head
    return {
        "aggregation_bits": bits,
        "data": {
            "slot": str(slot),
            "index": "0",
            "beacon_block_root": root,
            "target": {"epoch": str(epoch), "root": target or f"0x{epoch * 8:064x}"},
        },
    } | more


def start(fork="capella", until=9):
    """Return the participation before the block of slot *until*, in epoch 1; no slot is missed.

    Two validators vote in each slot: both in committee 0, in Electra each in a committee.
    """
    spec = build_spec(fork)
    participation = BlockParticipation(spec)
    for slot in range(until):
        if slot % 8 == 0:
            committees = Committees.from_api(spec, slot // 8, build_committees(fork, slot // 8))
            participation.start_epoch(slot // 8, committees, np.full(16, 32 * ETH), TOTAL)
        participation.process_block(build_block(slot))
    return participation


def build_committees(fork, epoch):
    """Return the committees of an epoch as the API lists them."""
    pairs = [[str(2 * place), str(2 * place + 1)] for place in range(8)]
    return [
        {"slot": str(8 * epoch + place), "index": str(index), "validators": members}
        for place, pair in enumerate(pairs)
        for index, members in enumerate([[pair[0]], [pair[1]]] if fork == "electra" else [pair])
    ]


def compute_reward(*weights):
    """Return the proposer's reward for flags of these weights, of 32 ETH each."""
    return 2_862_144 * sum(weights) // 448


def test_only_the_first_vote_with_a_flag_pays():
    """In one block and in the next one; each attestation is rounded down by itself."""
    participation = start()
    block = build_block(
        9, attestations=[build_attestation(8, "0x05"), build_attestation(8, "0x07")]
    )
    assert participation.process_block(block) == 2 * compute_reward(54)
    late = build_block(10, attestations=[build_attestation(8, "0x07")])
    assert participation.process_block(late) == 0
    assert participation.current.tolist() == [7, 7] + [0] * 14


@pytest.mark.parametrize(
    ("fork", "slot", "vote", "weights"),
    [
        ("capella", 9, {}, [14, 26, 14]),
        ("capella", 9, {"head": "0xff"}, [14, 26]),
        ("capella", 9, {"target": "0xff"}, [14]),
        ("capella", 10, {}, [14, 26]),
        ("capella", 11, {}, [26]),
    ],
)
def test_flags_depend_on_the_vote_and_its_delay(fork, slot, vote, weights):
    """Source: at most isqrt(8) = 2 slots; head: one slot. A wrong target makes the head wrong."""
    attestation = build_attestation(8, "0x05", **vote)
    found = start(fork, slot).process_block(build_block(slot, attestations=[attestation]))
    assert found == compute_reward(*weights)


@pytest.mark.parametrize(("fork", "weights"), [("capella", []), ("deneb", [26])])
def test_late_targets_pay_since_deneb(fork, weights):
    """Slot 0 in the block of slot 9: before Deneb, an epoch is the limit."""
    block = build_block(9, attestations=[build_attestation(0, "0x05")])
    assert start(fork).process_block(block) == compute_reward(*weights)


@pytest.mark.parametrize(
    ("committees", "bits", "voters"),
    [("0x01", "0x03", [0]), ("0x02", "0x03", [1]), ("0x03", "0x06", [1]), ("0x03", "0x07", [0, 1])],
)
def test_attestations_since_electra_span_committees(committees, bits, voters):
    participation = start("electra")
    attestation = build_attestation(8, bits, committee_bits=committees)
    reward = participation.process_block(build_block(9, attestations=[attestation]))
    assert np.flatnonzero(participation.current).tolist() == voters
    assert reward == compute_reward(*[54] * len(voters))


@pytest.mark.parametrize(
    ("fork", "attestation", "message"),
    [
        ("capella", build_attestation(8, "0x1f"), "4 aggregation_bits, but its committees have 2"),
        ("capella", build_attestation(8, "0x00"), "invalid aggregation_bits: the delimiter"),
        ("capella", build_attestation(24, "0x07"), "includes an attestation of epoch 3"),
        ("electra", build_attestation(8, "0x03", committee_bits="0x04"), "slot has 2"),
        ("electra", build_attestation(8, "0x01", committee_bits="0x00"), r"committees \[\]"),
    ],
)
def test_attestations_that_do_not_fit_the_committees_are_errors(fork, attestation, message):
    with pytest.raises(ResponseError, match=message):
        start(fork).process_block(build_block(9, attestations=[attestation]))


def test_blocks_and_epochs_are_processed_in_order():
    participation = start()
    participation.process_block(build_block(9))
    with pytest.raises(UsageError, match="block of slot 9 follows that of slot 9"):
        participation.process_block(build_block(9))
    with pytest.raises(UsageError, match="slot 17 is not in epoch 1"):
        participation.process_block(build_block(17))
    with pytest.raises(UsageError, match="epoch 3 does not follow epoch 1"):
        participation.start_epoch(3, None, np.zeros(16, np.int64), TOTAL)


def test_committees_of_another_registry_are_an_error():
    spec = build_spec()
    committees = Committees.from_api(spec, 0, build_committees("capella", 0))
    with pytest.raises(ResponseError, match="committees of epoch 0 have validator 15 of 15"):
        BlockParticipation(spec).start_epoch(0, committees, np.full(15, 32 * ETH), TOTAL)
