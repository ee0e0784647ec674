"""Whole recorded chains: all cells equal the specification, and every gwei is explained."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from itertools import chain

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.beacon_node.amounts.states import StateAmounts
from beaconframes.beacon_node.index.indexing import index
from beaconframes.beacon_node.tables import INDEXED_TABLES
from beaconframes.dataset import Dataset

from ..support.beacon_node_faults import MoreBalance
from ..support.beacon_node_stub import FOLDER, BeaconNodeStub
from .test_route_amounts import open_amounts

CHAINS = {"altair": 37, "capella": 58, "electra": 47, "forks": 69}
"""The last duty epoch whose rewards are expected."""


@pytest.mark.long  # Tests of rewards compare fewer epochs of these chains.
@pytest.mark.parametrize("name", CHAINS)
def test_all_cells_equal_the_specification(name, tmp_path):
    expected = json.loads(lzma.decompress((FOLDER / f"{name}-expected.json.xz").read_bytes()))
    if name == "altair":
        rewards = expected["attestation_rewards_gwei"]
        balances = {int(slot) // 8: b for slot, b in expected["balance_after_block_gwei"].items()}
    else:
        rewards = expected["attestation_rewards_of_duty_epoch"]
        by_epoch = expected["balance_first_slot_post_block"]
        balances = {int(epoch): listed for epoch, listed in by_epoch.items()}
    validators = range(max(map(len, balances.values())))
    with BeaconNodeStub(name) as stub:
        verdicts = index(stub.url, tmp_path / "index", until=CHAINS[name])
        assert set(verdicts["status"]) <= {"explained", "unverified"}
        assert verdicts.filter(status="unverified")["epoch"].to_list() in ([], [CHAINS[name]])
        with bf.local(tmp_path / "index"):
            income = bf.load_income_history(validators, since=0)
            history = bf.load_balance_history(validators, since=0)
            duties = bf.load_attestations(validators, since=0)
        with bf.node(stub.url, store=False) as node:
            last = node.index.head.finalized_epoch
            own = bf.load_income_history(validators, since=0, until=last)
            assert own.equals(income.filter(income["epoch"] <= last))
    assert income["epoch"].n_unique() == history["epoch"].n_unique() == CHAINS[name] + 1
    assert duties["epoch"].n_unique() == CHAINS[name] + 1
    found = {}
    for row in income.iter_rows(named=True):
        found[row["epoch"], row["validator_index"]] = (
            row["attestation_source_reward_gwei"] - row["attestation_source_penalty_gwei"],
            row["attestation_target_reward_gwei"] - row["attestation_target_penalty_gwei"],
            row["attestation_head_reward_gwei"],
            -row["finality_delay_penalty_gwei"],
        )
    for epoch in range(CHAINS[name] + 1):
        parts = [rewards[str(epoch)][part] for part in ("source", "target", "head", "inactivity")]
        for validator, amounts in enumerate(zip(*parts, strict=True)):
            # A validator without duties has no row, and no rewards.
            assert found.pop((epoch, validator), (0, 0, 0, 0)) == amounts
    assert not any(chain.from_iterable(found.values()))
    for validator, epoch, balance in history.select(
        "validator_index", "epoch", "balance_gwei"
    ).iter_rows():
        assert balances[epoch][validator] == balance


def index_window(stub, folder, first, last):
    """Index some epochs; return their verdicts, and the rows of each table."""
    verdicts = index(stub.url, folder, since=first, until=last)
    dataset = Dataset.open(folder)
    return verdicts, {name: dataset.scan(name).collect() for name in dataset.grids()}


def check_windows(name, starts, length, tmp_path, faults=(), whole=None):
    """Compare indexes that begin at each of *starts* with one that begins before all of them.

    An index that begins later has the same verdicts, and of the same epochs the same rows.
    """
    last = min(max(starts) + length, CHAINS[name])
    first = min(starts) if whole is None else whole
    with BeaconNodeStub(name, faults=faults) as stub:
        verdicts, tables = index_window(stub, tmp_path / "whole", first, last)
        for start in starts:
            until = min(start + length, last)
            found, rows = index_window(stub, tmp_path / str(start), start, until)
            assert found.equals(verdicts.filter(pl.col("epoch").is_between(start, until)))
            for table, expected in tables.items():
                check_rows(table, expected, rows[table], start, until)
    return verdicts


def check_rows(table, expected, found, first, last):
    """Compare the rows of some epochs; balances are compared up to two epochs later."""
    if table == "sync_committees":
        return
    unit = INDEXED_TABLES[table].unit
    if table == "unexplained_changes":
        last += 2
    ends = (first, last) if unit == "epoch" else (first * 8, last * 8 + 7)
    expected = expected.filter(pl.col(unit).is_between(*ends)).sort(expected.columns[:4])
    found = found.filter(pl.col(unit).is_between(*ends)).sort(found.columns[:4])
    assert found.equals(expected), (table, first)


ROUTES = [
    pytest.param([], id="states"),
    pytest.param(["debug-forbidden"], id="routes", marks=pytest.mark.more),
]
"""Faults of the node: it has states, or only its rewards routes."""
EVERY_START = {"altair": 36, "capella": 57, "electra": 45, "forks": 67}
"""The last epoch at which an index can begin."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "starts"),
    [
        pytest.param("forks", (8, 9), id="equal deposits"),
        pytest.param("electra", (1, 3), id="fork"),
        pytest.param("capella", (44,), id="correlation penalties"),
        *(pytest.param(name, range(1, end + 1), id=f"{name} at every epoch")
          for name, end in EVERY_START.items()),
    ],
)  # fmt: skip
def test_an_index_that_begins_later_has_the_same_verdicts_and_rows(name, starts, tmp_path):
    verdicts = check_windows(name, starts, 3, tmp_path, whole=max(min(starts) - 2, 0))
    assert set(verdicts["status"]) <= {"explained", "unverified"}
    assert verdicts.filter(status="unverified")["epoch"].to_list() in ([], [CHAINS[name]])


