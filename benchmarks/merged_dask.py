"""Income of 50 million rows of a merged dataset by day: one worker of Dask, beside two.

Run: ``python benchmarks/merged_dask.py``. The rows are copies of a simulated chain with other
validator indices. Two datasets have half of them each, as parts of an index have, and are merged.
Each worker is a process with one thread. Rounds alternate; the sums must be equal.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
from pathlib import Path

from sizes import choose

import beaconframes as bf
from beaconframes.dataset import Dataset, Grid
from beaconframes.simulator import simulate

ROUNDS = choose(3, 1)
VALIDATORS, EPOCHS = choose((2_000, 675), (100, 450))
GRID = Grid("validator_index", "epoch", ("validator_index", "epoch"))


def write_half(chain: Dataset, folder: Path, copies: range) -> Path:
    """Write *copies* of the chain's income, each with other validators, into a dataset."""
    income = chain.scan("income_history").collect()
    names = ("chain", "service", "simulated")
    dataset = Dataset.create(folder, meta={name: chain.meta.get(name) for name in names})
    for copy in copies:
        rows = income.with_columns(validator_index=income["validator_index"] + copy * VALIDATORS)
        epochs = rows.group_by("validator_index").agg(
            first=rows["epoch"].min(), last=rows["epoch"].max()
        )
        covered = {str(index): ((first, last),) for index, first, last in epochs.iter_rows()}
        with dataset.writing() as writer:
            writer.add_covered("income_history", rows, GRID, covered)
    return folder


def measure(files: list[str], workers: int) -> tuple[int, float]:
    """Return the sum of net income, and the seconds of wall time, with so many *workers*."""
    import dask.dataframe as dd
    from distributed import Client

    with Client(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
    ):
        frame = dd.read_parquet(files, dtype_backend="pyarrow", calculate_divisions=False)
        start = time.perf_counter()
        days = bf.analysis.income(frame, every="day", by="validator_index").compute()
        return int(sum(days["net_income_wei"])), time.perf_counter() - start


def main() -> None:
    """Write, merge, and sum with one worker and with two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=choose(50_000_000, 90_000))
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        chain = simulate(home / "chain", validators=VALIDATORS, epochs=EPOCHS, seed=1)
        copies = -(-rows // chain.tables()["income_history"].rows)
        halves = [range(copies // 2), range(copies // 2, copies)]
        parts = [write_half(chain, home / str(half.start), half) for half in halves if half]
        start = time.perf_counter()
        merged = Dataset.merge(parts, home / "merged")
        seconds = time.perf_counter() - start
        segments = merged.segments("income_history")
        files = [str(merged.path / segment.path) for segment in segments]
        print(
            f"{sum(segment.rows for segment in segments):,} rows in {len(files)} files, "
            f"{sum(segment.bytes for segment in segments) / 1e6:,.0f} MB, merged in {seconds:.1f} s"
        )
        taken: dict[int, list[float]] = {1: [], 2: []}
        sums = set()
        for _ in range(ROUNDS):
            for workers, found in taken.items():
                total, seconds = measure(files, workers)
                sums.add(total)
                found.append(seconds)
        assert len(sums) == 1, sums
        one, two = (statistics.median(found) for found in taken.values())
        print(f"one worker {one:.1f} s, two workers {two:.1f} s: {one / two:.2f} times as fast")


if __name__ == "__main__":
    main()
