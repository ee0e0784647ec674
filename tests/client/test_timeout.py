"""Timeouts that the user sets: for one request, and for a whole call."""

from __future__ import annotations

import time

import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes import errors
from beaconframes.cli import commands

from ..support.faults import FastClock, FaultServer


def load(server, **options):
    """Load with these options; return the error, and the seconds until it was raised."""
    start = time.monotonic()
    with (
        bf.Explorer(server.url, chain="mainnet", rate=1000, **options) as explorer,
        pytest.raises(errors.BeaconframesError) as caught,
    ):
        bf.load_epochs(since=0, until=40, explorer=explorer)
    return caught.value, time.monotonic() - start


@pytest.mark.parametrize("fault", ["hang_headers", "hang_body", "slow_drip?ms=20", "slow_headers"])
def test_a_whole_call_ends_in_time(fault):
    """C2, T21: a hang and a drip end with the call, in the main thread and in the others."""
    with FaultServer(fault) as server:
        error, seconds = load(server, timeout=(None, 0.4))

    assert errors.RequestTimeout is type(error)
    assert "the call did not end within 0.4 s" in str(error)
    assert "timeout=" in error.hint
    # Without the timeout, the server ends the response after a minute.
    assert 0.4 <= seconds < 25


@pytest.mark.parametrize("fault", ["hang_headers", "slow_drip?ms=20"])
def test_a_slow_request_is_sent_again(fault):
    """C2: the first attempt ends after the timeout of one request; the second one succeeds."""
    with FaultServer(f"{fault}&times=1" if "?" in fault else f"{fault}?times=1") as server:
        explorer = bf.Explorer(server.url, chain="mainnet", timeout=20)
        # Its time passes when the first request has arrived; then the clock stands still.
        explorer.rate_limiter.clock = clock = FastClock()
        clock.now = lambda: clock.waited + 30 * bool(server.seen)
        with explorer, pytest.raises(errors.SchemaError):
            # The rows of this server are not those of the endpoint, so they were received whole.
            bf.load_validator_queue(explorer=explorer)

    assert 2 == len(server.seen)


def test_a_block_sets_timeouts():
    """C2: bf.settings and bf.connect take the same value."""
    with FaultServer("hang_headers") as server:
        bf.connect(server.url, chain="mainnet", timeout=(None, 60))
        with (
            bf.settings(timeout=(None, 0.2)),
            pytest.raises(errors.RequestTimeout, match=r"0\.2 s"),
        ):
            bf.load_validator_queue()


def test_the_option_of_the_command_line():
    """C2: --timeout has both numbers; the hint names the option."""
    with FaultServer("hang_headers") as server:
        words = ["load", "validator-queue", "--url", server.url, "--chain", "mainnet"]
        result = CliRunner().invoke(commands, [*words, "--timeout", "10,0.2"])
        wrong = CliRunner().invoke(commands, [*words, "--timeout", "soon"])

    assert "did not end within 0.2 s" in result.stderr
    assert "--timeout" in result.stderr
    assert 2 == wrong.exit_code
    assert "number of seconds" in wrong.stderr
