"""Pending deposits, pending consolidations and the upgrade to Electra, in changed recorded states.

The state of epoch 20: slot 152 is the last finalized one after its transition. The churn limit is
64 ETH: 1/32 of the stake is more than MAX_PER_EPOCH_ACTIVATION_EXIT_CHURN_LIMIT of that chain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beaconframes.consensus.attestation_rewards import AttestationRewards
from beaconframes.consensus.epoch_moves import compute_transition
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.consensus.state import PENDING_CONSOLIDATION, PENDING_DEPOSIT
from beaconframes.errors import UsageError

from ..support.beacon_states import load_states

ETH = 10**9
EPOCH = 20
NEW_KEY = np.full(48, 7, np.uint8)


def change(epoch=EPOCH, deposits=(), consolidations=(), **columns):
    """Return a recorded state with other queues; *columns* maps validators to other values."""
    state = load_states("electra").state(epoch)
    changed = {}
    for name, values in columns.items():
        changed[name] = getattr(state, name)
        if isinstance(values, dict):
            changed[name] = changed[name].copy()
            for index, value in values.items():
                changed[name][index] = value
        else:
            changed[name] = values
    queue = np.zeros(len(deposits), PENDING_DEPOSIT)
    for entry, (index, amount, slot) in zip(queue, deposits, strict=True):
        entry["pubkey"] = NEW_KEY if index is None else state.pubkeys[index]
        entry["amount"], entry["slot"] = amount, slot
    return replace(
        state,
        pending_deposits=queue,
        pending_consolidations=np.array(list(consolidations), PENDING_CONSOLIDATION),
        **changed,
    )


def find_moves(state, later=None):
    """Return validator and amount of each move of a state."""
    moves = compute_transition(load_states("electra").spec, state, later).moves
    return [(move.validator_index, move.amount_gwei) for move in moves]


@pytest.mark.parametrize(
    ("deposits", "columns", "applied"),
    [
        pytest.param([(5, 40 * ETH, 0), (6, 24 * ETH, 0), (7, 1, 0)], {}, 2, id="churn"),
        pytest.param(
            [(5, 40 * ETH, 0), (6, 24 * ETH, 0), (7, 1, 0)], {"deposit_balance_to_consume": 1}, 3,
            id="churn of the epoch before",
        ),
        pytest.param([(5, 1, 152), (6, 1, 153), (7, 1, 0)], {}, 1, id="finality"),
        pytest.param(
            [(5, 1, 0), (6, 1, 8)], {"eth1_deposit_index": 69}, 1, id="deposits in blocks first"
        ),
        pytest.param([(index, 1, 0) for index in range(17, 34)], {}, 16, id="16 an epoch"),
    ],
)  # fmt: skip
def test_pending_deposits_wait_at_a_limit(deposits, columns, applied):
    expected = [(index, amount) for index, amount, _ in deposits[:applied]]
    assert find_moves(change(deposits=deposits, **columns)) == expected


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        pytest.param({"exit_epochs": {5: 22}}, [(6, 64 * ETH)], id="exiting"),
        pytest.param({"effective_balances": {5: 16 * ETH}}, [(6, 64 * ETH)], id="ejected now"),
        pytest.param(
            {"exit_epochs": {5: 19}, "withdrawable_epochs": {5: 21}}, [(6, 64 * ETH)],
            id="withdrawable in the next epoch",
        ),
        pytest.param(
            {"exit_epochs": {5: 16}, "withdrawable_epochs": {5: 20}},
            [(5, 60 * ETH), (6, 64 * ETH)],
            id="withdrawable",
        ),
    ],
)  # fmt: skip
def test_top_ups_of_exiting_validators_wait_and_take_nothing_from_the_limit(columns, expected):
    deposits = [(5, 60 * ETH, 0), (6, 64 * ETH, 0)]
    assert find_moves(change(deposits=deposits, **columns)) == expected


def test_deposits_of_a_new_key_go_to_a_new_validator():
    """Its signature is valid if a later registry has the key. An invalid one counts as churn."""
    deposits = [(None, 32 * ETH, 0), (None, ETH, 0), (5, 32 * ETH, 0)]
    state = change(deposits=deposits)
    later = change(
        epoch=EPOCH + 1,
        pubkeys=np.vstack([state.pubkeys, NEW_KEY]),
        withdrawal_credentials=np.vstack([state.withdrawal_credentials, np.zeros(32, np.uint8)]),
        balances=np.append(state.balances, 33 * ETH),
    )
    count = len(state.balances)
    for known in (None, later):
        assert find_moves(state, known) == [(count, 33 * ETH)]
    assert find_moves(state, change(epoch=EPOCH + 1)) == []
    balances = compute_transition(load_states("electra").spec, state).balances
    assert len(balances) == count + 1
    assert balances[count] == 33 * ETH


@pytest.mark.parametrize(
    ("left", "withdrawn", "expected"),
    [
        pytest.param(35, 0, 35, id="first signature invalid"),
        pytest.param(32, 3, 35, id="and the excess withdrawn since"),
        pytest.param(36, 0, 36, id="both signatures valid"),
        pytest.param(32, 4, 36, id="both valid, and the excess withdrawn since"),
    ],
)
def test_equal_deposits_of_a_new_key_count_from_the_first_valid_one(left, withdrawn, expected):
    """All have the credentials of the validator: the balance shows which one created it."""
    state = change(deposits=[(None, ETH, 0), (5, 3 * ETH, 0), (None, 35 * ETH, 0)])
    count, zeros = len(state.balances), np.zeros(32, np.uint8)
    later = change(
        epoch=EPOCH + 1,
        pubkeys=np.vstack([state.pubkeys, NEW_KEY]),
        withdrawal_credentials=np.vstack([state.withdrawal_credentials, zeros]),
        balances=np.append(state.balances, left * ETH),
    )
    withdrawals = [{"validator_index": str(count), "amount": str(withdrawn * ETH)}]
    block = {"body": {"execution_payload": {"withdrawals": withdrawals}}}
    transition = compute_transition(load_states("electra").spec, state, later, later_blocks=[block])
    moves = [move[2:] for move in transition.moves]
    assert sorted(moves) == [(5, 3 * ETH), (count, expected * ETH)]
    assert transition.balances[count] == expected * ETH


def test_consolidations_move_what_is_there_once_the_source_is_withdrawable():
    """30 is slashed, 31 has 20 ETH left, 32 has 33 ETH, 33 is not withdrawable: 34 waits too."""
    state = change(
        consolidations=[(30, 40), (31, 40), (32, 41), (33, 41), (34, 41)],
        slashed={30: True},
        exit_epochs=dict.fromkeys((30, 31, 32, 33, 34), 17),
        withdrawable_epochs={30: 21, 31: 21, 32: 20, 33: 22, 34: 21},
        balances={31: 20 * ETH, 32: 33 * ETH},
    )
    assert find_moves(state) == [
        (31, -20 * ETH), (40, 20 * ETH), (32, -32 * ETH), (41, 32 * ETH),
    ]  # fmt: skip


def test_a_balance_pays_penalties_down_to_zero():
    """40 missed its vote with 1,000 gwei left, 21 is half-way to its withdrawal with 1 ETH."""
    chain = load_states("electra")
    stake = chain.state(EPOCH).get_total_active_balance(chain.spec)
    state = change(
        balances={40: 1000, 21: ETH},
        slashed={21: True},
        exit_epochs={21: 17},
        withdrawable_epochs={21: EPOCH + 32},
        previous_participation={40: 0},
        slashings={0: stake},
    )
    rewards = AttestationRewards.from_state(chain.spec, state).total
    assert rewards[40] < -1000
    transition = compute_transition(chain.spec, state)
    assert [move[1:] for move in transition.moves] == [
        ("unpaid_penalty", 40, -rewards[40] - 1000),
        ("slashing_correlation", 21, -rewards[21] - ETH),
    ]
    assert transition.balances[[21, 40]].tolist() == [0, 0]


def test_the_upgrade_takes_the_balances_of_validators_without_activation_epoch():
    """The transition activates 2 of 3 eligible ones first: the churn limit, in order of index."""
    waiting = dict.fromkeys((10, 11, 13), FAR_FUTURE_EPOCH)
    state = change(
        epoch=1,
        activation_epochs=waiting,
        activation_eligibility_epochs={10: 0, 11: 0, 13: 0},
        balances={13: 7 * ETH},
    )
    moves = dict(find_moves(state))
    assert moves[13] == -7 * ETH
    assert {10, 11}.isdisjoint(moves)
    recorded = dict(find_moves(load_states("electra").state(1)))
    assert set(moves) - set(recorded) == {13}


def test_only_the_state_of_the_last_slot_has_the_moves_of_an_epoch():
    with pytest.raises(UsageError, match=r"slot 166 is not at the end of epoch 20.*slot 167"):
        find_moves(replace(load_states("electra").state(EPOCH), slot=166))
