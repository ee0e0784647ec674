"""Export of six days of 1,000 validators through a loader, beside a loop over its days by hand.

Run: ``python benchmarks/export_loader.py``; ``--dataset`` and ``--validators`` choose another
dataset, such as one of ``beaconframes simulate``. Both cases read it, and write a Parquet file a
day, sorted by validator and epoch. The export also finds missing rows, checks invariants, computes
checksums, syncs files to disk and writes a manifest. Each case has its own process; rounds
alternate, and the rows must be equal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from sizes import choose

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.simulator import open_sample

VALIDATORS, DAYS = choose((1_000, 6), (100, 1))
ROUNDS = choose(5, 1)
EPOCHS_OF_DAY = 225


def with_export(dataset: Dataset, validators: int, target: Path, first: int, last: int) -> None:
    """Export through the loader."""
    with bf.open(dataset):
        bf.export(
            bf.load_income_history, target, validators=range(validators), since=first, until=last
        )


def with_loop(dataset: Dataset, validators: int, target: Path, first: int, last: int) -> None:
    """Read, sort and write one day after the other with polars."""
    rows = dataset.scan("income_history")
    rows = rows.filter(pl.col("validator_index") < validators)
    for start in range(first, last + 1, EPOCHS_OF_DAY):
        day = rows.filter(pl.col("epoch").is_between(start, start + EPOCHS_OF_DAY - 1)).collect()
        day = day.sort("validator_index", "epoch")
        folder = target / f"date={day['time'][0].date()}"
        folder.mkdir(parents=True)
        day.write_parquet(folder / "00000.parquet", compression="zstd", compression_level=1)


CASES = {"export": with_export, "loop": with_loop}


def main() -> None:
    """Measure both cases in alternation, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, help="folder of a dataset; default: the sample")
    parser.add_argument("--validators", type=int, default=VALIDATORS)
    parser.add_argument("--case", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    dataset = Dataset.open(given.dataset) if given.dataset else open_sample()
    if given.case:
        case, target, *ends = given.case
        start = time.process_time()
        CASES[case](dataset, given.validators, Path(target), *map(int, ends))
        print(json.dumps(time.process_time() - start))
        return
    with bf.open(dataset) as sample:
        # Whole days, of which all rows are final.
        end = (sample.chain_head.latest("epoch", finalized=True) + 1) // EPOCHS_OF_DAY
    first, last = (end - DAYS) * EPOCHS_OF_DAY, end * EPOCHS_OF_DAY - 1
    taken: dict[str, list[float]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as home:
        for number in range(ROUNDS):
            frames = []
            for case, found in taken.items():
                target = Path(home) / f"{case}-{number}"
                command = [sys.executable, __file__, "--validators", str(given.validators)]
                command += ["--dataset", str(dataset.path)]
                command += ["--case", case, str(target), str(first), str(last)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                found.append(json.loads(done.stdout.splitlines()[-1]))
                files = target.rglob("*.parquet")
                frame = pl.read_parquet([*files], hive_partitioning=False)
                frames.append(frame.sort("validator_index", "epoch"))
            assert frames[0].equals(frames[1])
    one, other = (statistics.median(found) for found in taken.values())
    print(
        f"{frames[0].height:,} rows: bf.export {one:.2f} s, by hand {other:.2f} s of CPU: "
        f"{one / other:.2f} times"
    )


if __name__ == "__main__":
    main()
