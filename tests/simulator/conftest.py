"""Simulated chains of three seeds and two sizes, for the tests of their tables."""

import pytest

from beaconframes.simulator import simulate

from ..support.simulated_chain import SimulatedChain

SIZES = (
    {"validators": 300, "epochs": 300, "history_days": 3},
    {"validators": 700, "epochs": 520, "history_days": 40},
)
CHAINS = {
    f"seed{seed}-of-{size['validators']}": {"seed": seed, **size}
    for size in SIZES
    for seed in (1, 2, 3)
}
USUAL, MORE = {"seed1-of-300"}, {"seed3-of-700"}
MARKS = {
    name: [] if name in USUAL else [pytest.mark.more if name in MORE else pytest.mark.long]
    for name in CHAINS
}


@pytest.fixture(
    scope="session",
    params=[pytest.param(chain, id=name, marks=MARKS[name]) for name, chain in CHAINS.items()],
)
def simulated(request, tmp_path_factory):
    """A simulated chain with all its tables in memory."""
    return SimulatedChain(simulate(tmp_path_factory.mktemp("chain") / "data", **request.param))
