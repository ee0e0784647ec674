"""Export income to partitioned Parquet: time and memory, beside polars' own partitioned sink.

``python benchmarks/export.py [rows in millions] [way ...]``. Each way runs in a process of its own,
over the same rows: a dataset of sorted segments, as loaders keep it. Memory is the peak of the
process over what it had when the rows were about to be read, seen every 5 ms.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

VALIDATORS = 1_000
EPOCHS_AT_ONCE = 250


def make(folder: Path, millions: int) -> None:
    """Write rows as they are in life: most amounts are alike, fees are rare."""
    rng = np.random.default_rng(0)
    schema = IncomeHistory.schema()
    size = EPOCHS_AT_ONCE * VALIDATORS
    dataset = Dataset.create(folder, meta={"service": "made up", "simulated": True})

    def frames() -> Iterator[pl.DataFrame]:
        for first in range(0, millions * 1_000_000 // VALIDATORS, EPOCHS_AT_ONCE):
            epochs = np.repeat(np.arange(first, first + EPOCHS_AT_ONCE), VALIDATORS)
            columns = {
                "validator_index": np.tile(np.arange(VALIDATORS), EPOCHS_AT_ONCE),
                "epoch": epochs,
            }
            for name in schema.names()[3:]:
                usual = rng.integers(2_000, 5_000, size) if "attestation" in name else 0
                columns[name] = np.where(rng.random(size) < 0.001, rng.integers(0, 10**9), usual)
            frame = pl.DataFrame(columns).with_columns(
                bf.MAINNET.time_expr("epoch", pl.col("epoch")).alias("time")
            )
            yield frame.select(schema.names()).cast(schema)

    dataset.write("income_history", frames())


def with_export(source: Path, target: Path) -> int:
    """Export the dataset."""
    return bf.export(Dataset.open(source), target).rows


def with_frames(source: Path, target: Path) -> int:
    """Export pages of 10,000 rows, as they come from a service."""
    segments = sorted(source.rglob("*.parquet"))

    def pages() -> Iterator[pl.DataFrame]:
        for segment in segments:
            yield from pl.read_parquet(segment).iter_slices(10_000)

    return bf.export(pages(), target).rows


def with_lazy(source: Path, target: Path) -> int:
    """Export a lazy frame over the same files."""
    return bf.export(Dataset.open(source).scan("income_history"), target).rows


def with_polars(source: Path, target: Path) -> int:
    """Let polars divide them: no order by validator, no manifest, nothing made durable."""
    rows = Dataset.open(source).scan("income_history")
    parts = pl.PartitionBy(target, key=["date"], include_key=False)
    rows.with_columns(date=pl.col("time").dt.date()).sink_parquet(
        parts, mkdir=True, compression="zstd", compression_level=1, row_group_size=131_072
    )
    return rows.select(pl.len()).collect().item()


WAYS = {"export": with_export, "frames": with_frames, "lazy": with_lazy, "polars": with_polars}


def resident() -> int:
    """Return the memory of this process, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024


def measure(way: str, source: Path, target: Path, told: Connection) -> None:
    """Run one way and tell seconds, processor seconds and the peak of memory."""
    # What is loaded by any first use is not what rows cost.
    pl.scan_parquet(min(source.rglob("*.parquet"))).head(1).collect()
    bf.export(pl.DataFrame({"n": [1]}), target.with_name("warm"))
    start, peak, ended = resident(), [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    wall, cpu = time.perf_counter(), time.process_time()
    rows = WAYS[way](source, target)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    ended.set()
    watcher.join()
    told.send({"rows": rows, "wall": wall, "cpu": cpu, "peak": peak[0] - start})


def main() -> None:
    """Measure the ways that were asked for, or all of them."""
    millions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    ways = sys.argv[2:] or list(WAYS)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        make(source, millions)
        print(f"{millions}M rows of 18 columns into one folder a day")
        print(f"{'way':<10}{'s':>8}{'CPU s':>8}{'peak MB':>10}{'M rows/s':>10}{'size MB':>10}")
        for way in ways:
            target = Path(folder) / f"to-{way}"
            here, there = multiprocessing.get_context("spawn").Pipe()
            process = multiprocessing.get_context("spawn").Process(
                target=measure, args=(way, source, target, there)
            )
            process.start()
            told = here.recv()
            process.join()
            size = sum(path.stat().st_size for path in target.rglob("*.parquet"))
            if way != "polars":
                manifest = json.loads((target / "manifest.json").read_text())
                assert manifest["tables"]["income_history"]["rows"] == told["rows"]
            print(
                f"{way:<10}{told['wall']:>8.2f}{told['cpu']:>8.2f}{told['peak'] / 1e6:>10.0f}"
                f"{told['rows'] / told['wall'] / 1e6:>10.2f}{size / 1e6:>10.1f}"
            )
            shutil.rmtree(target)


if __name__ == "__main__":
    main()
