"""What several test files share: a small simulated chain, and an explorer that serves it."""

from __future__ import annotations

import pytest

from beaconframes import config
from beaconframes.client import use
from beaconframes.service import local


@pytest.fixture(autouse=True)
def clean_surroundings(monkeypatch):
    """No test sees the settings of the machine, or those of another test."""
    for name in (
        "URL",
        "API_KEY",
        "CHAIN",
        "RATE",
        "STORE",
        "OFFLINE",
        "FRAME",
        "STRICT",
        "PROGRESS",
    ):
        monkeypatch.delenv(f"BEACONFRAMES_{name}", raising=False)
    yield
    use(None)
    config.reset()


@pytest.fixture(scope="session")
def chain(tmp_path_factory):
    """A simulated chain of 1,010 validators and 470 epochs from genesis."""
    from beaconframes.service.simulate import simulate

    return simulate(tmp_path_factory.mktemp("chain") / "data", validators=1010, epochs=470, seed=7)


@pytest.fixture
def explorer(chain):
    """A local explorer that serves the simulated chain; loaders ask it."""
    with local(chain) as running:
        yield running
