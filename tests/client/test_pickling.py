"""An Explorer in another process."""

from __future__ import annotations

import copy
import pickle

import pytest

import beaconframes as bf
from beaconframes.errors import UsageError


@pytest.mark.parametrize("action", [pickle.dumps, copy.copy, copy.deepcopy])
def test_explorer_cannot_be_pickled(action):
    """Q04: the error is one line, says what to do instead, and shows no key."""
    with (
        bf.Explorer("http://127.0.0.1:9", api_key="a-very-secret-key") as explorer,
        pytest.raises(UsageError, match=r"^an Explorer cannot be pickled or copied") as caught,
    ):
        action(explorer)
    assert "Create an Explorer in each process" == caught.value.hint
    assert 1 == len(str(caught.value).splitlines())
    assert "secret" not in repr(caught.value)
