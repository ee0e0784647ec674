"""Explorers and errors in other processes and threads."""

from __future__ import annotations

import copy
import copyreg
import pickle

import pytest

import beaconframes as bf
from beaconframes.errors import NotFound, UsageError


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


def test_copies_of_errors_are_independent(monkeypatch):
    """tblib, which Dask installs, copies exceptions by a function that shares their fields."""
    error = NotFound("state not found", hint="Use an archive node", endpoint="GET /states")
    monkeypatch.setitem(
        copyreg.dispatch_table, NotFound, lambda error: (_open_shared, (error.__dict__,))
    )
    other = copy.copy(error)
    assert (type(error), str(error), error.args) == (type(other), str(other), other.args)
    other.message = "epoch 9: state not found"
    assert "state not found" == error.message


def _open_shared(fields):
    """Return an error with the fields of another one."""
    error = NotFound("")
    error.__dict__ = fields
    return error
