"""Stored simulations: found again by their fingerprint, removed only when no process uses them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from beaconframes import simulator
from beaconframes.simulator import open_or_simulate, simulation_store
from beaconframes.v1.names import Names

SMALL = {"validators": 50, "epochs": 8, "seed": 3}


@pytest.fixture
def new_fingerprint(monkeypatch):
    """Let the simulator have another fingerprint, as after a change of its sources."""

    def change(text):
        monkeypatch.setattr(simulation_store, "fingerprint", lambda: text)

    return change


def folders(tmp_path):
    return {folder.name for folder in tmp_path.iterdir()}


class TestFingerprint:
    def test_a_new_column_changes_it(self, monkeypatch):
        """Rows of a table that has changed are simulated again."""
        before = simulation_store.fingerprint.__wrapped__()
        monkeypatch.setattr(Names, "columns", Names.columns[:-1])

        assert before != simulation_store.fingerprint.__wrapped__()

    def test_a_changed_source_changes_it(self, monkeypatch, tmp_path):
        """Rows are simulated again when any file of the simulator has changed."""
        for name in (
            "simulator/blocks.py",
            "dataset/ledger.py",
            "calendar.py",
            "v1/_proposal_luck.py",
        ):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("before")
        monkeypatch.setattr(simulation_store, "_PACKAGE", tmp_path)
        found = {simulation_store.fingerprint.__wrapped__()}
        for name in (
            "simulator/blocks.py",
            "dataset/ledger.py",
            "calendar.py",
            "v1/_proposal_luck.py",
        ):
            (tmp_path / name).write_text("after")
            found.add(simulation_store.fingerprint.__wrapped__())

        assert 5 == len(found)

    def test_that_of_the_rows_changes_with_the_rows_only(self, monkeypatch, tmp_path):
        """Another way to store them leaves the rows of the sample as they are."""
        (tmp_path / "derive").mkdir()
        (tmp_path / "dataset").mkdir()
        monkeypatch.setattr(simulation_store, "_PACKAGE", tmp_path)
        found = [simulation_store.fingerprint_rows()]
        for name in ("dataset/ledger.py", "derive/rankings.py"):
            (tmp_path / name).write_text("after")
            found.append(simulation_store.fingerprint_rows())
        monkeypatch.setattr(Names, "columns", Names.columns[:-1])
        found.append(simulation_store.fingerprint_rows())

        assert found[0] == found[1]
        assert 3 == len(set(found))

    def test_every_pattern_finds_sources(self):
        """A pattern without files would silently leave out sources that have moved."""
        package = simulation_store._PACKAGE

        patterns = (*simulation_store._SOURCES_OF_ROWS, *simulation_store._SOURCES_OF_FILES)
        assert all(any(package.glob(pattern)) for pattern in patterns)
        assert package / "simulator" / "derived" / "pool.py" in package.glob("simulator/**/*.py")

    @pytest.mark.more
    def test_it_is_the_same_in_another_process(self):
        """Nothing in it depends on the run, such as addresses or the order of a set."""
        code = "from beaconframes.simulator import fingerprint; print(fingerprint())"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        assert simulator.fingerprint() == done.stdout.strip()


class TestStore:
    @pytest.mark.more
    def test_simulated_once(self, tmp_path, monkeypatch):
        """The second call opens what the first has simulated."""
        first = open_or_simulate(tmp_path, "chain", **SMALL)
        monkeypatch.setattr(simulation_store, "simulate", None)
        second = open_or_simulate(tmp_path, "chain", **SMALL)

        assert first.path == second.path
        assert 8 == second.scan("epochs").select(pl.len()).collect().item()
        assert {first.path.name} == folders(tmp_path)

    def test_arguments_are_part_of_the_name(self, tmp_path):
        """Other arguments mean other rows."""
        first = open_or_simulate(tmp_path, "chain", **SMALL)
        second = open_or_simulate(tmp_path, "chain", **SMALL | {"epochs": 9})

        assert first.path != second.path
        assert 9 == second.scan("epochs").select(pl.len()).collect().item()

    def test_an_unused_one_is_removed(self, tmp_path, new_fingerprint):
        """Simulations of another fingerprint are removed; all else in the folder stays."""
        for name in ("chain-4", "chain-left-from-a-crash", "exports"):
            (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / "chain-file").touch()
        found = open_or_simulate(tmp_path, "chain", **SMALL)

        assert {found.path.name, "exports", "chain-file"} == folders(tmp_path)

    @pytest.mark.more
    def test_one_in_use_stays(self, tmp_path, new_fingerprint):
        """A process that has opened a simulation can read it until it ends."""
        code = (
            "import sys; from pathlib import Path\n"
            "from beaconframes.simulator import open_or_simulate\n"
            f"dataset = open_or_simulate(Path(sys.argv[1]), 'chain', **{SMALL})\n"
            "print(dataset.path.name, flush=True)\n"
            "input()\n"
            "print(dataset.scan('epochs').collect().height)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            name = other.stdout.readline().strip()
            new_fingerprint("after a change")
            mine = open_or_simulate(tmp_path, "chain", **SMALL)
            assert {name, mine.path.name} == folders(tmp_path)
            rows, _ = other.communicate("\n")
        assert "8\n" == rows

        new_fingerprint("after another change")
        latest = open_or_simulate(tmp_path, "chain", **SMALL)
        # This process uses its earlier one still.
        assert {mine.path.name, latest.path.name} == folders(tmp_path)

    def test_one_that_was_removed_is_simulated_again(self, tmp_path):
        """A user may empty the cache while the process runs."""
        first = open_or_simulate(tmp_path, "chain", **SMALL)
        first.path.rename(tmp_path / "moved")
        second = open_or_simulate(tmp_path, "chain", **SMALL)

        assert first.path == second.path
        assert 8 == second.scan("epochs").select(pl.len()).collect().item()


def test_the_live_sample_passes_through_the_present():
    """E9: it starts two days ago or earlier, and ends at a midnight, more than a day ahead."""
    arguments = simulation_store.sample_arguments(live=True)
    length = timedelta(seconds=arguments["epochs"] * 384)
    now = datetime.now(UTC)

    assert arguments["ends"].time() == datetime.min.time()
    assert arguments["ends"] - length <= now - timedelta(days=2)
    assert now + timedelta(days=1) < arguments["ends"]
