"""Moves between two epochs from routes of a node, for validators worked out by hand."""

from __future__ import annotations

import pytest

from beaconframes.beacon_node.amounts.chosen_validators import (
    NO_SIGNATURE,
    BalanceMove,
    BlockMoves,
    ChosenValidators,
    find_applied_deposits,
    find_upgrade_moves,
)
from beaconframes.beacon_node.amounts.transition_moves import TransitionMoves

from ..support.beacon_states import parse_rows
from ..support.small_blocks import ETH, build_block, build_spec

EPOCH, VECTOR = 10_000, 8192
NEVER = 2**64 - 1


class HandMade:
    """The routes of a node whose validators were slashed in some epochs, with 32 ETH each.

    Those that were not slashed are active.
    """

    def __init__(self, slashed_in):
        self.slashed_in = slashed_in
        self.api = self
        self.spec = build_spec("capella")

    def request_state(self, slot, request):
        return request(slot)

    def validators(self, slot, ids=None):
        chosen = range(len(self.slashed_in)) if ids is None else ids
        return parse_rows([self.build_row(index, slot // 8) for index in chosen])

    def build_row(self, index, epoch):
        """Return a validator as the route lists it in an epoch."""
        slashed_in = self.slashed_in[index]
        is_slashed = slashed_in is not None and slashed_in <= epoch
        leaving, withdrawable = NEVER, NEVER
        if is_slashed:
            leaving, withdrawable = slashed_in + 5, slashed_in + VECTOR
        return {
            "index": str(index), "balance": str(32 * ETH), "status": "",
            "validator": {
                "pubkey": f"0x{index:096x}", "withdrawal_credentials": "0x01" + "00" * 31,
                "effective_balance": str(32 * ETH), "slashed": is_slashed,
                "activation_eligibility_epoch": "0", "activation_epoch": "0",
                "exit_epoch": str(leaving), "withdrawable_epoch": str(withdrawable),
            },
        }  # fmt: skip


@pytest.mark.parametrize(
    ("withdrawn", "applied"), [({0: 3 * ETH}, [1]), ({0: 35 * ETH, 1: ETH}, [0, 1])]
)
def test_equal_deposits_of_a_new_key_count_from_the_first_valid_one(withdrawn, applied):
    """The balance is 32 ETH: with 3 ETH withdrawn since, only the deposit of 35 ETH reached it."""
    node = HandMade([None])
    after = ChosenValidators.from_rows(node.validators(0))
    key = "0x" + after.registry.pubkeys[0].tobytes().hex()
    deposits = [
        {"pubkey": key, "withdrawal_credentials": "0x01" + "00" * 31, "amount": str(amount * ETH)}
        for amount in (32, 35)
    ]
    before = ChosenValidators.from_rows([])
    found = find_applied_deposits(before, after, deposits, withdrawn)
    assert found == [(place, 0) for place in applied]


@pytest.mark.parametrize(("slot", "penalty"), [(7, 32), (8, 31)])
def test_a_slashing_takes_a_part_of_the_effective_balance_at_its_slot(slot, penalty):
    """32 ETH in epoch 0, and 31 ETH from slot 8 on: the first slot of epoch 1."""
    node = HandMade([None])
    before, after = (ChosenValidators.from_rows(node.validators(0)) for _ in range(2))
    after.registry.effective_balances[0] = 31 * ETH
    header = {"signed_header_1": {"message": {"proposer_index": "0"}}}
    block = build_block(slot, proposer_slashings=[header])
    moves = BlockMoves(node.spec, before, after, [block]).find()
    assert moves == {slot: [BalanceMove("slashing_penalty", 0, -penalty * ETH // 32)]}


@pytest.mark.parametrize(
    ("signature", "moved"), [(NO_SIGNATURE, [-3 * ETH]), ("0x" + "ab" * 96, [])]
)
def test_deposits_requested_since_the_fork_to_electra_are_no_balance_before(signature, moved):
    node = HandMade([None])
    rows = ChosenValidators.from_rows(node.validators(0))
    key = "0x" + rows.registry.pubkeys[0].tobytes().hex()
    queue = [{"pubkey": key, "amount": str(3 * ETH), "signature": signature}]
    found = find_upgrade_moves(BlockMoves(node.spec, rows, rows, []), queue)
    assert [move.amount_gwei for move in found] == moved


@pytest.mark.parametrize(
    ("earlier", "penalty"),
    [
        pytest.param(EPOCH - VECTOR, 13, id="left the window"),
        pytest.param(EPOCH - VECTOR + 1, 27, id="first epoch of the window"),
        pytest.param(EPOCH, 27, id="this epoch"),
    ],
)
def test_the_correlation_penalty_counts_slashings_of_a_window(earlier, penalty):
    """Validator 0 is half-way to withdrawal; 7 of 9 validators are active, with 224 ETH.

    Slashed balances count threefold: 32 * 96 // 224 = 13 increments of 1 ETH; with those of
    validator 1 as well, 32 * 192 // 224 = 27.
    """
    node = HandMade([EPOCH - VECTOR // 2, earlier, *[None] * 7])
    if earlier == EPOCH:  # It is active until its exit.
        node.slashed_in.pop()
    rows = [ChosenValidators.from_rows(node.validators(8 * (EPOCH + n), [0])) for n in (0, 1)]
    moves, deposits = TransitionMoves(node).read(EPOCH + 1, BlockMoves(node.spec, *rows, []))
    assert moves == [BalanceMove("slashing_correlation", 0, -penalty * ETH)]
    assert deposits == []
