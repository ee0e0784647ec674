"""Loads from the store alone: `offline=True`."""

from __future__ import annotations

import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors

from ..support.store_loads import CALLS, connect, load_counted


def test_stored_rows_load_without_a_request(server, store):
    """Stored rows are loaded without a request, for absolute and for relative ranges."""
    expected = load_counted(server, store, CALLS["balances"]).rows
    load_counted(server, store, lambda e: bf.load_income_history([1], since=-9, explorer=e))
    found = load_counted(server, store, CALLS["balances"], offline=True)
    newest = load_counted(
        server, store, lambda e: bf.load_income_history([1], since=-5, explorer=e), offline=True
    )

    assert_frame_equal(expected, found.rows)
    assert (0, [], 0) == (found.requests, found.warnings, newest.requests)
    assert [463, 464, 465, 466, 467] == newest.rows["epoch"].to_list()


def test_rows_that_are_not_stored_are_named(server, store):
    """Rows that are not stored are reported by subject and range; an error with strict."""
    load_counted(server, store, CALLS["balances"])
    with connect(server, store, offline=True) as explorer:
        with pytest.warns(errors.MissingRows) as caught:
            found = bf.load_balance_history([5, 300], since=100, until=130, explorer=explorer)
        with pytest.raises(errors.MissingRows):
            bf.load_proposals([5], since=100, until=130, explorer=explorer, strict=True)

    assert 21 == found.height
    why = "not stored"
    expected = [(5, 121, 130, why), (300, 100, 130, why)]
    assert expected == caught[0].message.missing.rows()


def test_the_present_state_needs_requests(server, store):
    """The present state cannot be loaded offline, and the error says so."""
    load_counted(server, store, CALLS["balances"])
    explorer = connect(server, store, offline=True)

    with pytest.raises(errors.UsageError, match="needs requests"):
        bf.load_validators([1], explorer=explorer)
    with pytest.raises(errors.UsageError, match="needs requests"):
        bf.load_yield_index(explorer=explorer)


def test_offline_needs_a_store_with_rows(server, store):
    """Offline without a store, or with an empty one, is an error."""
    with pytest.raises(errors.ConfigError, match="needs a store"):
        connect(server, False, offline=True)
    with pytest.raises(errors.ConfigError, match="needs stored rows"):
        connect(server, store, offline=True)


def test_offline_needs_no_key(monkeypatch, tmp_path):
    """The store of the public service can be used without a key."""
    monkeypatch.setenv("BEACONFRAMES_OFFLINE", "1")
    with pytest.raises(errors.ConfigError, match="needs stored rows"):
        bf.Explorer(store=tmp_path)
