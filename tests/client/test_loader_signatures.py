"""The arguments, type hints and documented ranges of every loader, of V1 and V2."""

from __future__ import annotations

import inspect
from typing import Literal, get_overloads, get_type_hints

import pytest

import beaconframes as bf
from beaconframes import v1, v2
from beaconframes.client import Explorer, Frame

OPTIONS = {"explorer": None, "strict": None, "lazy": False, "frame": None, "max_requests": None}
"""Keywords of every loader, with their defaults."""
PUBLIC = {
    f"{version} {endpoint.name}": (loaders, endpoint)
    for version, loaders, endpoints in (("v1", bf, v1.ENDPOINTS), ("v2", bf.v2, v2.ENDPOINTS))
    for endpoint in endpoints
}


@pytest.fixture(params=PUBLIC.values(), ids=PUBLIC)
def public(request):
    """The module of a loader, and its endpoint."""
    return request.param


@pytest.fixture
def endpoint(public):
    """The declared endpoint."""
    return public[1]


@pytest.fixture
def loader(public, endpoint):
    """The function that a user calls."""
    name = f"load_{endpoint.name}"
    assert hasattr(public[0], name), f"add {name} to the public names of {public[0].__name__}"
    return getattr(public[0], name)


def test_a_loader_takes_exactly_what_its_endpoint_declares(endpoint, loader):
    """The signature has the arguments of the declaration, and no others."""
    assert {*endpoint.arguments, *OPTIONS} == set(inspect.signature(loader).parameters)


def test_a_loader_has_the_options_of_all_loaders(loader):
    """All are keywords with a default, and Shift-Tab shows each by its name."""
    taken = inspect.signature(loader).parameters.values()
    keywords = {p.name: p.default for p in taken if p.kind is p.KEYWORD_ONLY}

    assert OPTIONS.items() <= keywords.items()
    assert not any(p.kind is p.VAR_KEYWORD for p in taken)


def test_the_type_hints_of_a_loader_resolve(loader):
    """At run time, and without pandas; the overloads name three kinds of frame."""
    hints = get_type_hints(loader)

    assert Explorer | None == hints["explorer"]
    assert Literal["polars", "pandas"] | None == hints["frame"]
    assert Frame == hints["return"]
    assert ["pl.DataFrame", "pl.LazyFrame", "pd.DataFrame"] == [
        overload.__annotations__["return"] for overload in get_overloads(loader)
    ]


def test_a_loader_of_a_range_documents_dates_and_timestamps(loader):
    """Z2: ``since`` and ``until`` show in two lines what a date and what a Timestamp means."""
    text = inspect.getdoc(loader)

    has_range = "until" in inspect.signature(loader).parameters

    assert has_range == ('the whole UTC day: ``until="2026-10-01"``' in text)
    assert has_range == ('one instant: ``until=pd.Timestamp("2026-10-01")``' in text)
