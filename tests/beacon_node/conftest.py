"""An index of a recorded chain that the tests of this folder share."""

from __future__ import annotations

import pytest

import beaconframes as bf
from beaconframes.client import set_explorer

from ..support.node_index import open_index

UNTIL = 11


@pytest.fixture(scope="session")
def electra_folder(tmp_path_factory):
    """The index of the epochs 0 to 11 of the Electra chain; do not change it."""
    return open_index(tmp_path_factory, "electra", UNTIL)


@pytest.fixture(scope="module")
def electra_explorer(electra_folder):
    """A local explorer of that index."""
    with bf.local(electra_folder) as local:
        yield local


@pytest.fixture
def electra(electra_explorer):
    """That explorer, for the loaders of a test."""
    set_explorer(electra_explorer)
    return electra_explorer
