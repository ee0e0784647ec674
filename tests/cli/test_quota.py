"""`beaconframes quota`: limits and remaining requests."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from beaconframes.cli import commands


@pytest.fixture
def run():
    """Run a command."""
    return lambda *words: CliRunner().invoke(commands, list(words))


def test_an_unknown_quota(run, running):
    """The output says that it is unknown; no request is sent."""
    before = running.requests

    result = run("quota", "--url", running.url)
    report = json.loads(run("quota", "--url", running.url, "--json").stdout)

    assert (0, "", before) == (result.exit_code, result.stderr, running.requests)
    assert f"127.0.0.1:{running.url.rpartition(':')[2]}" in result.stdout.splitlines()[0]
    assert "unknown" in result.stdout
    assert (None, 0) == (report["left"], report["used"])


def test_the_rate_option(run, running):
    """The rate of the option is the limit."""
    report = json.loads(run("quota", "--url", running.url, "--rate", "3", "--json").stdout)

    assert 3 == report["second"]


def test_the_public_service_without_a_key(run):
    """C5: quota and plan send nothing, so they need no key; the quota says that it has none."""
    result = run("quota")
    plan = run("plan", "epochs", "--since", "9", "--until", "11", "--no-store", "--json")

    assert (0, "") == (result.exit_code, result.stderr)
    assert "no API key is set" in result.stdout
    assert (0, 3) == (plan.exit_code, json.loads(plan.stdout)["requests"])
