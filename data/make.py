"""Make the sample dataset: ``python data/make.py``, or ``make sample``.

It simulates the chain and writes it again in the smallest files. The same version of beaconframes
and of its libraries makes the same files.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import polars as pl

from beaconframes.dataset import Dataset
from beaconframes.simulator import SAMPLE, simulate
from beaconframes.simulator.drawn_hex import state_columns

TARGET = Path(__file__).with_name("sample")


def make_sample(target: Path) -> Dataset:
    """Simulate the sample chain, and write it to the folder *target*, which must not exist."""
    with tempfile.TemporaryDirectory() as folder:
        chain = simulate(Path(folder, "sample"), **SAMPLE)
        meta = {name: value for name, value in chain.meta.items() if name != "format_version"}
        sample = Dataset.create(target, meta=meta | state_columns(SAMPLE["seed"]))
        with sample.writing() as writer:
            writer.smallest = True
            for table in chain.tables():
                # As stored: hex columns are numbers.
                files = [chain.path / segment.path for segment in chain.segments(table)]
                writer.add(table, pl.read_parquet(files, glob=False))
    return sample


if __name__ == "__main__":
    shutil.rmtree(TARGET, ignore_errors=True)
    sizes = make_sample(TARGET).tables().values()
    sys.stdout.write(f"{TARGET}: {sum(size.bytes for size in sizes) / 1e6:.1f} MB\n")
