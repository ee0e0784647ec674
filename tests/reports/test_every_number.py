"""Every column of every frame of a report equals a polars query on the tables of the dataset."""

import math
import warnings

import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset

from ..support.node_index import open_index
from ..support.report_queries import QUERIES, Source
from .conftest import FIRST, LAST, MINE, PRICES


def compare(frames, source):
    """Compare the frames of a report with the queries: their names, columns, rows and values."""
    expected = {name: query(source) for name, query in QUERIES.items()}
    missing = {name for name, rows in expected.items() if rows is None}
    assert {*QUERIES, "facts"} - missing == set(frames)
    for name in sorted({*QUERIES} - missing):
        check_rows(name, expected[name], frames[name])


def check_rows(name, expected, found):
    """Compare all columns: whole numbers and texts exactly, ratios to nine digits."""
    columns = [column for column in found.columns if (name, column) != ("inputs", "requests")]
    if name == "inputs":
        columns.remove("reason")
    assert set(expected.columns) == set(columns), name
    assert expected.height == found.height, name
    for column in columns:
        for row, (wanted, value) in enumerate(zip(expected[column], found[column], strict=True)):
            assert is_equal(wanted, value), f"{name}, {column}, row {row}: {wanted} != {value}"


def is_equal(wanted, value):
    if isinstance(wanted, float) and isinstance(value, float):
        return math.isclose(wanted, value, rel_tol=1e-9, abs_tol=1e-12)
    return wanted == value and (wanted is None) == (value is None)


def load(path, mine, **options):
    """Make a report of a dataset; return it, its source, and its number of requests."""
    with warnings.catch_warnings(), bf.open(path) as explorer:
        warnings.simplefilter("error")
        report = bf.report(mine, explorer=explorer, **options)
        head, clock, requests = explorer.chain_head, explorer.chain, explorer.requests
    epochs = report.frames["summary"].row(0, named=True)
    source = Source(
        Dataset.open(path),
        list(mine),
        epochs["first_epoch"],
        epochs["last_epoch"],
        head.latest("epoch"),
        head.latest("epoch", finalized=True),
        clock,
        groups=options.get("groups") or {},
    )
    return report, source, requests


def test_every_number_of_the_simulated_chain(made, chain):
    """Two groups, with prices."""
    head, clock = made.inputs.explorer.chain_head, made.inputs.chain
    final = head.latest("epoch", finalized=True)
    source = Source(
        chain, MINE, FIRST, LAST, head.latest("epoch"), final, clock,
        groups={"A": MINE[:3], "B": MINE[3:]}, prices=PRICES,
    )  # fmt: skip
    compare(made.report.frames, source)


@pytest.mark.more
@pytest.mark.parametrize("count", [3, 200])
def test_every_number_of_the_sample(count):
    """Three groups of 200 validators, among them some that had not yet deposited."""
    mine = range(1000 - count, 1000) if count > 100 else range(count)
    groups = {"A": [*mine][:90], "B": [*mine][90:150], "C": [*mine][150:]} if count > 100 else {}
    report, source, requests = load("data/sample", mine, since="3d", groups=groups or None)
    compare(report.frames, source)
    assert requests == report.frames["inputs"]["requests"].sum()


@pytest.mark.more
@pytest.mark.parametrize("count", [3, 73])
def test_every_number_of_an_index(tmp_path_factory, count):
    """All validators of an indexed chain: new ones, exits and a slashing among them."""
    folder = open_index(tmp_path_factory, "electra", 11)
    report, source, requests = load(folder, range(count), since=2, until=9)
    source.offset = 1
    compare(report.frames, source)
    assert requests == report.frames["inputs"]["requests"].sum()
