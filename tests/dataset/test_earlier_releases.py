"""What earlier releases wrote: what this one reads, and what it refuses by name.

The archive has what the sources of 0.1.0 (commit 94c34b98) wrote of a simulated chain, and as JSON
the frames that they returned: a store and an export of the income of validators 0 to 3 in epochs 1
to 4, the rows of epochs 1 to 3 in the store, an export of a name, and the first address balances of
the simulation.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset.ledger import FORMAT
from beaconframes.dataset.published import FORMAT_VERSION
from beaconframes.errors import DatasetError

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "tests" / "recordings" / "0.1.0.zip"


@pytest.fixture
def earlier(tmp_path):
    """The folder with what 0.1.0 wrote."""
    shutil.unpack_archive(ARCHIVE, tmp_path)
    return tmp_path / "0.1.0"


def test_the_page_on_stability_states_the_numbers_of_the_formats():
    """Both formats have the number that docs/stability.md names."""
    page = ROOT.joinpath("docs", "stability.md").read_text()

    assert FORMAT == FORMAT_VERSION
    assert f"Both numbers are {FORMAT}." in page


def load_income():
    """Load the rows that the export and the store have."""
    return bf.load_income_history(range(4), since=1, until=4)


def returned(folder, name, schema):
    """Return the frame that 0.1.0 returned for the same load."""
    return pl.read_json(folder / f"{name}.json", schema=schema)


def test_an_export_of_0_1_0_is_read(earlier):
    """Every row and value of the export is that of 0.1.0."""
    with bf.open(earlier / "export"):
        income = load_income()

    assert 16 == income.height
    assert income.equals(returned(earlier, "income", income.schema))


def test_a_store_of_0_1_0_is_read(earlier):
    """Every row and value of the store is that of 0.1.0, without requests."""
    service = bf.Dataset.open(earlier / "store").meta["service"]
    with bf.connect(service, store=earlier / "store", offline=True):
        income, epochs = load_income(), bf.load_epochs(since=1, until=3)

    assert (16, 3) == (income.height, epochs.height)
    assert income.equals(returned(earlier, "income", income.schema))
    assert epochs.equals(returned(earlier, "epochs", epochs.schema))


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("names", "table names .*: requested is missing"),
        ("simulation", "table address_balances .*: balance_wei is missing"),
    ],
)
@pytest.mark.parametrize("read", [bf.open, bf.local])
def test_tables_of_0_1_0_with_other_columns_are_named(earlier, read, folder, message):
    """Names and simulations are refused: the error names the table and a missing column."""
    with pytest.raises(DatasetError, match=message):
        read(earlier / folder)
