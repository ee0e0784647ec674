"""A client of a local explorer takes the chain that the explorer states."""

from __future__ import annotations

import json
from datetime import timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import Chain, errors
from beaconframes.endpoint import chain_metadata
from beaconframes.server.service import Service

from ..support.faults import FastClock
from ..support.replay import replaying


def test_the_address_alone_gives_times_and_dates(chain, running):
    """Z1: genesis, slot time and dates are those of the served chain, in V1 and in V2."""
    service = running.service
    day = service.chain.time_of("epoch", 300).date()
    with bf.Explorer(running.url) as explorer, bf.Explorer(running.url) as other:
        balances = bf.load_balance_history(5, since=day, until=day, explorer=explorer)
        rewards = bf.v2.load_rewards(5, since=300, until=301, explorer=other)
        found = explorer.chain, other.chain

    on_day = pl.col("time").dt.date() == day
    expected = chain.scan("balance_history").filter(on_day, validator_index=5).sort("epoch")
    assert (service.chain, service.chain) == found
    assert_frame_equal(expected.collect(), balances)
    assert balances.height > 100
    assert [service.chain.time_of("epoch", n) for n in (300, 301)] == rewards["time"].to_list()


def test_the_chain_costs_no_request_if_the_head_is_needed(running):
    """Z1: the chain comes with the latest state, which open-ended loads request anyway."""
    running.service.requests = 0
    with bf.Explorer(running.url) as explorer:
        bf.load_balance_history(5, since=-2, explorer=explorer)

    assert 2 == running.requests


@pytest.mark.parametrize(
    "other",
    [
        {"genesis": timedelta(days=1)},
        {"seconds_per_slot": 6},
        {"slots_per_epoch": 16},
        {"sync_committee_size": 32},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_given_chain_that_differs_is_an_error(running, other):
    """Z1: times that would be wrong are never returned; the error names both chains."""
    own = running.service.chain
    changed = {**vars(own), **other}
    if "genesis" in other:
        changed["genesis"] = own.genesis + other["genesis"]
    with (
        bf.Explorer(running.url, chain=Chain(**changed)) as explorer,
        pytest.raises(errors.ConfigError, match="the service has another chain") as caught,
    ):
        bf.load_validators([1], explorer=explorer)

    assert f"{next(iter(other))} {getattr(own, next(iter(other)))}, not " in str(caught.value)
    assert "Omit chain=" in caught.value.hint


def test_a_chain_of_another_name_with_the_same_clock_is_accepted(running):
    """Z1: the name of a chain is the caller's."""
    own = Chain(**{**vars(running.service.chain), "name": "my own"})
    with bf.Explorer(running.url, chain=own) as explorer:
        assert 1 == bf.load_validators([1], explorer=explorer).height


def test_a_service_that_states_no_chain_is_mainnet():
    """Z1: other services on this machine are asked once, and then taken for mainnet."""
    pages = {"GET /api/v1/validator/5/deposits": b'{"status":"OK","data":[]}'}
    with replaying(pages) as server, bf.Explorer(server.url) as explorer:
        bf.load_deposits(5, explorer=explorer)

        assert "mainnet" == explorer.chain.name


@pytest.mark.parametrize("reply", [(404, {}, b"{}"), (200, {}, b"<html>Bad gateway</html>")])
def test_an_error_of_the_latest_state_is_in_the_error_of_the_chain(chain, reply):
    """Z1: mainnet was only assumed; the error says why, and the next load requests the chain."""
    service = Service(chain)
    headers = {"x-beaconframes-chain": service.headers["x-beaconframes-chain"]}
    deposits = (200, headers, b'{"status":"OK","data":[]}')
    pages = {
        "GET /api/v1/validator/5/deposits": deposits,
        "GET /api/v1/latestState": reply,
    }
    with replaying(pages) as server, bf.Explorer(server.url) as explorer:
        explorer.rate_limiter.clock = FastClock()
        with pytest.raises(errors.ConfigError, match="another chain than mainnet") as caught:
            bf.load_deposits(5, explorer=explorer)
        assert "because of this error: " in caught.value.message
        assert "(GET /api/v1/latestState" in caught.value.message
        assert "Omit chain=" not in str(caught.value)

        pages["GET /api/v1/latestState"] = (200, headers, b"{}")
        assert bf.load_deposits(5, explorer=explorer).is_empty()
        assert service.chain == explorer.chain


def test_the_header_states_the_whole_chain(chain):
    """Z1: the documented header is a JSON object with every number of the clock."""
    service = Service(chain)
    stated = json.loads(service.headers["x-beaconframes-chain"])

    assert {"name", "genesis", "seconds_per_slot", "slots_per_epoch", "epochs_per_sync_period",
            "sync_committee_size", "first_sync_epoch"} == set(stated)  # fmt: skip
    assert service.chain == chain_metadata.parse_chain(stated)


@pytest.mark.parametrize(
    "header", ["", "{}", "[]", "[" * 9_000, '{"name": "x", "genesis": "soon"}']
)
def test_an_invalid_header_is_a_protocol_error(header):
    """Z1: a header that describes no chain is not taken for one."""
    with pytest.raises(errors.ProtocolError, match="does not describe a chain"):
        chain_metadata.parse_chain_header(header)


def test_stored_rows_of_a_local_explorer_are_read_offline(running, tmp_path):
    """Z1: without a request, the chain is that of the stored rows."""
    with bf.Explorer(running.url, store=tmp_path) as explorer:
        online = bf.load_balance_history(5, since=300, until=301, explorer=explorer)
    offline = bf.Explorer(running.url, store=tmp_path, offline=True)

    assert_frame_equal(
        online, bf.load_balance_history(5, since=300, until=301, explorer=offline, strict=True)
    )
