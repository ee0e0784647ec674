"""`beaconframes record`: what the service forgets."""

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
def asking(running, tmp_path):
    """The options that ask the local explorer as if it were a service, with a store."""
    return ["--url", running.url, "--store", str(tmp_path / "store")]


@pytest.fixture
def final(chain):
    """The last final epoch of the chain."""
    return chain.meta["finalized_epoch"]


def messages(stderr):
    """Lines of standard error, without those that only the first command of a process prints."""
    once = ("times are worked out for mainnet", "simulating a sample chain")
    return [line for line in stderr.splitlines() if not any(words in line for words in once)]


def test_recording_up_to_an_epoch(asking, final):
    """It tells what is kept of whom, and load has it from then on without asking."""
    options = ["record", "attestations", "--validators", "1,2", "--until", str(final), *asking]

    told = CliRunner().invoke(commands, options)
    said = json.loads(CliRunner().invoke(commands, [*options, "--json"]).stdout)
    loaded = CliRunner().invoke(
        commands,
        ["load", "attestations", "--validators", "1,2", "--since", str(final - 9),
         "--until", str(final), "--json", *asking, "--offline"],
    )  # fmt: skip

    assert (0, []) == (told.exit_code, messages(told.stderr))
    assert ["validator_index", "first_epoch", "last_epoch", "state"] == told.stdout.split()[:4]
    assert (True, 2) == (said["complete"], said["rows"])
    assert [(1, final, "kept"), (2, final, "kept")] == [
        (row["validator_index"], row["last_epoch"], row["state"]) for row in said["data"]
    ]
    assert 20 == json.loads(loaded.stdout)["rows"]


def test_a_validator_that_does_not_exist(asking, final):
    """Nothing of it is kept: it is named, also by a key that nobody has, and the status is 3."""
    key = f"0x{'ab' * 48}"
    options = ["record", "attestations", "--until", str(final), *asking, "--validators"]

    told = CliRunner().invoke(commands, [*options, "1,5000"])
    said = json.loads(CliRunner().invoke(commands, [*options, f"1,5000,{key}", "--json"]).stdout)

    assert 3 == told.exit_code
    assert "beaconframes: warning: " in told.stderr
    assert "validator_index 5000" in told.stderr
    assert 1 == len(messages(told.stderr))
    assert [(1, "kept"), (5000, "absent")] == [
        (row["validator_index"], row["state"]) for row in said["data"]
    ]
    assert False is said["complete"]
    assert [5000, None] == [row["validator_index"] for row in said["missing"]]
    assert 1 == said["missing"][1]["public_keys_without_rows"]


def test_a_store_that_is_damaged_at_the_end(asking, final, tmp_path, monkeypatch):
    """The report comes all the same, and tells what was forgotten as still open."""
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
    options = ["--validators", "1", "--until", str(final), "--json", *asking]

    told = CliRunner().invoke(commands, ["record", "attestations", *options])

    assert 3 == told.exit_code
    assert ["open"] == [row["state"] for row in json.loads(told.stdout)["data"]]


def test_recordings_that_cannot_be(asking):
    """Nothing to keep it in, nobody to record, something that nobody forgets."""
    for words in (
        ["attestations", "--validators", "1", *asking[:2], "--no-store"],
        ["attestations", "--validators", "1", "--local"],
        ["attestations", "--validators", "one", *asking],
        ["attestations", *asking],
        ["incomes", "--validators", "1", *asking],
        ["attestations", "--validators", "1", "--for", "long", *asking],
    ):
        told = CliRunner().invoke(commands, ["record", *words])

        assert (2, "") == (told.exit_code, told.stdout), words
        assert 1 == len(messages(told.stderr))


def test_an_end_before_the_beginning(asking):
    """The option and the date are named as they were typed."""
    words = ["record", "attestations", "--validators", "1", "--until", "2020-01-01", *asking]

    told = CliRunner().invoke(commands, words)

    assert (2, "") == (told.exit_code, told.stdout)
    assert "--until 2020-01-01 is before the genesis of mainnet" in told.stderr.replace("'", "")


@pytest.mark.long
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_recording_with_its_report(asking, tmp_path, number, status):
    """What was recorded is told and stays; the status is that of the signal."""
    process = subprocess.Popen(
        [sys.executable, "-m", "beaconframes", "record", "attestations", "--validators", "1,2",
         "--json", *asking],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not any(tmp_path.glob("store/*/attestations/*")) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(1)
        process.send_signal(number)
        printed, said = process.communicate(timeout=60)
    finally:
        process.kill()

    assert status == process.returncode
    assert "kept" == json.loads(printed)["data"][0]["state"]
    assert ["beaconframes: stopped"] == messages(said)
