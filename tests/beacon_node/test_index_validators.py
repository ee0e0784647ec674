"""The validators of an index: indices and public keys, as loaders take them."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest

import beaconframes as bf
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.index.arguments import resolve_validators
from beaconframes.errors import UsageError

from ..support.beacon_node_stub import BeaconNodeStub

UNKNOWN = "0x" + "ab" * 48


@pytest.fixture(scope="module")
def node():
    """A node with 73 validators at its head."""
    with BeaconNodeStub("electra") as stub:
        yield stub


@pytest.fixture(scope="module")
def connection(node):
    """A connection to the node."""
    with closing(NodeConnection(node.url)) as opened:
        yield opened


@pytest.fixture(scope="module")
def keys(node):
    """The public keys of the validators, in the order of their indices."""
    rows = json.loads(node.recording.validators(node.head))["data"]
    return [row["validator"]["pubkey"] for row in rows]


def test_indices_and_keys_in_any_form(connection, keys):
    """One or many, with or without 0x, in either case, and lists and ranges as texts."""
    assert len(keys) == 73
    upper = f"0x{keys[2][2:].upper()}"
    for given, expected in (
        (None, None),
        (7, [7]),
        ("12", [12]),
        ("1,5-7", [1, 5, 6, 7]),
        (range(70, 73), [70, 71, 72]),
        ([72, keys[1][2:], upper, "1", 1], [1, 2, 72]),
        (keys[3], [3]),
    ):
        assert expected == resolve_validators(connection, given)


@pytest.mark.parametrize(
    "given", [[-1], [3, "-1"], [1.9], [True], ["²"], [-(2**70)], [2**70], ["abc"], [None]]
)
def test_what_is_no_validator_is_the_error_of_loaders(connection, given):
    """A negative index stored the last validator, 1.9 and True stored validator 1."""
    with pytest.raises(UsageError) as expected:
        bf.plan(bf.load_income_history, given, since=0, until=0)
    with pytest.raises(UsageError) as found:
        resolve_validators(connection, given)

    assert str(expected.value) == str(found.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1, 5000], "does not know 1 of the validators: 5000"),
        ([1, 72, 73, 74, 2**31 - 2], "does not know 3 of the validators: 73, 74, 2147483646"),
        ([1, UNKNOWN], f"does not know 1 of the validators: {UNKNOWN}"),
        pytest.param(
            *(range(70, 1_000_000), "does not know 999,927 of the validators: 73, 74, 75, ..."),
            marks=pytest.mark.more,
        ),
        ([UNKNOWN, 73], f"does not know 2 of the validators: 73, {UNKNOWN}"),
        ([], "no validators are given"),
    ],
)
def test_validators_that_the_node_does_not_know(node, connection, given, words):
    """An index without their rows would look complete."""
    before = sum(node.counts.values())
    with pytest.raises(UsageError, match=re.escape(words)):
        resolve_validators(connection, given)

    assert sum(node.counts.values()) - before < 50


@pytest.mark.more
def test_an_index_has_one_validator_by_its_number(node, tmp_path):
    """`index` and `follow` take one validator without a list, as loaders do."""
    bf.index(node.url, tmp_path / "index", validators=7, until=1, tables=["income_history"])

    with bf.open(tmp_path / "index"):
        assert [7] == bf.load_validators([7])["validator_index"].to_list()
    with pytest.raises(UsageError, match="does not know 1 of the validators: 5000"):
        bf.index(node.url, tmp_path / "refused", validators=[1, 5000], until=1)
    assert not (tmp_path / "refused").exists()
