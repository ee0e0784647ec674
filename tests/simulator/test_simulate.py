"""Test the function simulate: arguments, reproducibility and files."""

from datetime import UTC, datetime
from types import SimpleNamespace

import polars as pl
import pytest

from beaconframes.calendar import Chain
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, UsageError
from beaconframes.simulator import simulate, simulation

from ..support.simulated_chain import KEY, SimulatedChain, decode_pixels, select_income_keys

SMALL = {"validators": 60, "epochs": 12}


def list_hashes(dataset):
    """Return the hash of each segment by its path."""
    return {segment.path: segment.sha256 for segment in dataset.segments()}


@pytest.mark.more
def test_same_arguments_write_the_same_bytes(tmp_path):
    """Two runs write the same files, byte for byte; another seed writes others."""
    one, two, other = (
        simulate(tmp_path / name, seed=seed, history_days=3, **SMALL)
        for name, seed in (("one", 5), ("two", 5), ("other", 6))
    )

    assert list_hashes(one) == list_hashes(two)
    assert not set(list_hashes(one).values()) & {
        s.sha256 for s in other.segments() if s.rows > 1 and s.table != "slashing_events"
    }


@pytest.mark.more
def test_detailed_epochs_start_at_noon_of_30_september_2026(tmp_path):
    """Detailed epochs start at noon of 30 September 2026, with and without history days."""
    for days in (0, 3):
        data = simulate(tmp_path / f"{days}", history_days=days, **SMALL)
        epochs = data.scan("epochs").collect()
        assert datetime(2026, 9, 30, 12, 0, 23, tzinfo=UTC) == epochs["time"][0]
        assert 225 * days == epochs["epoch"][0] == data.meta["first_epoch"]


def test_any_chain_can_be_simulated(tmp_path):
    """Any clock is possible: half-length slots, 16 per epoch, 64 seats; or a known chain."""
    known = simulate(tmp_path / "known", chain="hoodi", **SMALL)
    assert datetime(2025, 3, 17, 12, 10, tzinfo=UTC) == (
        known.scan("blocks").select("time").collect().item(0, 0)
    )
    chain = Chain(
        "devnet",
        genesis=datetime(2026, 1, 1, tzinfo=UTC),
        seconds_per_slot=6,
        slots_per_epoch=16,
        epochs_per_sync_period=8,
        sync_committee_size=64,
    )
    data = simulate(tmp_path / "x", chain=chain, **SMALL)

    assert (12 * 16, 3 * 64) == tuple(
        data.scan(table).select(pl.len()).collect().item() - extra
        for table, extra in (
            ("blocks", data.scan("slashing_events").filter(pl.col("kind") == "proposer")
             .select(pl.len()).collect().item()),
            ("sync_committees", 0),
        )
    )  # fmt: skip
    assert ("devnet", 6) == (data.meta["chain"]["name"], data.meta["chain"]["seconds_per_slot"])
    assert {"0x" + "f" * 16} >= {
        b for b in data.scan("blocks").collect()["sync_aggregate_bits"] if b and "f" * 16 in b
    }


@pytest.mark.more
@pytest.mark.parametrize("size", [(50, 8), (64, 9), (97, 30)])
def test_the_smallest_chains_are_consistent(tmp_path, size):
    """The smallest chains have income for active validators, and the wall of their blocks."""
    simulated = SimulatedChain(simulate(tmp_path / "x", validators=size[0], epochs=size[1]))

    assert size[0] == simulated.validators.height
    assert simulated.income_history.select(KEY).equals(select_income_keys(simulated))
    assert decode_pixels(simulated.blocks) == simulated.graffiti_wall.drop("time").rows()


@pytest.mark.parametrize(
    "wrong",
    [
        {"validators": 49},
        {"validators": True},
        {"epochs": 7},
        {"epochs": 10.5},
        {"seed": -1},
        {"history_days": "3"},
        {"validators": 99_999_999_999},
        {"epochs": 99_999_999_999},
    ],
)
def test_invalid_arguments_write_nothing(tmp_path, wrong):
    """The error names an invalid number of validators, epochs or days, and writes nothing."""
    with pytest.raises(UsageError, match=next(iter(wrong))):
        simulate(tmp_path / "x", **wrong)

    assert [] == list(tmp_path.iterdir())


def test_the_target_must_be_new_or_empty(tmp_path):
    """A folder with content is not changed; an empty one is used."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DatasetError, match="already exists"):
        simulate(tmp_path, **SMALL)
    (tmp_path / "empty").mkdir()

    assert 60 == simulate(tmp_path / "empty", **SMALL).meta["validators"]
    assert {"file", "empty"} == {path.name for path in tmp_path.iterdir()}


def test_an_interrupted_simulation_leaves_no_files(tmp_path, monkeypatch):
    """An interrupted simulation leaves nothing behind."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation._Simulation, "_finish", stop)
    with pytest.raises(KeyboardInterrupt):
        simulate(tmp_path / "x", **SMALL)

    assert [] == list(tmp_path.iterdir())


@pytest.mark.more
def test_a_simulated_dataset_can_be_opened(tmp_path):
    """The returned dataset can be opened like any other."""
    data = simulate(tmp_path / "x", **SMALL)
    again = Dataset.open(tmp_path / "x")

    assert data.meta == again.meta
    assert SimpleNamespace(**again.meta).simulated is True
