"""Fixtures of the tests of the local explorer."""

from __future__ import annotations

import pytest

from beaconframes.server import Server, limits


@pytest.fixture(scope="session")
def public(chain):
    """A local explorer that serves the simulated chain on the public wire."""
    with Server(chain, wire="public") as server:
        yield server


@pytest.fixture
def endless_second(monkeypatch):
    """Let the second of a rate limit last for hours: a busy machine may need one per request."""
    real = limits.find_window_end
    monkeypatch.setattr(
        limits,
        "find_window_end",
        lambda window, now: now + 9_999 if window == "second" else real(window, now),
    )
