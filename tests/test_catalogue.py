"""The catalogue of generation 1, walked from one end to the other: no row of it is empty."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import dictionary, errors, v1
from beaconframes.client import Options
from beaconframes.service.app import Service, app

ROOT = Path(__file__).parents[1]

# Typed from the published list of the API, not read from the code.
LOADERS = [
    "validators",
    "proposals",
    "attestations",
    "balance_history",
    "income_history",
    "deposits",
    "bls_changes",
    "execution_performance",
    "performance",
    "attestation_efficiency",
    "validator_withdrawals",
    "proposal_luck",
    "validator_stats",
    "leaderboard",
    "deposit_origin",
    "withdrawal_credentials",
    "validator_queue",
    "latest_state",
    "epochs",
    "epoch_slots",
    "slots",
    "slot_attestations",
    "attester_slashings",
    "proposer_slashings",
    "slot_withdrawals",
    "voluntary_exits",
    "slot_deposits",
    "transaction_deposits",
    "sync_committees",
    "execution_blocks",
    "produced_blocks",
    "address_balances",
    "token_balances",
    "gas_fees",
    "names",
    "graffiti_wall",
    "yield_index",
    "pool_stats",
    "pool_validators",
]

EVERY = pytest.mark.parametrize("endpoint", v1.ENDPOINTS, ids=lambda endpoint: endpoint.name)


def loader(endpoint):
    """The function a user calls."""
    return getattr(bf, f"load_{endpoint.name}")


def test_every_endpoint_of_the_api_is_there():
    """One by one, and the picture, which has no rows."""
    assert sorted(LOADERS) == sorted(endpoint.name for endpoint in v1.ENDPOINTS)
    assert callable(bf.load_chart)


@EVERY
def test_a_loader_takes_exactly_what_its_endpoint_declares(endpoint):
    """What a user reads in the signature and what is sent cannot drift apart."""
    taken = set(inspect.signature(loader(endpoint)).parameters)

    assert {*endpoint.arguments, "explorer", "options"} == taken
    assert {"strict", "lazy"} == set(Options.__annotations__)


@EVERY
def test_a_loader_says_its_grain_its_units_and_its_route(endpoint):
    """The first line says what a row is; the notes say where it comes from."""
    text = inspect.getdoc(loader(endpoint))
    first = text.partition("\n\n")[0]

    assert re.search(r"one row|a few rows", first)
    assert "Returns\n" in text
    assert "Notes\n" in text
    assert "/api/v1/" in text.partition("Notes\n")[2]


@EVERY
def test_an_endpoint_has_a_wire_sample_and_a_place_in_the_dictionary(endpoint):
    """Written by hand, and generated."""
    page = (ROOT / "docs" / "dictionary.md").read_text()

    assert (ROOT / "tests" / "wire" / f"{endpoint.name}.json").exists()
    assert f"## `load_{endpoint.name}`" in page
    assert bf.describe(endpoint.name)["column"].to_list() == endpoint.table.schema().names()
    assert f"load_{endpoint.name}" in bf.describe()["loader"].to_list()


@EVERY
def test_an_endpoint_is_routed_and_simulated(endpoint, chain):
    """The local explorer has its path, by both names, and rows to answer with."""
    paths = {route.path for route in app(Service(chain)).routes}

    assert {endpoint.path} | ({endpoint.alias} if endpoint.alias else set()) <= paths
    assert 0 < chain.scan(endpoint.table.table_name).select(pl.len()).collect().item()


@EVERY
def test_no_rows_have_all_columns(endpoint):
    """An answer without records is a frame with the whole schema."""
    nothing = endpoint.table.decode([b"[]"], bf.MAINNET)

    assert 0 == nothing.height
    assert endpoint.table.schema() == nothing.schema


def test_the_dictionary_is_what_the_tables_say():
    """`make docs` was run after the last change."""
    assert dictionary.markdown() == (ROOT / "docs" / "dictionary.md").read_text()


def test_a_misspelt_loader_is_helped():
    """The error names it and the nearest there is."""
    with pytest.raises(errors.UsageError, match=r"incom_history.*income_history"):
        bf.describe("incom_history")
