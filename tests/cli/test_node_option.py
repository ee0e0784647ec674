"""`--node`: commands load from a beacon node."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from beaconframes.cli import commands

from ..support.beacon_node_faults import MoreBalance
from ..support.beacon_node_stub import BeaconNodeStub

LOAD = ("load", "income-history", "--validators", "1,3", "--since", "44", "--until", "44")


def run(*arguments, **environment):
    """Run a command in this process."""
    return CliRunner().invoke(commands, [*map(str, arguments)], env=environment)


@pytest.fixture(scope="module")
def node():
    """A node with the recorded Electra chain."""
    with BeaconNodeStub("electra") as stub:
        yield stub


@pytest.fixture(scope="module")
def store(tmp_path_factory, node):
    """A store with the income of epoch 44, and the rows as JSON."""
    folder = tmp_path_factory.mktemp("store")
    result = run(*LOAD, "--node", node.url, "--store", folder, "--json")
    assert result.exit_code == 0, result.stderr
    return folder, json.loads(result.stdout)["data"]


@pytest.mark.more
def test_rows_come_from_the_node(node, store):
    """Each epoch is requested once: the second load has the same rows without its blocks."""
    folder, rows = store
    assert [(row["validator_index"], row["epoch"]) for row in rows] == [(1, 44), (3, 44)]
    blocks = node.counts["/eth/v2/beacon/blocks/{block_id}"]
    again = run(*LOAD, "--node", node.url, "--store", folder, "--json")
    assert json.loads(again.stdout)["data"] == rows
    assert node.counts["/eth/v2/beacon/blocks/{block_id}"] <= blocks + 2


@pytest.mark.more
def test_rows_that_balances_do_not_confirm_have_the_exit_code_of_missing_rows():
    """From slot 352 on, in epoch 44, the node states 1 gwei too much: the rows are printed."""
    with BeaconNodeStub("electra", faults=[MoreBalance((3, 352, 1))]) as node:
        result = run(*LOAD, "--node", node.url, "--no-store", "--json")
        refused = run(*LOAD, "--node", node.url, "--no-store", "--json", "--strict")
    assert result.exit_code == 3
    assert len(json.loads(result.stdout)["data"]) == 2
    assert "balances do not confirm these rows: +1 gwei of validator 3 in epoch 44" in result.stderr
    assert refused.exit_code == 3
    assert refused.stdout == ""


def test_an_option_without_an_address_takes_that_of_the_environment(node, store):
    """`--node` alone is the address of BEACONFRAMES_NODE, and overrides BEACONFRAMES_LOCAL."""
    environment = {"BEACONFRAMES_NODE": node.url, "BEACONFRAMES_LOCAL": "1"}
    options = ("--node", "--store", store[0], "--json")
    result = run(*LOAD, *options, **environment)
    assert json.loads(result.stdout)["data"] == store[1], result.stderr


def test_a_plan_and_a_quota_name_the_node(node, store):
    """Both know the node: it has no quota, and stored epochs need no request."""
    options = ("--node", node.url, "--store", store[0])
    planned = run("plan", *LOAD[1:], *options, "--json")
    assert json.loads(planned.stdout)["requests"] == 0, planned.stdout
    assert "your own node has no quota" in run("quota", *options).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--node",), "no node is given. Give its address with --node, or set BEACONFRAMES_NODE"),
        (("--node", "localhost:5052"), "does not start with http"),
        (("--node", "http://a", "--chain", "hoodi"), "--node and --chain exclude each other"),
        (("--node", "http://a", "--local"), "--node and --local exclude each other"),
        (("--node", "http://a", "--dataset", "b"), "--node and --dataset exclude each other"),
        (("--local", "--execution", "http://a"), "--local and --execution exclude each other"),
        (("--execution", "http://a"), "--execution is given without --node"),
        (("--node", "http://a", "--store", "b", "--no-store"), "--store and --no-store exclude"),
    ],
)
def test_options_that_exclude_each_other(options, message):
    """Each message names both options, or what is missing."""
    result = run(*LOAD, *options)
    assert result.exit_code == 2
    assert message in result.stderr
