"""Every endpoint of V2: loader, documentation, wire sample, route and schema."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import beaconframes as bf
from beaconframes import v2
from beaconframes.endpoint import ChainName, Cursor, Envelope
from beaconframes.server.access import Access
from beaconframes.server.app import build_app
from beaconframes.server.service import Service

ROOT = Path(__file__).parents[2]

EVERY = pytest.mark.parametrize("endpoint", v2.ENDPOINTS, ids=lambda endpoint: endpoint.name)


def loader(endpoint):
    """The function a user calls."""
    return getattr(bf.v2, f"load_{endpoint.name}")


def test_every_loader_is_an_endpoint():
    """Public loaders and declared endpoints are the same."""
    offered = {name for name in v2.__all__ if name.startswith("load_")}

    assert {f"load_{endpoint.name}" for endpoint in v2.ENDPOINTS} == offered
    assert len(v2.ENDPOINTS) == len(offered)


@EVERY
def test_a_loader_says_its_grain_its_units_and_its_route(endpoint):
    """The first line states the grain, the notes the route and whether the shape is published."""
    text = inspect.getdoc(loader(endpoint))

    first, notes = text.partition("\n\n")[0], text.partition("Notes\n")[2]

    assert "one row" in " ".join(first.split())
    assert "Returns\n" in text
    assert endpoint.path in notes
    assert ("not published" in " ".join(notes.split())) != is_published(endpoint)


@EVERY
def test_a_request_is_a_post_that_names_its_chain(endpoint):
    """V2 uses POST only; every body names the chain, except those about machines."""
    about_machines = "machine-metrics" in endpoint.path

    assert endpoint.route.startswith("POST /api/v2/")
    assert Envelope.V2 is endpoint.envelope
    assert about_machines != any(isinstance(s, ChainName) for s in endpoint.parameters)


def is_published(endpoint):
    """Return whether the shape of the response is published."""
    return not endpoint.table.keeps_every_field


@EVERY
def test_an_endpoint_has_a_wire_sample_and_a_section_in_the_dictionary(endpoint):
    """The sample is written by hand; the page is generated."""
    page = (ROOT / "docs" / "dictionary.md").read_text()
    named = f"v2.{endpoint.name}"

    sample = ROOT / "tests" / "wire" / "v2" / f"{endpoint.name}.json"
    assert sample.exists() == is_published(endpoint)
    assert f"## `v2.load_{endpoint.name}`" in page
    assert bf.describe(named)["column"].to_list() == endpoint.table.schema().names()
    assert f"v2.load_{endpoint.name}" in bf.describe()["loader"].to_list()


@EVERY
def test_an_endpoint_is_routed(endpoint, chain):
    """E2: the local explorer has its path, also if the shape of the response is not published."""
    paths = {route.path for route in build_app(Service(chain), Access()).routes}

    assert endpoint.path in paths


@EVERY
def test_no_rows_have_all_columns(endpoint):
    """A response without records becomes a frame with the whole schema."""
    nothing = endpoint.table.decode([b"[]"], bf.MAINNET)

    assert 0 == nothing.height
    assert endpoint.table.schema() == nothing.schema


@EVERY
def test_lists_are_paginated(endpoint):
    """Every list is paginated, except the names of machines."""
    paged = isinstance(endpoint.pagination, Cursor)
    of_lists = endpoint.shape.name == "LIST" or endpoint.name == "machine_metrics"

    assert paged == (of_lists and endpoint.name != "machine_names")
