"""`beaconframes index`: the chain of a node as a dataset, from the command line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module

import polars as pl
import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.tables import INDEXED_TABLES
from beaconframes.beacon_node.tables.balance_moves import UnexplainedChanges
from beaconframes.cli import commands
from beaconframes.dataset import Dataset

from ..support.beacon_node_faults import Fault
from ..support.beacon_node_stub import BeaconNodeStub


def run(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(commands, ["index", *map(str, arguments)])


@pytest.fixture(scope="module")
def node():
    """A node with the recorded Capella chain."""
    with BeaconNodeStub("capella") as stub:
        yield stub


@pytest.fixture(scope="module")
def first_run(node, tmp_path_factory):
    """The folder of an index of epochs 0 and 1, and the result of the command.

    The environment has an execution node, which belongs to another node.
    """
    folder = tmp_path_factory.mktemp("index") / "capella"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEACONFRAMES_EXECUTION", "http://127.0.0.1:9")
        return folder, run("--node", node.url, "--out", folder, "--until", 1)


@pytest.fixture
def folder(first_run, tmp_path):
    """A copy of the index."""
    return shutil.copytree(first_run[0], tmp_path / "capella")


def test_the_summary_has_epochs_size_and_cost(first_run, node):
    """The epochs, their size, what they cost, and what the node cannot answer."""
    folder, result = first_run
    assert (0, "") == (result.exit_code, result.stderr)
    first, *absent, size, verdict = result.stdout.splitlines()
    sent = sum(node.counts.values())
    assert f"2 epochs added with {sent} requests" == first
    assert any("names: names are not part of the beacon chain" in line for line in absent)
    assert any("gas_fees" in line and "an execution node as --execution" in line for line in absent)
    sizes = Dataset.open(folder).tables()
    rows = sum(size.rows for size in sizes.values())
    assert f"{folder} (minimal): 2 epochs (0-1), {rows:,} rows in {len(sizes)} tables" in size
    assert "2 explained, 0 unexplained, 0 unverified" == verdict
    listed = {name for line in absent for name in line.split(": ")[1].split(", ")}
    assert not listed & {name for name, size in sizes.items() if size.rows}


def test_stored_epochs_are_not_requested_again(folder, node, monkeypatch):
    """Stored epochs are not requested again, and each new epoch has its verdict.

    Credentials in the environment are sent, and shown nowhere.
    """
    monkeypatch.setenv("BEACONFRAMES_NODE", node.url.replace("://", "://alice:ZEBRA-9f86@"))
    before = len(node.log)

    result = run("--out", folder, "--until", 2, "--json", "--debug")

    report = json.loads(result.stdout)
    assert (0, [[0, 2]]) == (result.exit_code, report["epochs"])
    assert (3, 0, 0) == tuple(report[name] for name in ("explained", "unexplained", "unverified"))
    assert set(Dataset.open(folder).tables()) == set(report["tables"])
    log = node.log[before:]
    assert (1, len(log)) == (report["added_epochs"], report["requests"])
    states = [line for line in log if "/debug/beacon/states/" in line]
    # Epoch 2 needs the states at the end of the epoch before it, and of those up to epoch 4. Two
    # requests find the oldest state.
    assert {15, 23, 31, 39} == {int(line.rpartition("/")[2]) for line in states[2:]}
    assert "authorization" in node.requests[-1].headers
    assert "ZEBRA" not in result.output + json.dumps(Dataset.open(folder).meta)


def test_check_without_a_node(folder, monkeypatch):
    """--check reads the verdicts of an index; an unexplained gwei ends it with status 1."""
    monkeypatch.setenv("BEACONFRAMES_NODE", "http://127.0.0.1:9")
    explained = run("--out", folder, "--check")
    changes = pl.DataFrame(
        {"validator_index": [3, 5], "epoch": [1, 1], "unexplained_gwei": [-7, 2]}
    )
    changes = changes.select(
        pl.col(name).cast(dtype) if name in changes.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in UnexplainedChanges.schema().items()
    )
    dataset = Dataset.open(folder)
    dataset.prune("unexplained_changes", first=1)
    with dataset.writing() as writer:
        grid = INDEXED_TABLES["unexplained_changes"].grid(chosen=False)
        writer.add_covered("unexplained_changes", changes, grid, {"": ((1, 3),)})

    unexplained = run("--out", folder, "--check")
    report = json.loads(run("--out", folder, "--check", "--json").stdout)

    assert (0, "") == (explained.exit_code, explained.stderr)
    assert "2 explained, 0 unexplained" in explained.stdout
    assert 1 == unexplained.exit_code
    assert ["1", "9", "2", "3,", "5"] == unexplained.stdout.splitlines()[-1].split()
    # The change of epoch 1 concerns the income of epochs 0 and 1.
    assert unexplained.stderr.startswith(
        "beaconframes: 2 epochs are unexplained: balances of 2 validators changed by 9 gwei more "
        "or less than their income in epochs 1"
    )
    assert [(1, 3, -7), (1, 5, 2)] == [
        (row["epoch"], row["validator_index"], row["unexplained_gwei"]) for row in report["data"]
    ]


def test_usage_errors_create_no_folder(tmp_path, node):
    """What is missing or wrong is named; no folder is created."""
    out = tmp_path / "new"
    validators = tmp_path / "validators.txt"
    validators.write_text("1, 2 # mine\nx\n")
    other = Dataset.create(tmp_path / "other", meta={})
    cases = (
        (2, "no node is given. Give its address with --node", ("--out", out)),
        (9, "does not exist", ("--out", tmp_path / "absent", "--check")),
        (9, "was not indexed from a node", ("--out", other.path, "--check")),
        (2, f"line 2 of {validators}", ("--node", node.url, "--out", out, "--validators",
                                        validators)),
        (2, "--follow and --until exclude each other", ("--node", node.url, "--out", out,
                                                        "--follow", "--until", 3)),
        (2, "'nothing' is not a table of an index", ("--node", node.url, "--out", out,
                                                     "--tables", "nothing")),
    )  # fmt: skip
    for code, message, arguments in cases:
        result = run(*arguments)
        assert (code, 1) == (result.exit_code, len(result.stderr.splitlines()))
        assert message in result.stderr
    assert not out.exists()


def test_nodes_of_other_kinds(tmp_path):
    """A node is an address or an open node, which has its execution node already."""
    with pytest.raises(bf.errors.UsageError, match="5052 is not a node"):
        bf.index(5052, tmp_path / "index")
    with pytest.raises(bf.errors.UsageError, match="execution= is given beside an open node"):
        bf.index(NodeConnection("http://node"), tmp_path / "index", execution="http://node:8545")


@pytest.mark.more
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("option", [(), ("--follow",)])
def test_ctrl_c_ends_an_index_with_a_report(tmp_path, option):
    """Also while the node does not answer; the stored epochs are complete, and can be continued."""
    out, released = tmp_path / "index", threading.Event()

    class Hold(Fault):
        """The node sends no block of epoch 6 before the process has ended."""

        def refuse(self, node, request):
            if "/blocks/" in request.route and request.args["block_id"] == "50":
                released.wait(60)

    with BeaconNodeStub("capella", faults=[Hold()]) as stub:
        command = [sys.executable, "-m", "beaconframes", "index", "--node", stub.url, *option]
        with subprocess.Popen(
            [*command, "--out", out], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            ledger = Dataset(out)
            while not (out / "ledger.sqlite").exists() or "blocks" not in ledger.tables():
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            output, stopped = process.communicate(timeout=60)
            released.set()

        stored = ledger.coverage("blocks")[""]
        again = run("--node", stub.url, "--out", out, "--until", stored[0][1], "--json")

    assert 130 == process.returncode
    assert 1 == stopped.count("beaconframes: ")
    assert "stopped; the stored epochs are complete; run the same command again" in stopped
    assert 0 == stored[0][0] <= stored[0][1] < 6
    assert f"{stored[0][1] + 1} explained, 0 unexplained" in output
    assert 0 == json.loads(again.stdout)["added_epochs"]


def test_ctrl_c_before_the_first_epoch(node, tmp_path, monkeypatch):
    """There is nothing to report, and the message is that of other commands."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("beaconframes.cli.index"), "index_chain", interrupt)
    monkeypatch.setattr("beaconframes.cli.signals.is_stopped", lambda: True)
    stopped = run("--node", node.url, "--out", tmp_path / "index")

    assert (130, "") == (stopped.exit_code, stopped.stdout)
    assert stopped.stderr.startswith("beaconframes: stopped; the stored epochs are complete")


