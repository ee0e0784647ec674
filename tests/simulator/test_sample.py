"""The sample dataset of the package: what it holds, how it is found, how fast it is served."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import progress
from beaconframes.answers.dataset_source import open_dataset
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, StoreUnavailable, UsageError
from beaconframes.simulator import (
    SAMPLE,
    fingerprint_rows,
    open_or_simulate,
    open_sample,
    simulate,
    simulation_store,
)
from beaconframes.v1 import ENDPOINTS

MAX_BYTES = 12_000_000
MAKE = Path(__file__).parents[2] / "data" / "make.py"
START = """
import socket
connect = socket.socket.connect
def connect_locally(self, address):
    assert address[0] == "127.0.0.1", address
    return connect(self, address)
socket.socket.connect = connect_locally
import beaconframes as bf
from beaconframes.simulator import simulation_store
simulation_store.simulate = None
with bf.local():
    assert bf.load_income_history(range(250), since=-3).height > 700
"""


def read_script():
    """The module of ``make sample``."""
    spec = importlib.util.spec_from_file_location("make_sample", MAKE)
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    return make


@pytest.fixture
def simulations(monkeypatch, chain):
    """The arguments of the chains that would be simulated; nothing is."""
    found = []

    def open_or_simulate(folder, name, **arguments):
        found.append((name, arguments))
        return chain

    monkeypatch.setattr(simulation_store, "open_or_simulate", open_or_simulate)
    return found


class TestContent:
    def test_it_can_be_served_and_fits_into_a_wheel(self):
        """Its tables have the columns that the loaders declare."""
        sample = open_dataset(open_sample().path)
        assert SAMPLE.items() <= sample.meta.items()
        assert sum(size.bytes for size in sample.tables().values()) < MAX_BYTES
        listed = {segment.path for segment in sample.segments()}
        files = {path.relative_to(sample.path).as_posix() for path in sample.path.glob("*/*")}
        assert files == listed
        assert [] == sample.verify()

    def test_it_is_made_of_the_present_sources(self):
        """Of the simulator, the derived tables and the declarations: else its rows are old."""
        stored = (open_sample().path / "fingerprint.txt").read_text().strip()
        assert fingerprint_rows() == stored, "run `make sample`, and commit data/sample"

    def test_it_has_the_rows_of_every_loader(self):
        """`bf.local()` answers every endpoint of V1."""
        tables = open_sample().tables()
        missing = {e.table.table_name for e in ENDPOINTS if not tables.get(e.table.table_name)}
        assert not missing, "run `make sample`, and commit data/sample"

    @pytest.mark.long
    def test_it_is_what_the_simulator_makes(self, tmp_path):
        """If this fails, run ``make sample`` and commit the new files."""
        sample = open_sample()
        made = simulate(tmp_path / "made", **SAMPLE)
        assert sample.meta == made.meta
        assert list(sample.tables()) == list(made.tables())
        for table in made.tables():
            rows = [one.scan(table).collect() for one in (sample, made)]
            assert rows[0].equals(rows[1]), table

    def test_it_is_made_again_only_if_its_sources_have_changed(self, monkeypatch, tmp_path):
        """``make sample`` compares the fingerprint, and that of a new sample is missing."""
        make = read_script()
        assert make.FINGERPRINT == open_sample().path / "fingerprint.txt"
        monkeypatch.setattr(make, "FINGERPRINT", tmp_path / "fingerprint.txt")
        assert not make.is_current()
        make.FINGERPRINT.write_text(f"{fingerprint_rows()}\n")
        assert make.is_current()
        monkeypatch.setattr(make, "fingerprint_rows", lambda: "after a change")
        assert not make.is_current()


class TestPlace:
    def test_the_package_has_it(self, simulations):
        assert open_sample().path in simulation_store.SAMPLE_FOLDERS
        assert [] == simulations

    def test_the_environment_names_another_one(self, monkeypatch, chain):
        monkeypatch.setenv("BEACONFRAMES_SAMPLE", str(chain.path))
        with bf.local() as served:
            assert served.service.dataset.path == chain.path

    def test_a_folder_that_is_no_dataset_is_an_error(self, monkeypatch, tmp_path):
        monkeypatch.setenv("BEACONFRAMES_SAMPLE", str(tmp_path / "missing"))
        with pytest.raises(DatasetError, match="missing"):
            bf.local()

    def test_without_it_the_chain_is_simulated(self, monkeypatch, simulations):
        """In a package that is a ZIP file, for example."""
        monkeypatch.setattr(simulation_store, "SAMPLE_FOLDERS", ())
        open_sample()
        assert [("sample", SAMPLE)] == simulations

    def test_a_chain_that_cannot_be_stored_is_simulated_in_a_temporary_folder(
        self, monkeypatch, tmp_path
    ):
        """In a container with a read-only home; a warning says so."""
        (blocked := tmp_path / "file").write_text("")
        with pytest.warns(StoreUnavailable, match=r"cannot be stored: .*file"):
            made = open_or_simulate(blocked / "cache", "chain", validators=64, epochs=8)

        assert 8 == made.scan("epochs").select(pl.len()).collect().item()
        assert not made.path.is_relative_to(tmp_path)

    def test_another_size_is_simulated(self, simulations):
        with bf.local(validators=2000):
            pass
        with bf.local(validators=60, epochs=450):
            pass
        assert [
            ("sample-2000-validators", SAMPLE | {"validators": 2000}),
            ("sample-60-validators-450-epochs", SAMPLE | {"validators": 60, "epochs": 450}),
        ] == simulations

    def test_a_dataset_has_a_size(self, chain):
        with pytest.raises(UsageError, match="epochs= is the size of a chain to simulate"):
            bf.local(chain, epochs=450)


def test_the_first_start_simulates_and_stores_nothing(tmp_path):
    """In an empty home folder, without a network: so it takes seconds, not a minute."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BEACONFRAMES_", "XDG_"))
    }
    subprocess.run(
        [sys.executable, "-W", "error", "-c", START],
        check=True,
        env=environment | {"HOME": str(tmp_path)},
    )
    assert [] == list(tmp_path.rglob("sample*"))