@pytest.mark.more
def test_a_wrong_balance_of_a_new_validator_is_unexplained_from_every_start(tmp_path):
    """Validator 105 exists since the end of epoch 9, with 35 ETH; its node states 1 gwei more."""
    fault = MoreBalance((105, 10 * 8, 1))
    verdicts = check_windows("forks", (8, 9), 2, tmp_path, [fault], whole=7)
    status = dict(verdicts.select("epoch", "status").iter_rows())
    assert {epoch for epoch in status if status[epoch] == "unexplained"} == {8, 9, 10}


@pytest.mark.more
@pytest.mark.parametrize("faults", ROUTES)
def test_a_wrong_balance_of_a_chosen_validator_is_unexplained(tmp_path, faults):
    """Validator 105 does not exist in epochs 8 and 9, and 4 is not chosen."""
    wrong = MoreBalance((105, 10 * 8, 1), (4, 11 * 8, 1))
    with BeaconNodeStub("forks", faults=[*faults, wrong]) as stub:
        verdicts = index(stub.url, tmp_path / "a", validators=[3, 105], since=8, until=12)
        changes = Dataset.open(tmp_path / "a").scan("unexplained_changes").collect()
    status = dict(verdicts.select("epoch", "status").iter_rows())
    assert {epoch for epoch in status if status[epoch] != "explained"} == {8, 9, 10}
    assert changes.select("validator_index", "epoch", "unexplained_gwei").rows() == [(105, 10, 1)]


@pytest.mark.parametrize(
    ("left", "withdrawn", "expected"), [(35, 0, [35]), (32, 3, [35]), (32, 35, [32, 35])]
)
def test_withdrawals_since_a_deposit_belong_to_what_was_received(left, withdrawn, expected):
    """Validator 105, with deposits of 32 and 35 ETH at the end of epoch 9, before epoch 10."""
    with open_amounts("forks", StateAmounts) as (_, amounts):
        after, blocks = amounts.state(10), amounts.reader.block_messages(10)
        balances = after.balances.copy()
        balances[105] = left * 10**9
        amounts.reader._states.remove(10)
        amounts.reader._states.get(10, lambda: replace(after, balances=balances))
        payload = next(iter(blocks.values()))["body"]["execution_payload"]
        amount = str(withdrawn * 10**9)
        payload["withdrawals"].append({"validator_index": "105", "amount": amount})
        deposits = amounts.transition(9).deposits
    found = [row.amount_gwei for row in deposits if row.validator_index == 105]
    assert found == [amount * 10**9 for amount in expected]


@pytest.mark.parametrize("faults", ROUTES)
def test_a_deposit_after_one_with_an_invalid_signature_counts_once(tmp_path, faults):
    """Both have the key and the address of validator 105, whose balance is 35 ETH."""
    with BeaconNodeStub("forks", faults=faults) as stub:
        verdicts = index(stub.url, tmp_path / "index", since=8, until=10)
        dataset = Dataset.open(tmp_path / "index")
    assert set(verdicts["status"]) == {"explained"}
    deposits = dataset.scan("deposit_events").filter(pl.col("validator_index") == 105).collect()
    assert deposits["amount_gwei"].to_list() == [35 * 10**9]