def test_chart_of_an_index(folder, tmp_path):
    """The status of each epoch as a picture; other folders are refused, and nothing is written."""
    out = tmp_path / "coverage.png"
    result = CliRunner().invoke(
        commands, ["plot", "index-coverage", str(folder), "--out", str(out), "--json"]
    )
    wrong = CliRunner().invoke(
        commands, ["plot", "index-coverage", str(tmp_path), "--out", str(tmp_path / "b.png")]
    )

    assert (0, 2) == (result.exit_code, json.loads(result.stdout)["rows"])
    assert b"\x89PNG" == out.read_bytes()[:4]
    assert 0 != wrong.exit_code
    assert not (tmp_path / "b.png").exists()


@pytest.mark.parametrize(
    ("validators", "words"),
    [
        ("-1", "-1' is not a validator"),
        ("3,-1", "-1' is not a validator"),
        ("1.5", "1.5' is not a validator"),
        ("1,5000", "does not know 1 of the validators: 5000"),
        (f"1,{'ab' * 48}", f"does not know 1 of the validators: 0x{'ab' * 48}"),
    ],
)
def test_validators_that_the_node_does_not_have(node, tmp_path, validators, words):
    """None is left out silently."""
    result = run("--node", node.url, "--out", tmp_path / "new", f"--validators={validators}")

    assert (2, True) == (result.exit_code, words in str(result.stderr or result.exception))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ("http://a", "http://b")),
        (["--execution", "http://c"], ("http://a", "http://c")),
        (["--node", "http://d"], ("http://d", None)),
        (["--node", "http://d", "--execution", "http://c"], ("http://d", "http://c")),
    ],
)
def test_the_execution_node_belongs_to_its_beacon_node(monkeypatch, tmp_path, options, expected):
    """That of the environment is used with the node of the environment; an option overrides it."""
    monkeypatch.setenv("BEACONFRAMES_NODE", "http://a")
    monkeypatch.setenv("BEACONFRAMES_EXECUTION", "http://b")
    seen = []
    module = import_module("beaconframes.cli.index")
    monkeypatch.setattr(module, "write_index", lambda connection, *_, **__: seen.append(connection))

    CliRunner().invoke(commands, ["index", "--out", str(tmp_path / "new"), *options])

    (connection,) = seen
    execution = connection.execution
    assert expected == (connection.url, execution and execution.session.url)


@pytest.mark.parametrize(
    ("words", "expected"),
    [("all", "all"), ("income-history, balances", ["income_history", "balances"])],
)
def test_tables_are_named_as_in_other_commands(monkeypatch, tmp_path, words, expected):
    """All of them, or a list of names with hyphens."""
    seen = []
    module = import_module("beaconframes.cli.index")
    monkeypatch.setattr(module, "write_index", lambda *given, **_: seen.append(given[2]))

    run("--node", "http://a", "--out", tmp_path / "new", "--tables", words)

    assert [{"tables": expected}] == seen
