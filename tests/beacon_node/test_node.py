"""Loads from a beacon node: the frames of a complete index, the chain's own values, requests."""

from __future__ import annotations

import json
import lzma
from contextlib import closing

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.index.indexing import index
from beaconframes.errors import NotServed

from ..support.beacon_node_stub import FOLDER, BeaconNodeStub

UNTIL = 6
CHOSEN = [1, 2, 14]


@pytest.fixture(scope="module", params=["capella", pytest.param("electra", marks=pytest.mark.more)])
def chain(request, tmp_path_factory):
    """A stub, an index of its first epochs, and the expected values."""
    folder = tmp_path_factory.mktemp("index") / request.param
    text = lzma.decompress((FOLDER / f"{request.param}-expected.json.xz").read_bytes())
    with BeaconNodeStub(request.param) as stub:
        index(stub.url, folder, until=UNTIL)
        yield stub, folder, json.loads(text)


LOADS = {
    "income": lambda: bf.load_income_history(CHOSEN, since=2, until=5),
    "balances": lambda: bf.load_balance_history(CHOSEN, since=2, until=5),
    "attestations": lambda: bf.load_attestations(CHOSEN, since=2, until=3),
    "withdrawals": lambda: bf.load_validator_withdrawals(range(16), since=0, until=5),
    "blocks": lambda: bf.load_epoch_slots(since=2, until=3),
    "slots": lambda: bf.load_slots([17, 40]),
    "slot_attestations": lambda: bf.load_slot_attestations([17, 18]),
    "wall": lambda: bf.load_graffiti_wall(since=0, until=40),
    "sync_committees": lambda: bf.load_sync_committees([0]),
    "balances_v2": lambda: bf.v2.load_balances(CHOSEN, since=2, until=3),
    "rewards_v2": lambda: bf.v2.load_rewards(CHOSEN, since=2, until=3),
    "performance_v2": lambda: bf.v2.load_performance(CHOSEN, since=2, until=3),
}


@pytest.mark.more
def test_frames_equal_those_of_an_index(chain):
    stub, folder, _ = chain
    with bf.node(stub.url, store=False):
        direct = {name: load() for name, load in LOADS.items()}
    with bf.local(folder):
        indexed = {name: load() for name, load in LOADS.items()}
    for name, frame in direct.items():
        assert frame.height > 0, name
        assert frame.equals(indexed[name]), name


def test_amounts_are_those_of_the_specification(chain):
    stub, _, expected = chain
    with bf.node(stub.url, store=False):
        income = bf.load_income_history(CHOSEN, since=2, until=4)
        balances = bf.load_balance_history(CHOSEN, since=2, until=4)
    for row in income.iter_rows(named=True):
        rewards = expected["attestation_rewards_of_duty_epoch"][str(row["epoch"])]
        validator = row["validator_index"]
        assert rewards["head"][validator] == row["attestation_head_reward_gwei"]
        for flag in ("source", "target"):
            net = row[f"attestation_{flag}_reward_gwei"] - row[f"attestation_{flag}_penalty_gwei"]
            assert rewards[flag][validator] == net
        assert rewards["inactivity"][validator] == -row["finality_delay_penalty_gwei"]
    for epoch, validator, balance in balances.select(
        "epoch", "validator_index", "balance_gwei"
    ).iter_rows():
        name = "balance_first_slot_post_block"
        assert expected[name][str(epoch)][validator] == balance


@pytest.mark.more
def test_stored_epochs_are_not_requested_again(chain, tmp_path):
    stub, _, _ = chain
    for _ in range(2):
        with bf.node(stub.url, store=tmp_path):
            stub.counts.clear()
            bf.load_income_history(CHOSEN, since=3, until=4)
            requested = stub.counts["/eth/v2/beacon/blocks/{block_id}"]
            bf.load_balance_history([7], since=3, until=4)
            assert requested == stub.counts["/eth/v2/beacon/blocks/{block_id}"]
    assert requested == 0


def test_what_a_node_cannot_answer_is_refused_by_name(chain):
    stub, _, _ = chain
    with bf.node(stub.url, store=False) as node:
        with pytest.raises(NotServed, match="names are not part of the beacon chain"):
            bf.load_names(["vitalik.eth"])
        with pytest.raises(NotServed, match="needs an execution node"):
            bf.load_gas_fees()
        with pytest.raises(NotServed, match=r"load_chart returns a picture.*bf\.plot draws charts"):
            bf.load_chart("validators")
        assert "odestar" in repr(node)


def test_epochs_that_are_not_final_are_read_again(chain):
    """The head advances: rows of epochs that were not final are replaced."""
    stub, _, _ = chain
    with bf.node(stub.url, store=False) as node:
        head = node.index.head
        assert head.finalized_epoch < head.epoch
        bf.load_balance_history([1], since=head.epoch, until=head.epoch)
        stored = node.index.chain_index.dataset
        assert stored.scan("balance_history").select(pl.len()).collect().item() > 0
        node.index.chain_index.remove_unsettled()
        assert stored.coverage("balance_history") == {}


@pytest.mark.more
def test_fees_are_those_of_the_execution_node(tmp_path):
    expected = json.loads(lzma.decompress((FOLDER / "capella-expected.json.xz").read_bytes()))
    first, last = 3, 4
    fees = {
        block: int(wei)
        for slot, block, *_, wei in expected["execution_fees"]
        if first <= slot // 8 <= last
    }
    with (
        BeaconNodeStub("capella") as stub,
        bf.node(stub.url, execution=stub.execution_url, store=tmp_path),
    ):
        income = bf.load_income_history(range(16), since=first, until=last)
        blocks = bf.load_produced_blocks(range(16))
    assert sum(fees.values()) == income["tx_fee_reward_wei"].sum()
    rewards = dict(blocks.select("block_number", "block_reward_wei").iter_rows())
    assert fees == {block: int(rewards[block]) for block in fees}


@pytest.mark.more
def test_fees_are_unknown_without_an_execution_node(chain):
    stub, _, _ = chain
    with bf.node(stub.url, store=False):
        income = bf.load_income_history(range(16), since=3, until=3)
        blocks = bf.load_epoch_slots(since=3, until=3)
        with pytest.raises(NotServed, match="execution"):
            bf.load_execution_blocks([3])
    proposers = set(blocks.filter(status="proposed")["proposer_index"])
    assert proposers
    for validator, fees in income.select("validator_index", "tx_fee_reward_wei").iter_rows():
        assert fees == (None if validator in proposers else 0)


def test_tables_of_an_index_explain_its_balances(chain):
    """The call of docs/own-node.md: with the tables of an index, all changes are explained."""
    stub, folder, _ = chain
    with closing(BeaconApi(NodeSession(stub.url))) as api:
        clock = api.chain_spec.chain
    index_of = bf.Dataset.open(folder)
    events = [index_of.scan("deposit_events"), index_of.scan("transfer_events")]
    moves = [table.select("validator_index", "slot", "amount_gwei") for table in events]
    paid_out = ["withdrawal", "deposit", "switch_to_compounding"]
    with bf.local(folder):
        changes = bf.analysis.reconcile(
            bf.load_balance_history(range(16), since=0),
            bf.load_income_history(range(16), since=0),
            slot_income=index_of.scan("slot_income").filter(~pl.col("kind").is_in(paid_out)),
            withdrawals=bf.load_validator_withdrawals(range(16), since=0),
            deposits=pl.concat(moves),
            chain=clock,
        )
    assert changes.height == 16 * (UNTIL - 1)
    assert changes["change_gwei"].abs().sum() > 0
    assert changes["unexplained_gwei"].abs().sum() == 0
