"""Invariants of rows: checked for every response, before any row is stored or returned."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import beaconframes as bf
from beaconframes import errors, v1, v2
from beaconframes.calendar import MAINNET
from beaconframes.endpoint import Call, Page, Request
from beaconframes.schema import Consecutive

from ..support.replay import replaying
from ..support.whole_records import whole

ENDPOINTS = {e.name: e for e in v1.ENDPOINTS} | {f"v2/{e.name}": e for e in v2.ENDPOINTS}
KEY = "0x" + "ab" * 48
ROOT = "0x" + "cd" * 32
ADDRESS, OTHER = "0x" + "5a" * 20, "0x" + "6b" * 20


def decode(name, *records, chain=MAINNET, **fields):
    """Return the rows of one response, checked; *fields* are those of the request."""
    table = ENDPOINTS[name].table
    names = {path for column in table.columns for path in column.wire_paths}
    known = ({k: v for k, v in one.items() if k != "proof" or k in names} for one in records)
    data = json.dumps([whole(table, record) for record in known]).encode()
    call = Call(Request("GET", "/"), (), {"eth1address": ADDRESS, "slot": {"number": 64}} | fields)
    context = {"range": b'{"epoch":{"start":1,"end":1}}'}
    fetched = [(call, Page(data, None, context))]
    rows = ENDPOINTS[name].decode(fetched, chain)
    ENDPOINTS[name].check_rows(fetched, rows, chain, {})
    return rows


@pytest.mark.parametrize(
    ("name", "record", "words"),
    [
        ("epoch_slots", {"slot": 64, "epoch": 3}, "slot 64 is not in epoch 3"),
        ("proposals", {"slot": 31, "epoch": 1}, "slot 31 is not in epoch 1"),
        ("slots", {"slot": 64, "epoch": 1}, "slot 64 is not in epoch 1"),
        ("execution_blocks", {"posConsensus": {"slot": 32, "epoch": 0}}, "slot 32"),
        ("bls_changes", {"slot": 64, "epoch": 3}, "slot 64 is not in epoch 3"),
        ("validator_withdrawals", {"slot": 64, "epoch": 3}, "slot 64 is not in epoch 3"),
        ("attestations", {"attesterslot": 64, "epoch": 3}, "attester_slot 64 is not in epoch 3"),
        ("slot_attestations", {"slot": 64, "target_epoch": 3}, "64 is not in target_epoch 3"),
        ("v2/slot", {"slot": 64, "epoch": 3}, "slot 64 is not in epoch 3"),
        ("v2/block", {"consensus_reference": {"slot": 64, "epoch": 3}}, "slot 64"),
        ("v2/block_rewards", {"consensus_reference": {"slot": 64, "epoch": 3}}, "slot 64"),
        ("validators", {"pubkey": KEY[:-2]}, "does not have 48 bytes"),
        ("deposits", {"publickey": KEY + "00"}, "does not have 48 bytes"),
        ("deposit_origin", {"public_key": "0xab"}, "does not have 48 bytes"),
        ("slot_deposits", {"publickey": "0x"}, "does not have 48 bytes"),
        ("v2/validators", {"validator": {"public_key": KEY[:-2]}}, "does not have 48 bytes"),
        ("v2/rewards", {"validator": {"public_key": KEY[:-2]}}, "does not have 48 bytes"),
        ("validators", {"balance": -1}, "balance_gwei is -1, a negative amount"),
        ("balance_history", {"effectivebalance": -1}, "effective_balance_gwei is -1"),
        ("deposits", {"amount": -1}, "amount_gwei is -1"),
        ("slot_withdrawals", {"amount": -1}, "amount_gwei is -1"),
        (
            "income_history",
            {"income": {"attestation_source_reward": -1}},
            "attestation_source_reward_gwei is -1, a negative amount",
        ),
        ("income_history", {"income": {"slashing_penalty": -1}}, "slashing_penalty_gwei is -1"),
        ("v2/rewards", {"total_penalty": "-3"}, "total_penalty_wei is -3"),
        ("v2/balances", {"balance": {"current": "-1"}}, "balance_wei is -1"),
        ("v2/validators", {"balances": {"effective": "-1"}}, "effective_balance_wei is -1"),
        ("gas_fees", {"standard": -1}, "standard_wei is -1"),
        ("epochs", {"votedether": -1}, "voted_ether_gwei is -1"),
        ("validator_queue", {"beaconchain_exiting_balance": -1}, "exiting_balance_gwei is -1"),
        ("yield_index", {"start_balances_sum_wei": -1}, "start_balances_sum_wei is -1"),
        ("slots", {"exec_base_fee_per_gas": -1}, "exec_base_fee_per_gas_wei is -1"),
        ("execution_blocks", {"baseFee": -1}, "base_fee_per_gas_wei is -1"),
        ("v2/block", {"transaction": {"gas": {"fees_burned": "-1"}}}, "fees_burned_wei is -1"),
        ("v2/block_rewards", {"mev": {"amount": "-1"}}, "mev_wei is -1"),
        ("v2/queues", {"exit_queue": {"balance": "-1"}}, "exit_balance_wei is -1"),
        (
            "v2/slot",
            {"queue_events": {"queued": {"deposit": {"amount": "-1"}}}},
            "queued_deposits_wei is -1",
        ),
        (
            "v2/slot_attestation_duties",
            {"reward": {"source": {"penalty": "-1"}}},
            "source_penalty_wei is -1",
        ),
        ("v2/slot_sync_committee_duties", {"reward": {"penalty": "-1"}}, "penalty_wei is -1"),
    ],
)
def test_a_row_that_contradicts_the_chain_is_refused(name, record, words):
    """G10: the message has the values, and the key of the row."""
    with pytest.raises(errors.IntegrityError, match=words) as refused:
        decode(name, record)

    assert "row with the key {" in str(refused.value)


def test_the_epoch_of_a_slot_depends_on_the_chain():
    """G10: a chain may have other epochs than mainnet."""
    short = replace(MAINNET, name="short", slots_per_epoch=8)

    assert 1 == decode("slots", {"slot": 64, "epoch": 8}, chain=short).height
    with pytest.raises(errors.IntegrityError):
        decode("slots", {"slot": 64, "epoch": 2}, chain=short)


def test_null_contradicts_nothing():
    """G10: a block before the merge has no slot, an income may be a loss."""
    assert [None] == decode("execution_blocks", {"posConsensus": None})["slot"].to_list()
    assert [-5] == decode("leaderboard", {"performance1d": -5})["performance_1d_gwei"].to_list()


LISTS = [name for name, e in ENDPOINTS.items() if "block_index" in e.table.schema()]
"""The loaders of the items of a block, which the service numbers."""


def item(number, slot=64, root=ROOT):
    """Return an item of a block."""
    return {"block_slot": slot, "block_root": root, "block_index": number, "proof": None}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("numbers", [[0, 2], [0, 1, 3], [1, 2], [0, 1, 2, 4, 5]])
def test_a_numbered_list_without_an_item_is_refused(name, order, numbers):
    """G8: the numbers of a block's items begin with 0 and have no gap."""
    with pytest.raises(errors.IntegrityError, match="an item is missing"):
        decode(name, *(item(number) for number in numbers[::order]))


