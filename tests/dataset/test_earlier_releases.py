"""What earlier releases wrote: what this one reads, and what it refuses by name.

The archive has what the sources of 0.1.0 (commit 94c34b98) wrote of a simulated chain, and as JSON
the frames that they returned: a store and an export of the income of validators 0 to 3 in epochs 1
to 4, the rows of epochs 1 to 3 in the store, and an export of a name.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.errors import DatasetError

ARCHIVE = Path(__file__).resolve().parents[1] / "recordings" / "0.1.0.zip"


@pytest.fixture
def earlier(tmp_path):
    """The folder with what 0.1.0 wrote."""
    shutil.unpack_archive(ARCHIVE, tmp_path)
    return tmp_path / "0.1.0"


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


def test_a_column_that_0_1_0_did_not_have_is_named(earlier):
    """The column `asked` of names is now `requested`: the error names table and column."""
    with pytest.raises(DatasetError, match=r"table names .*: requested is missing"):
        bf.open(earlier / "names")
