"""`beaconframes record`: store attestation duties before the service deletes them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from beaconframes.cli import commands
from beaconframes.v1.recorder import Recorder


@pytest.fixture
def connection(running, tmp_path):
    """Options for the local explorer by its address, with a store."""
    return ["--url", running.url, "--store", str(tmp_path / "store")]


@pytest.fixture
def final(chain):
    """The last final epoch of the chain."""
    return chain.meta["finalized_epoch"]


def messages(stderr):
    """Lines of standard error, without those that only the first command of a process prints."""
    once = "times are computed for mainnet"
    return [line for line in stderr.splitlines() if once not in line]


def test_recording_up_to_an_epoch(connection, final):
    """The report has the stored epochs; load reads them offline."""
    options = ["record", "attestations", "--validators", "1,2", "--until", str(final), *connection]

    result = CliRunner().invoke(commands, options)
    report = json.loads(CliRunner().invoke(commands, [*options, "--json"]).stdout)
    loaded = CliRunner().invoke(
        commands,
        ["load", "attestations", "--validators", "1,2", "--since", str(final - 9),
         "--until", str(final), "--json", *connection, "--offline"],
    )  # fmt: skip

    assert (0, []) == (result.exit_code, messages(result.stderr))
    assert ["validator_index", "first_epoch", "last_epoch", "state"] == result.stdout.split()[:4]
    assert (True, 2) == (report["complete"], report["rows"])
    assert [(1, final, "stored"), (2, final, "stored")] == [
        (row["validator_index"], row["last_epoch"], row["state"]) for row in report["data"]
    ]
    assert 20 == json.loads(loaded.stdout)["rows"]


@pytest.mark.more
def test_an_unknown_validator(connection, final):
    """The report lists it as absent or missing, also by public key; the exit code is 3."""
    key = f"0x{'ab' * 48}"
    options = ["record", "attestations", "--until", str(final), *connection, "--validators"]

    result = CliRunner().invoke(commands, [*options, "1,5000"])
    report = json.loads(CliRunner().invoke(commands, [*options, f"1,5000,{key}", "--json"]).stdout)

    assert 3 == result.exit_code
    assert "beaconframes: warning: " in result.stderr
    assert "1 unknown to the service (5000)" in result.stderr
    assert 1 == len(messages(result.stderr))
    assert [(1, "stored"), (5000, "absent")] == [
        (row["validator_index"], row["state"]) for row in report["data"]
    ]
    assert False is report["complete"]
    assert [5000, None] == [row["validator_index"] for row in report["missing"]]
    assert [None, key] == [row["pubkey"] for row in report["missing"]]


def test_a_damaged_store(connection, final, tmp_path, monkeypatch):
    """The report lists removed epochs as pending."""
    states = Recorder.states
    damaged = []

    def states_of_damaged(self, found):
        if not damaged:
            damaged.extend(tmp_path.glob("store/*/attestations/*.parquet"))
            for file in damaged:
                file.chmod(0o600)
                file.write_bytes(file.read_bytes()[:-1])
        return states(self, found)

    monkeypatch.setattr(Recorder, "states", states_of_damaged)
    options = ["--validators", "1", "--until", str(final), "--json", *connection]

    result = CliRunner().invoke(commands, ["record", "attestations", *options])

    assert 3 == result.exit_code
    assert ["pending"] == [row["state"] for row in json.loads(result.stdout)["data"]]


def test_invalid_recordings(connection, small_sample):
    """No store, invalid validators, another table, an invalid duration: one line, exit code 2."""
    for words in (
        ["attestations", "--validators", "1", *connection[:2], "--no-store"],
        ["attestations", "--validators", "1", "--local"],
        ["attestations", "--validators", "one", *connection],
        ["attestations", *connection],
        ["incomes", "--validators", "1", *connection],
        ["attestations", "--validators", "1", "--for", "long", *connection],
    ):
        result = CliRunner().invoke(commands, ["record", *words])

        assert (2, "") == (result.exit_code, result.stdout), words
        assert 1 == len(messages(result.stderr))


def test_an_end_before_genesis(connection):
    """The message names the option and the date."""
    words = ["record", "attestations", "--validators", "1", "--until", "2020-01-01", *connection]

    result = CliRunner().invoke(commands, words)

    assert (2, "") == (result.exit_code, result.stdout)
    assert (
        "--until 2020-01-01 is before the genesis of the chain simulated"
        in result.stderr.replace("'", "")
    )


@pytest.mark.long
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_recording_with_a_report(connection, tmp_path, number, status):
    """Recorded rows stay; the exit code is that of the signal."""
    process = subprocess.Popen(
        [sys.executable, "-m", "beaconframes", "record", "attestations", "--validators", "1,2",
         "--json", *connection],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not any(tmp_path.glob("store/*/attestations/*")) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(1)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()

    assert status == process.returncode
    assert "stored" == json.loads(stdout)["data"][0]["state"]
    assert ["beaconframes: stopped"] == messages(stderr)
