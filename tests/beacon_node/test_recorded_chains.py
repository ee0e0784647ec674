"""Whole recorded chains: all cells equal the specification, and every gwei is explained."""

from __future__ import annotations

import json
import lzma
from itertools import chain

import pytest

import beaconframes as bf
from beaconframes.beacon_node.indexing import index

from ..support.beacon_node_stub import FOLDER, BeaconNodeStub

CHAINS = {"altair": 37, "capella": 58, "electra": 47}
"""The last duty epoch whose rewards are expected."""


@pytest.mark.parametrize(
    "name",
    [
        # Tests of rewards compare the cells of the older chains as well.
        pytest.param("altair", marks=pytest.mark.long),
        pytest.param("capella", marks=pytest.mark.long),
        pytest.param("electra", marks=pytest.mark.more),
    ],
)
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