def test_a_simulation_shows_its_progress_after_a_second(monkeypatch, tmp_path):
    bars = []

    class Bar:
        def __init__(self, *arguments, **options):
            self.made, self.count = (arguments, options), 0
            bars.append(self)

        def update(self):
            self.count += 1

        def close(self):
            pass

    monkeypatch.setattr(progress, "new_bar", Bar)
    monkeypatch.setattr(progress, "is_interactive", lambda: True)
    simulate(tmp_path / "chain", validators=50, epochs=8)
    (bar,) = bars
    assert (("simulating", 8, "epochs"), {"delay": 1.0}) == bar.made
    assert 8 == bar.count


class TestSmallestFiles:
    FRAME = pl.DataFrame(
        {
            "slot": range(5000),
            "time": pl.Series([n * 12_000_000 for n in range(5000)]).cast(pl.Datetime("us", "UTC")),
            "status": ["proposed", "missed"] * 2500,
            "amount_wei": pl.Series([None, 10**27] * 2500).cast(pl.Decimal(28, 0)),
            "validators": [[1, 2], [], None, [3]] * 1250,
            "share": [0.5, None] * 2500,
            "slashed": [True, False] * 2500,
        }
    )

    @pytest.fixture
    def usual(self, tmp_path):
        dataset = Dataset.create(tmp_path / "usual", meta={})
        dataset.write("blocks", [self.FRAME])
        dataset.write("epochs", [self.FRAME.clear()])
        return dataset

    def copy(self, dataset, folder):
        copy = Dataset.create(folder, meta={})
        read_script().copy_smallest(dataset, copy)
        return copy

    def test_they_hold_the_same_rows_in_less_space(self, usual, tmp_path):
        small = self.copy(usual, tmp_path / "small")
        for table in ("blocks", "epochs"):
            assert small.schema(table) == usual.schema(table)
            assert small.scan(table).collect().equals(usual.scan(table).collect())
        assert small.tables()["blocks"].bytes < usual.tables()["blocks"].bytes / 4
        small.check_files()
        assert [] == small.verify()

    def test_the_same_rows_give_the_same_bytes(self, usual, tmp_path):
        first, second = (self.copy(usual, tmp_path / name) for name in ("1", "2"))
        assert first.segments() == second.segments()
