"""Decoding of beacon states, compared with the routes of the same node and with expected values."""

from __future__ import annotations

import pytest

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH

from ..support.beacon_states import load_states

CHAINS = ("capella", "electra")
FAR_FUTURE = str(2**64 - 1)


@pytest.fixture(params=CHAINS)
def chain(request):
    return load_states(request.param)


def test_every_recorded_state_has_the_expected_values(chain):
    for epoch in chain.epochs:
        state, key = chain.state(epoch), str(epoch)
        assert state.slot == chain.spec.first_slot_of(epoch + 1) - 1
        assert state.fork == chain.spec.fork_at(epoch)
        expected = chain.expected
        assert state.balances.tolist() == expected["balance_last_slot"][key]
        assert state.effective_balances.tolist() == expected["effective_balance_last_slot"][key]
        assert state.inactivity_scores.tolist() == expected["inactivity_scores_last_slot"][key]
        assert expected["finality_last_slot"][key] == {
            "justified": state.current_justified_epoch,
            "finalized": state.finalized_epoch,
        }


def test_states_equal_the_validators_and_checkpoints_of_the_same_node(chain):
    counts = {"validators": 0, "finality": 0}
    for epoch in chain.epochs:
        state = chain.state(epoch)
        rows = chain.data("validators", state.slot)
        if rows is not None:
            counts["validators"] += 1
            check_validators(state, rows)
        if checkpoints := chain.data("finality", state.slot):
            counts["finality"] += 1
            for name, checkpoint in checkpoints.items():
                assert checkpoint["epoch"] == str(getattr(state, f"{name}_epoch"))
    assert min(counts.values()) >= 50


def check_validators(state, rows):
    assert [row["index"] for row in rows] == [str(i) for i in range(len(state.balances))]
    assert [row["balance"] for row in rows] == [str(value) for value in state.balances]
    for name, column in {
        "effective_balance": state.effective_balances,
        "activation_eligibility_epoch": state.activation_eligibility_epochs,
        "activation_epoch": state.activation_epochs,
        "exit_epoch": state.exit_epochs,
        "withdrawable_epoch": state.withdrawable_epochs,
    }.items():
        shown = [FAR_FUTURE if value == FAR_FUTURE_EPOCH else str(value) for value in column]
        assert [row["validator"][name] for row in rows] == shown
    assert [row["validator"]["slashed"] for row in rows] == state.slashed.tolist()
    for name, column in {
        "pubkey": state.pubkeys,
        "withdrawal_credentials": state.withdrawal_credentials,
    }.items():
        shown = [f"0x{value.tobytes().hex()}" for value in column]
        assert [row["validator"][name] for row in rows] == shown


def test_sync_committees_equal_the_route(chain):
    period, counts = chain.spec.epochs_per_sync_committee_period, [0, 0]
    for epoch in chain.epochs:
        state = chain.state(epoch)
        for later, committee in enumerate(
            (state.current_sync_committee, state.next_sync_committee)
        ):
            if answer := chain.data("sync_committees", epoch + later * period):
                counts[later] += 1
                assert answer["validators"] == [str(index) for index in committee]
    assert min(counts) >= 40


def test_pending_queues_equal_the_routes():
    chain = load_states("electra")
    names = {
        "pending_deposits": "pubkey withdrawal_credentials amount signature slot",
        "pending_partial_withdrawals": "validator_index amount withdrawable_epoch",
        "pending_consolidations": "source_index target_index",
    }
    rows = dict.fromkeys(names, 0)
    for epoch in chain.epochs:
        state = chain.state(epoch)
        for route, fields in names.items():
            queue = getattr(state, route)
            assert queue.dtype.names == tuple(fields.split())
            answer = chain.data(route, state.slot) if state.fork == "electra" else []
            rows[route] += len(answer)
            for found, row in zip(queue, answer, strict=True):
                for name, text in row.items():
                    value = found[name]
                    shown = str(value) if value.ndim == 0 else f"0x{value.tobytes().hex()}"
                    assert text == shown
    assert min(rows.values()) > 0


def test_block_roots_equal_the_headers(chain):
    spec, count = chain.spec, 0
    for epoch in chain.epochs:
        state = chain.state(epoch)
        for slot in range(spec.first_slot_of(epoch), state.slot):
            if header := chain.data("header", slot):
                count += 1
                found = state.block_roots[slot % spec.slots_per_historical_root]
                assert header["root"] == f"0x{found.tobytes().hex()}"
    assert count > 300
