"""Make the sample dataset: ``python data/make.py``, or ``make sample``.

It simulates the chain and writes it again in the smallest files. The same version of beaconframes
and of its libraries makes the same files, and a table whose rows are the same keeps its bytes.

The file ``fingerprint.txt`` of the sample has a hash of what determines its rows. While it is
that of the present sources, nothing is written.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import polars as pl

from beaconframes.dataset import Dataset
from beaconframes.simulator import SAMPLE, fingerprint_rows, simulate
from beaconframes.simulator.drawn_hex import state_columns

TARGET = Path(__file__).with_name("sample")
FINGERPRINT = TARGET / "fingerprint.txt"


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


def is_current() -> bool:
    """Return whether the sample has the rows that the present sources make."""
    return FINGERPRINT.is_file() and FINGERPRINT.read_text("utf-8").strip() == fingerprint_rows()


if __name__ == "__main__":
    if is_current():
        sys.exit()
    shutil.rmtree(TARGET, ignore_errors=True)
    sizes = make_sample(TARGET).tables().values()
    FINGERPRINT.write_text(f"{fingerprint_rows()}\n", "utf-8")
    sys.stdout.write(f"{TARGET}: {sum(size.bytes for size in sizes) / 1e6:.1f} MB\n")
