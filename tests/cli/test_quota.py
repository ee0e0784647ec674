"""`beaconframes quota`: what is permitted, and what is left."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from beaconframes.cli import commands


@pytest.fixture
def run():
    """Run a command."""
    return lambda *words: CliRunner().invoke(commands, list(words))


def test_a_quota_that_nobody_has_told(run, running):
    """It says so, and asks nobody."""
    before = running.requests

    told = run("quota", "--url", running.url)
    said = json.loads(run("quota", "--url", running.url, "--json").stdout)

    assert (0, "", before) == (told.exit_code, told.stderr, running.requests)
    assert f"127.0.0.1:{running.url.rpartition(':')[2]}" in told.stdout.splitlines()[0]
    assert "not known" in told.stdout
    assert (None, 0) == (said["left"], said["used"])


def test_a_rate_that_is_given(run, running):
    """It is what is kept to."""
    said = json.loads(run("quota", "--url", running.url, "--rate", "3", "--json").stdout)

    assert 3 == said["second"]


def test_no_quota_without_a_service(run):
    """The public one needs a key."""
    told = run("quota")

    assert (2, "") == (told.exit_code, told.stdout)
    assert "BEACONFRAMES_API_KEY" in told.stderr
