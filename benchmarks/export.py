"""Export income to partitioned Parquet: time and memory, beside polars' own partitioned sink.

``python benchmarks/export.py [rows in millions] [way ...]``. Each way runs in processes of its own,
over the same rows, the ways in turn and that several times: seconds are medians, and memory is the
greatest peak of a process over what it had when the rows were about to be read, seen every 5 ms.

``export`` and ``sink`` are given pages of 10,000 rows, in order, as they come from a service; what
``reading`` them alone takes is subtracted for what is net. ``dataset-export`` and ``dataset-sink``
read the same rows from a dataset, which polars can do by itself.

The sink writes the same columns into the same folders, with the same codec, level, statistics and
row groups. It does less than the export: rows stay in the order in which they came, nothing is
hashed or made durable, and there is no manifest.
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

VALIDATORS = 1_000
EPOCHS_AT_ONCE = 250
PAGE = 10_000
ROUNDS = 7


def make(folder: Path, millions: int) -> None:
    """Write rows as they are in life: most amounts are alike, fees are rare."""
    rng = np.random.default_rng(0)
    schema = IncomeHistory.schema()
    size = EPOCHS_AT_ONCE * VALIDATORS
    dataset = Dataset.create(folder, meta={"service": "made up", "simulated": True})
    pages = pages_of(folder)
    pages.mkdir()
    written: list[int] = []

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
            frame = frame.select(schema.names()).cast(schema)
            for page in frame.iter_slices(PAGE):
                page.write_parquet(pages / f"{len(written):06d}.parquet", compression="lz4")
                written.append(page.height)
            yield frame

    dataset.write("income_history", frames())


def pages_of(source: Path) -> Path:
    """Return where the same rows are in files of 10,000, which take little memory to be read."""
    return source.with_name(f"{source.name}-pages")


def pages(source: Path) -> Iterator[pl.DataFrame]:
    """Yield pages of 10,000 rows, as they come from a service."""
    return map(pl.read_parquet, sorted(pages_of(source).iterdir()))


def with_pages(source: Path, _: Path) -> int:
    """Take the pages and do nothing with them: what comes before any way that is given them."""
    return sum(page.height for page in pages(source))


def with_export(source: Path, target: Path) -> int:
    """Export the pages."""
    return bf.export(pages(source), target).rows


def with_sink(source: Path, target: Path) -> int:
    """Let polars take the pages and divide them."""

    def give(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
        yield from (page.select(columns or pl.all()) for page in pages(source))

    return divided(register_io_source(give, schema=IncomeHistory.schema()), source, target)


def with_dataset(source: Path, target: Path) -> int:
    """Export the dataset."""
    return bf.export(Dataset.open(source), target).rows


def with_lazy(source: Path, target: Path) -> int:
    """Export a lazy frame over the dataset's files."""
    return bf.export(Dataset.open(source).scan("income_history"), target).rows


def with_scan_sink(source: Path, target: Path) -> int:
    """Let polars read the dataset's files and divide them."""
    return divided(Dataset.open(source).scan("income_history"), source, target)


def divided(rows: pl.LazyFrame, source: Path, target: Path) -> int:
    """Let polars write: no order by validator, no manifest, nothing hashed or made durable."""
    parts = pl.PartitionBy(target, key=["date"], include_key=False)
    rows.with_columns(date=pl.col("time").dt.date()).sink_parquet(
        parts, mkdir=True, compression="zstd", compression_level=1, row_group_size=131_072
    )
    return sum(segment.rows for segment in Dataset.open(source).segments("income_history"))


WAYS = {
    "reading": with_pages,
    "export": with_export,
    "sink": with_sink,
    "dataset-export": with_dataset,
    "dataset-sink": with_scan_sink,
    "dataset-lazy": with_lazy,
}


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


def run(way: str, source: Path, target: Path) -> dict[str, float]:
    """Measure one way in a process of its own, and remove what it wrote."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=measure, args=(way, source, target, there))
    process.start()
    told = here.recv()
    process.join()
    told["size"] = sum(path.stat().st_size for path in target.rglob("*.parquet"))
    if target.exists():
        written = (
            pl.scan_parquet(sorted(target.rglob("*.parquet"))).select(pl.len()).collect().item()
        )
        assert written == told["rows"]
        shutil.rmtree(target)
    return told


def main() -> None:
    """Measure the ways that were asked for, or all of them."""
    millions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    ways = sys.argv[2:] or list(WAYS)
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        make(source, millions)
        for _ in range(ROUNDS):
            for way in ways:
                found[way].append(run(way, source, Path(folder) / f"to-{way}"))
    print(f"{millions}M rows of 18 columns into one folder a day, {ROUNDS} rounds")
    print(f"{'way':<16}{'s':>8}{'net s':>8}{'CPU s':>8}{'net':>8}{'peak MB':>10}{'size MB':>10}")
    middle = {
        way: {key: median(told[key] for told in rounds) for key in ("wall", "cpu", "size")}
        for way, rounds in found.items()
    }
    nothing = {"wall": 0.0, "cpu": 0.0}
    for way, told in middle.items():
        reading = middle.get("reading", nothing) if way in ("export", "sink") else nothing
        seconds = "".join(
            f"{told[key]:>8.2f}{told[key] - reading[key]:>8.2f}" for key in ("wall", "cpu")
        )
        peak = max(told["peak"] for told in found[way]) / 1e6
        print(f"{way:<16}{seconds}{peak:>10.0f}{told['size'] / 1e6:>10.1f}")


if __name__ == "__main__":
    main()