@pytest.mark.parametrize("name", LISTS)
def test_whole_lists_of_several_blocks_are_accepted(name):
    """G8: each block has its own numbers, also an orphaned one; a repeated item is no gap."""
    records = [item(n) for n in (2, 0, 1, 1)] + [item(n, root="0x" + "01" * 32) for n in (0, 1)]

    assert 8 == decode(name, *records, item(0, slot=65), item(1, slot=65)).height


def test_withdrawals_of_a_block_have_consecutive_numbers():
    """G8: they are counted over the whole chain, so that a block may begin with any number."""
    records = [{"block_slot": 64, "withdrawalindex": n} for n in (7, 8, 9)]

    assert 3 == decode("slot_withdrawals", *records).height
    with pytest.raises(errors.IntegrityError, match="withdrawal_index of block_slot 64 have a gap"):
        decode("slot_withdrawals", records[0], records[2])


def test_every_list_of_a_block_declares_its_numbers():
    """G8: a table with a block_index has the invariant."""
    assert {"slot_attestations", "slot_deposits", "voluntary_exits"} <= {*LISTS}
    for name in LISTS:
        assert any(isinstance(rule, Consecutive) for rule in ENDPOINTS[name].table.invariants), name


@pytest.mark.parametrize("count", [300, 513])
def test_a_sync_committee_without_all_seats_is_refused(count, tmp_path):
    """G8: the seats after a missing one would belong to other validators; nothing is stored."""
    data = {"period": 1, "start_epoch": 256, "end_epoch": 511, "validators": [*range(count)]}
    state = whole(ENDPOINTS["latest_state"].table, {
        "currentEpoch": 600, "currentSlot": 19200, "currentFinalizedEpoch": 598})  # fmt: skip
    replies = {
        "GET /api/v1/latestState": json.dumps(state).encode(),
        "*": json.dumps({"status": "OK", "data": data}).encode(),
    }

    with (
        replaying(replies) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000, store=tmp_path / "store") as explorer,
    ):
        with pytest.raises(errors.IntegrityError, match="period 1 does not have 512 seats"):
            bf.load_sync_committees(1, explorer=explorer)
        assert bf.store(explorer).tables().is_empty()


@pytest.mark.parametrize(
    "load",
    [
        bf.load_gas_fees,
        bf.load_latest_state,
        bf.load_validator_queue,
        bf.load_pool_stats,
        lambda **o: bf.load_proposal_luck(1, **o),
        bf.load_yield_index,
        bf.v2.load_queues,
        bf.v2.load_state,
        bf.v2.load_config,
        lambda **o: bf.v2.load_network_performance("24h", **o),
        lambda **o: bf.v2.load_rewards_aggregate(1, window="24h", **o),
        lambda **o: bf.v2.load_apy_roi(1, window="24h", **o),
    ],
)
def test_a_reading_always_has_a_row(load):
    """G8: an empty list where there is always one record is an error, not an empty frame."""
    replies = {"*": b'{"status": "OK", "code": 200, "data": []}'}

    with (
        replaying(replies) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(errors.NotFound, match="no record"),
    ):
        load(explorer=explorer)


@pytest.mark.parametrize("requested", [ADDRESS, ADDRESS.upper().replace("X", "x")])
def test_the_address_of_a_lookup_is_the_requested_one(requested):
    """G10: the response to an address repeats it; that to a name has any address."""
    right = {"address": ADDRESS.upper().replace("X", "x"), "domain": ""}
    wrong = {"address": OTHER, "domain": "someone.eth"}

    assert 1 == decode("names", right, domain=requested).height
    assert 1 == decode("names", wrong, domain="someone.eth").height
    with pytest.raises(errors.IntegrityError, match=f"{OTHER} is not the requested"):
        decode("names", wrong, domain=requested)
