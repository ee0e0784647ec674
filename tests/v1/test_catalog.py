"""Every endpoint of V1: loader, documentation, wire sample, route and schema."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import dictionary, errors, v1
from beaconframes.endpoint import Head
from beaconframes.server.access import Access
from beaconframes.server.app import build_app
from beaconframes.server.service import Service

from ..support.replay import replaying

ROOT = Path(__file__).parents[2]

EVERY = pytest.mark.parametrize("endpoint", v1.ENDPOINTS, ids=lambda endpoint: endpoint.name)


def loader(endpoint):
    """The function a user calls."""
    name = f"load_{endpoint.name}"
    assert name in bf.__all__, f"add {name} to the public names, src/beaconframes/__init__.pyi"
    return getattr(bf, name)


def test_every_endpoint_is_public_and_has_a_sample_by_hand():
    """The catalog, the public names and the files of `wire` name the same endpoints."""
    listed = [endpoint.name for endpoint in v1.ENDPOINTS]
    samples = {path.stem for path in (ROOT / "tests" / "wire").glob("*.json")}
    public = {name.removeprefix("load_") for name in bf.__all__ if name.startswith("load_")}

    assert len(set(listed)) == len(listed), "an endpoint is twice in ENDPOINTS of v1/__init__.py"
    assert samples == set(listed), "ENDPOINTS of v1/__init__.py and the files in tests/wire differ"
    assert public - {"chart"} == set(listed), "ENDPOINTS and the loaders in __init__.pyi differ"
    assert set(v1.__all__) - {"CHARTS", "ENDPOINTS"} == {f"load_{name}" for name in public}
    assert callable(bf.load_chart)


@EVERY
def test_a_loader_says_its_grain_its_units_and_its_route(endpoint):
    """The first line states the grain; the notes state the route."""
    text = inspect.getdoc(loader(endpoint))
    first = text.partition("\n\n")[0]

    assert re.search(r"one row|a few rows", first)
    assert "Returns\n" in text
    assert "Notes\n" in text
    # Placeholders have the service's names there, and the loader's in the declaration.
    assert nameless(endpoint.route) in nameless(text.partition("Notes\n")[2])


def nameless(route):
    """Return a route without the names of its placeholders."""
    return re.sub(r"\{\w+\}", "{}", route)


def test_the_chart_loader_has_documentation_and_a_route(chain):
    """It has a loader, its route in the notes, and a route of the local explorer."""
    text = inspect.getdoc(bf.load_chart)

    assert "GET /api/v1/chart/{chart}" in text.partition("Notes\n")[2]
    assert "/api/v1/chart/{chart}" in {
        route.path for route in build_app(Service(chain), Access()).routes
    }
    assert {"name", "explorer"} == set(inspect.signature(bf.load_chart).parameters)


@EVERY
def test_an_endpoint_has_a_wire_sample_and_a_section_in_the_dictionary(endpoint):
    """The sample is written by hand; the page is generated."""
    page = (ROOT / "docs" / "dictionary.md").read_text()
    sample = Path("tests", "wire", f"{endpoint.name}.json")

    assert (ROOT / sample).exists(), f"write {sample} by hand from the documentation of the API"
    assert f"## `load_{endpoint.name}`" in page, "run `make docs`"
    assert bf.describe(endpoint.name)["column"].to_list() == endpoint.table.schema().names()
    assert f"load_{endpoint.name}" in bf.describe()["loader"].to_list()


@EVERY
def test_an_endpoint_is_routed_and_simulated(endpoint, chain):
    """The local explorer has both of its paths, and the simulated chain has its rows."""
    paths = {route.path for route in build_app(Service(chain), Access()).routes}

    assert {endpoint.path} | ({endpoint.alias} if endpoint.alias else set()) <= paths
    name = endpoint.table.table_name
    rows = chain.scan(name).select(pl.len()).collect().item() if name in chain.tables() else 0
    assert rows > 0, f"no module of simulator/derived adds rows of {endpoint.table.__name__}"


@EVERY
def test_no_rows_have_all_columns(endpoint):
    """A response without records becomes a frame with the whole schema."""
    nothing = endpoint.table.decode([b"[]"], bf.MAINNET)

    assert 0 == nothing.height
    assert endpoint.table.schema() == nothing.schema


ALWAYS_A_ROW = {
    "epoch_slots", "epochs", "gas_fees", "latest_state", "pool_stats", "proposal_luck",
    "sync_committees", "validator_queue", "yield_index",
}  # fmt: skip


@EVERY
@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
def test_a_response_without_rows_has_all_columns(endpoint):
    """Every loader returns zero rows with the whole schema, without optional arguments.

    G8: a request for the latest object, or for a reading of the present, always has a row.
    """
    sample = json.loads((ROOT / "tests" / "wire" / f"{endpoint.name}.json").read_text())["spec"]
    given = inspect.signature(loader(endpoint)).parameters.values()
    arguments = {p.name: sample["call"][p.name] for p in given if p.default is p.empty}
    nothing = b'{"status":"OK","code":200,"data":[]}'
    head = Head(epoch=10**6, finalized_epoch=10**6 - 2, slot=32 * 10**6)

    with (
        replaying({"*": nothing}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000, head=head) as explorer,
    ):
        if endpoint.name in ALWAYS_A_ROW:
            with pytest.raises(errors.NotFound, match="no record"):
                loader(endpoint)(**arguments, explorer=explorer)
            return
        frame = loader(endpoint)(**arguments, explorer=explorer)

    assert server.arrived
    assert 0 == frame.height
    assert endpoint.table.schema() == frame.schema


@pytest.mark.parametrize("load", [bf.load_epochs, bf.load_epoch_slots])
def test_final_epochs_without_rows_raise(load):
    """P13: a final epoch has rows, so this is an error; its frame has all columns."""
    head = Head(epoch=10, finalized_epoch=8, slot=330)

    with (
        replaying({"*": b'{"status":"OK","data":[]}'}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000, head=head) as explorer,
        pytest.raises(errors.IntegrityError, match="epoch 3 to 4") as caught,
    ):
        load(since=3, until=4, explorer=explorer)

    assert 0 == caught.value.rows.height
    assert "time" in caught.value.rows.columns
    assert 4 == len(server.arrived)


@pytest.mark.parametrize(
    "name",
    [
        "slot_income",
        "epoch_moves",
        "unexplained_changes",
        "deposit_events",
        "transfer_events",
        "deposit_requests",
    ],
)
def test_a_table_of_an_index_is_in_the_dictionary(name):
    """Tables that no loader returns have a section of their own, and no field on the wire."""
    section = (ROOT / "docs" / "dictionary.md").read_text().partition("## Tables of an index")[2]
    columns = bf.describe(name)

    assert f"### `{name}`" in section
    assert "wire" not in columns.columns
    for column in columns["column"]:
        assert f"`{column}`" in section.partition(f"### `{name}`")[2].partition("###")[0]


def test_the_dictionary_page_is_up_to_date():
    """No column, argument or default of a loader changes by accident: the page has all of them."""
    is_current = dictionary.build_page() == (ROOT / "docs" / "dictionary.md").read_text()

    assert is_current, "run `make docs`, and read the difference of docs/dictionary.md"


@EVERY
def test_the_guide_lists_every_loader(endpoint):
    """The loader has its place in the tables of the guide, with its arguments."""
    page = (ROOT / "docs" / "guide" / "loaders.md").read_text()

    assert f"`load_{endpoint.name}(" in page, "run `make docs`"


def test_a_misspelt_loader_gets_a_suggestion():
    """The error names it and the closest loader."""
    with pytest.raises(errors.UsageError, match=r"incom_history.*income_history"):
        bf.describe("incom_history")
    for loader, name in ((bf.load_epochs, "epochs"), (bf.v2.load_slot, "v2.slot")):
        assert bf.describe(loader).equals(bf.describe(name))
    with pytest.raises(errors.UsageError, match=r"is not a loader\. Give a loader or its name"):
        bf.describe(bf.plan)
    with pytest.raises(errors.UsageError, match=r"^5 is not a loader\. "):
        bf.describe(5)
    with pytest.raises(errors.UsageError, match=r"load_chart returns an image"):
        bf.describe(bf.load_chart)


def test_loaders_lists_every_loader_of_v1_and_v2_once():
    """Step 12, 8: whatever is public and begins with `load_` has a row, and no other name."""
    public = [name for name in bf.__all__ if name.startswith("load_")]
    public += [f"v2.{name}" for name in bf.v2.__all__ if name.startswith("load_")]

    listed = bf.loaders()

    assert sorted(listed["loader"]) == sorted(public)
    assert bf.describe().equals(listed)
    assert listed.null_count().select("rows", "arguments", "endpoint", "final").row(0) == (0,) * 4


def test_loaders_prints_a_line_per_loader(monkeypatch):
    """In a terminal of 80 columns; frames made of it print as any frame."""
    monkeypatch.setenv("COLUMNS", "80")
    listed = bf.loaders()

    lines = repr(listed).splitlines()
    assert listed["loader"].to_list() == [line.split()[0] for line in lines[: listed.height]]
    assert lines[0].endswith("  Validators. One row per validator.")
    assert all(name in " ".join(lines[listed.height :]) for name in listed.columns)
    assert max(map(len, lines)) == 80
    assert str(listed.head(1)).count("load_") == 1
    listed.drop_in_place("rows")
    assert str(listed).startswith("shape: (")
    assert repr(bf.loaders().select("loader", "rows")).startswith("shape: (")


def test_loaders_states_what_one_request_returns():
    """Spec, sections 4 and 8: 100 validators and 100 epochs; on V2, 10 rows of one epoch."""
    figures = ["unit", "subjects_per_request", "units_per_request", "rows_per_page"]
    expected = {
        "load_validators": (None, 100, None, None),
        "load_income_history": ("epoch", 100, 100, None),
        "load_validator_stats": ("day", 1, None, None),
        "load_withdrawal_credentials": (None, 1, None, 200),
        "load_epoch_slots": ("epoch", None, 1, None),
        "load_execution_blocks": ("block", None, 100, None),
        "load_gas_fees": (None, None, None, None),
        "v2.load_rewards": ("epoch", 100, 1, 10),
        "v2.load_attestation_slots": ("slot", 100, None, 10),
        "v2.load_block": ("block", None, 1, None),
    }

    listed = {row["loader"]: row for row in bf.loaders().iter_rows(named=True)}

    for loader, values in expected.items():
        assert tuple(listed[loader][name] for name in figures) == values
    income = listed["load_income_history"]
    assert income["arguments"] == "validators, since, until"
    assert income["key"] == "validator_index, epoch"
    assert income["rows"].startswith("Income. One row per validator per epoch.")
    assert income["endpoint"] == "GET /api/v1/validator/{validators}/incomedetailhistory"
