"""Bytes that are no state of the chain: a ResponseError that names what is wrong."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaconframes.consensus.attestation_rewards import AttestationRewards
from beaconframes.consensus.shuffling import compute_committees, compute_proposers
from beaconframes.consensus.state import BeaconState, decode_state
from beaconframes.errors import BeaconframesError, ResponseError

from ..support.beacon_states import load_states

ELECTRA = CAPELLA = 20


@cache
def read(name="electra", epoch=ELECTRA):
    return load_states(name).ssz(epoch)


def change(position, replacement, ssz=None):
    ssz = ssz or read()
    assert len(ssz) > position
    return ssz[:position] + replacement + ssz[position + len(replacement) :]


def find_validators():
    """Return where the registry begins: at the first public key."""
    key = load_states("electra").state(ELECTRA).pubkeys[0].tobytes()
    return read().index(key)


def refuse(ssz, match):
    with pytest.raises(ResponseError, match=match):
        decode_state(ssz, load_states("electra").spec)


@pytest.mark.parametrize(
    ("ssz", "match"),
    [
        (b"", "the state has 0 bytes; it ends before its fork version"),
        (b"\0" * 55, "the state has 55 bytes"),
        (json.dumps({"code": 404, "message": "State not found" * 9}).encode(), "is unknown to"),
        (b"\0" * 9000, "fork version of the state, 0x00000000, is unknown to the node's spec"),
    ],
)
def test_foreign_bytes(ssz, match):
    refuse(ssz, match)


def test_a_state_of_another_chain():
    """Fork versions of both minimal chains are alike, their genesis is not."""
    refuse(read("capella", CAPELLA), "the state is of another chain: its genesis_validators_root")


def test_forks_that_are_not_supported():
    refuse(change(52, bytes.fromhex("00000001")), "of fork 'phase0', which is not supported")
    refuse(change(52, bytes.fromhex("07000001")), "of fork 'gloas', which is not supported")


def test_the_slot_of_another_fork():
    """Epoch 1 is Deneb's; the state says Electra."""
    match = "state of slot 15 has the version of fork 'electra', but .* schedules fork 'deneb'"
    refuse(change(40, (15).to_bytes(8, "little")), match)


def test_the_fields_of_another_fork():
    """Deneb has fewer fields than Electra: its lists would begin earlier."""
    refuse(
        change(52, bytes.fromhex("04000001")), r"historical_roots of the state begins at byte \d+"
    )


@pytest.mark.parametrize("size", [56, 57, 400, 4_500, 6_600, 12_000])
def test_truncated(size):
    refuse(read()[:size], "the state is truncated|truncated or damaged|begins at byte")


def test_one_more_byte():
    refuse(read() + b"\0", "pending_consolidations of the state has 1 bytes")


def test_values_out_of_range():
    start = find_validators()
    too_many = (2**63).to_bytes(8, "little")
    effective, slashed, exit_epoch = start + 121 + 80, start + 121 + 88, start + 121 + 105
    refuse(change(effective, too_many), r"effective_balance of the state is 9223372036854775808 at")
    refuse(
        change(effective, (2048 * 10**9 + 1).to_bytes(8, "little")), "at index 1; it must be 2048"
    )
    refuse(change(slashed, b"\2"), "slashed of the state is 2 at index 1; it must be 1 or less")
    refuse(
        change(exit_epoch, too_many), "exit_epoch of the state is 9223372036854775808 at index 1"
    )


def test_a_sync_committee_of_unknown_validators():
    state = load_states("electra").state(ELECTRA)
    member = int(state.current_sync_committee[0])
    key = state.pubkeys[member].tobytes()
    damaged = change(find_validators() + 121 * member, bytes([key[0] ^ 1]))

    refuse(damaged, f"public key 0x{key.hex()} of a sync committee of the state is no validator")


def check(ssz):
    """A state or a ResponseError, also from everything that is computed from the state."""
    chain = load_states("electra")
    try:
        state = decode_state(ssz, chain.spec)
        assert isinstance(state, BeaconState)
        AttestationRewards.from_state(chain.spec, state)
        epoch = chain.spec.epoch_of(state.slot)
        compute_proposers(chain.spec, state, epoch)
        compute_committees(chain.spec, state, epoch)
    except BeaconframesError:
        pass


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_bytes_are_a_state_or_a_response_error(data):
    ssz = bytearray(read())
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(ssz) - 1))
        replacement = data.draw(st.binary(min_size=1, max_size=16))
        ssz[position : position + len(replacement)] = replacement
    check(bytes(ssz[: data.draw(st.integers(0, len(ssz)) | st.just(len(ssz)))]))


def test_damage_at_every_offset_of_a_list():
    """The first 9,000 bytes hold every offset: each list may begin anywhere."""
    ssz = read()
    for position in range(0, 9_000, 97):
        check(change(position, b"\xff\xff\xff\xff", ssz))
        check(ssz[: position + 1])
