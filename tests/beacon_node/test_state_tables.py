"""Tables of states, from the routes of a node and from decoded states."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from beaconframes.beacon_node.client.validator_rows import read_validators
from beaconframes.beacon_node.tables.state import (
    build_latest_state,
    build_members,
    build_validator_queue,
    build_validators,
    read_state_validators,
)
from beaconframes.errors import ResponseError
from beaconframes.v1 import latest_state, sync_committees, validator_queue, validators

from ..support.beacon_states import load_states, parse_rows
from ..support.recorded_blocks import load_blocks

NODE_STATUSES = {
    "pending_initialized": "deposited",
    "pending_queued": "pending",
    "active_ongoing": "active",
    "active_exiting": "exiting",
    "active_slashed": "slashing",
    "exited_unslashed": "exited",
    "exited_slashed": "slashed",
}


@pytest.mark.parametrize("epoch", [0, 10, 49])
def test_validators_equal_those_of_the_node(epoch):
    """The node names the same status with other words, and splits those of exited validators."""
    chain, slot = load_blocks("electra"), 8 * epoch + 7
    data = chain.data("validators", slot)
    frame = build_validators(chain.spec, epoch, read_validators(parse_rows(data)))
    validators.Validators.check(frame, chain.spec.chain)
    assert validators.Validators.schema() == frame.schema
    far = str(2**64 - 1)
    for row, expected in zip(frame.iter_rows(named=True), data, strict=True):
        record = expected["validator"]
        assert (int(expected["index"]), int(expected["balance"])) == (
            row["validator_index"],
            row["balance_gwei"],
        )
        for name in ("activation_eligibility", "activation", "exit", "withdrawable"):
            text = record[f"{name}_epoch"]
            assert (None if text == far else int(text)) == row[f"{name}_epoch"]
        for name in ("pubkey", "withdrawal_credentials", "slashed"):
            assert record[name] == row[name]
        assert int(record["effective_balance"]) == row["effective_balance_gwei"]
        for name in ("name", "last_attestation_slot", "total_withdrawals_gwei"):
            assert row[name] is None
        left = "exited_slashed" if record["slashed"] else "exited_unslashed"
        status = expected["status"]
        status = left if status.startswith("withdrawal") else status
        assert NODE_STATUSES[status] == row["status"]


@pytest.mark.parametrize("name", ["capella", "electra"])
def test_a_decoded_state_has_the_same_validators_as_the_route(name):
    chain = load_states(name)
    for epoch in (0, 20, 49):
        state = chain.state(epoch)
        data = chain.data("validators", state.slot)
        if data is not None:
            assert read_validators(parse_rows(data)).equals(read_state_validators(state))


def test_validators_that_attested_lately_are_online():
    """The service calls a validator offline that has not attested for 64 slots."""
    chain = load_blocks("electra")
    frame = read_validators(parse_rows(chain.data("validators", 399))).filter(
        pl.col("validator_index").is_in([0, 5, 6, 63])
    )
    last = pl.DataFrame({"validator_index": [0, 5, 6], "last_attestation_slot": [398, 334, 333]})
    table = build_validators(chain.spec, 49, frame, last_attestations=last)
    assert table.select("status", "last_attestation_slot").rows() == [
        ("active_online", 398),
        ("active_online", 334),
        ("active_offline", 333),
        ("exited", None),
    ]


def test_the_queue_counts_new_keys_and_not_top_ups():
    """After the block of slot 42: two new keys wait, each with its own amount.

    The queue also has what left the balances at the fork, which is no new key.
    """
    chain = load_blocks("electra")
    states = load_states("electra")
    state = states.state(5)
    pending = chain.data("pending_deposits", 47)
    frame = read_validators(parse_rows(chain.data("validators", 47)))
    queue = build_validator_queue(chain.spec, 5, frame, pending)
    assert validator_queue.ValidatorQueue.schema() == queue.schema
    known = set(frame["pubkey"])
    assert queue.row(0, named=True) == {
        "validators_count": int(state.is_active(5).sum()),
        "entering_count": len({each["pubkey"] for each in pending} - known),
        "exiting_count": 1,
        "entering_balance_gwei": sum(int(each["amount"]) for each in pending),
        "exiting_balance_gwei": 32 * 10**9,
    }
    assert queue.equals(
        build_validator_queue(chain.spec, 5, read_state_validators(state), state.pending_deposits)
    )
    waiting = {
        epoch: build_validator_queue(
            chain.spec, epoch, read_validators(parse_rows(chain.data("validators", epoch * 8 + 7))),
            chain.data("pending_deposits", epoch * 8 + 7),
        )["entering_count"].item()
        for epoch in (2, 4, 5, 48)
    }  # fmt: skip
    # Slot 34 has one new key, slot 42 two; one of them has an invalid signature.
    assert waiting == {2: 0, 4: 1, 5: 3, 48: 0}


def test_before_electra_validators_wait_and_not_deposits():
    chain = load_blocks("capella")
    frame = read_validators(parse_rows(chain.data("validators", 0))).with_columns(
        activation_epoch=pl.when(pl.col("validator_index") < 3)
        .then(9)
        .otherwise("activation_epoch"),
        activation_eligibility_epoch=pl.when(pl.col("validator_index") == 0)
        .then(2**63 - 1)
        .otherwise("activation_eligibility_epoch"),
    )
    assert build_validator_queue(chain.spec, 5, frame).row(0) == (13, 2, 0, None, None)


def test_sync_committees_have_the_expected_seats():
    for name in ("capella", "electra"):
        chain = load_blocks(name)
        expected = chain.expected["sync_committee"]
        # Capella's expected values have the first epoch of each period.
        step = 8 if name == "capella" else 1
        members = {int(key) // step: np.array(seats) for key, seats in expected.items()}
        for period, seats in members.items():
            reader = SimpleNamespace(sync_committee={8 * period + 3: seats}.__getitem__)
            data = SimpleNamespace(spec=chain.spec, epoch=8 * period + 3, reader=reader)
            rows = build_members(data)
            sync_committees.SyncCommittees.check(rows, chain.spec.chain)
            assert [period] * 32 == rows["period"].to_list()
            assert rows["seat"].to_list() == list(range(32))
            assert seats.tolist() == rows["validator_index"].to_list()
            assert rows.select("start_epoch", "end_epoch").row(0) == (8 * period, 8 * period + 7)


def test_the_first_sync_committee_begins_with_its_fork():
    """The fork may be later than its period, as Altair at epoch 5 of a period of 8 epochs."""
    spec = load_blocks("capella").spec
    spec = dataclasses.replace(spec, fork_epochs=spec.fork_epochs | {"altair": 5})
    for epoch, bounds in ((6, (5, 7)), (8, (8, 15))):
        reader = SimpleNamespace(sync_committee=lambda _: np.arange(32))
        rows = build_members(SimpleNamespace(spec=spec, epoch=epoch, reader=reader))
        assert bounds == rows.select("start_epoch", "end_epoch").row(0)


def test_the_latest_state_has_no_prices():
    spec = load_blocks("electra").spec
    row = build_latest_state(
        spec, current_slot=399, last_proposed_slot=398, finalized_epoch=47, is_syncing=False
    ).row(0, named=True)
    known = {
        "current_slot": 399,
        "last_proposed_slot": 398,
        "current_epoch": 49,
        "current_finalized_epoch": 47,
        "finality_delay": 2,
        "syncing": False,
        "time": spec.chain.time_of("slot", 399),
    }
    assert dict.fromkeys(latest_state.LatestState.schema()) | known == row


def test_pending_deposits_of_another_shape_are_an_error():
    chain = load_blocks("electra")
    frame = read_validators(parse_rows(chain.data("validators", 47)))
    for data in (None, [{"pubkey": "0xab", "amount": "1"}]):
        with pytest.raises(ResponseError, match="pending deposits"):
            build_validator_queue(chain.spec, 5, frame, data)
