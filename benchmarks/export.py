"""Time and memory of exports to partitioned Parquet, compared with the partitioned sink of polars.

``python benchmarks/export.py [rows in millions] [case ...]``. Each case runs in its own process
over the same rows; the cases alternate for several rounds. Seconds are medians. Memory is the
highest peak of a process above its memory before reading, sampled every 5 ms.

``export`` and ``sink`` get pages of 10,000 rows in order, as a service sends them. The time of
``reading`` the pages alone is subtracted for the net time. ``dataset-export`` and ``dataset-sink``
read the same rows from a dataset, which polars can read itself. ``file-export`` and ``file-sink``
write them into one file, sorted by key.

The sink writes the same columns to the same folders, with the same codec, level, statistics and row
groups. It does less than the export: it does not sort rows, compute checksums, sync files to disk
or write a manifest. A day of 2,000 validators has more rows than a file, so that the
export also cuts it.
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
from sizes import choose

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

VALIDATORS = 2_000
EPOCHS_AT_ONCE = 125
PAGE = 10_000
ROUNDS = choose(7, 1)


def make(folder: Path, millions: float) -> None:
    """Write rows like real ones: most amounts are similar, fees are rare."""
    rng = np.random.default_rng(0)
    schema = IncomeHistory.schema()
    size = EPOCHS_AT_ONCE * VALIDATORS
    dataset = Dataset.create(folder, meta={"service": "synthetic", "simulated": True})
    pages = pages_of(folder)
    pages.mkdir()
    written: list[int] = []

    def frames() -> Iterator[pl.DataFrame]:
        for first in range(0, int(millions * 1_000_000) // VALIDATORS, EPOCHS_AT_ONCE):
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
    """Return the folder with the same rows in files of 10,000 rows."""
    return source.with_name(f"{source.name}-pages")


def pages(source: Path) -> Iterator[pl.DataFrame]:
    """Yield pages of 10,000 rows, as a service sends them."""
    return map(pl.read_parquet, sorted(pages_of(source).iterdir()))


def with_pages(source: Path, _: Path) -> int:
    """Read the pages only: every case with pages includes this."""
    return sum(page.height for page in pages(source))


def scan_pages(source: Path) -> pl.LazyFrame:
    """Return the pages as a lazy frame."""

    def read_pages(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
        yield from (page.select(columns or pl.all()) for page in pages(source))

    return register_io_source(read_pages, schema=IncomeHistory.schema())


def with_export(source: Path, target: Path) -> int:
    """Export the pages."""
    return bf.export(scan_pages(source), target).rows


def with_sink(source: Path, target: Path) -> int:
    """Write the pages with the sink of polars."""
    return write_with_sink(scan_pages(source), source, target)


def with_dataset(source: Path, target: Path) -> int:
    """Export the dataset."""
    return bf.export(Dataset.open(source), target).rows


def with_lazy(source: Path, target: Path) -> int:
    """Export a lazy frame over the dataset's files."""
    return bf.export(Dataset.open(source).scan("income_history"), target).rows


def with_scan_sink(source: Path, target: Path) -> int:
    """Read and write with polars."""
    return write_with_sink(Dataset.open(source).scan("income_history"), source, target)


def with_file(source: Path, target: Path) -> int:
    """Export the dataset's rows into one file."""
    return bf.export(Dataset.open(source).scan("income_history"), target / "rows.parquet").rows


def with_file_sink(source: Path, target: Path) -> int:
    """Sort the dataset's rows, and write them into one file with polars."""
    target.mkdir()
    rows = Dataset.open(source).scan("income_history").sort("validator_index", "epoch")
    rows.sink_parquet(
        target / "rows.parquet", compression="zstd", compression_level=1, row_group_size=131_072
    )
    return sum(segment.rows for segment in Dataset.open(source).segments("income_history"))


def write_with_sink(rows: pl.LazyFrame, source: Path, target: Path) -> int:
    """Write with the sink of polars: no sorting, no manifest, no checksums, no sync to disk."""
    parts = pl.PartitionBy(target, key=["date"], include_key=False)
    rows.with_columns(date=pl.col("time").dt.date()).sink_parquet(
        parts, mkdir=True, compression="zstd", compression_level=1, row_group_size=131_072
    )
    return sum(segment.rows for segment in Dataset.open(source).segments("income_history"))


CASES = {
    "reading": with_pages,
    "export": with_export,
    "sink": with_sink,
    "dataset-export": with_dataset,
    "dataset-sink": with_scan_sink,
    "dataset-lazy": with_lazy,
    "file-export": with_file,
    "file-sink": with_file_sink,
}


def resident() -> int:
    """Return the memory of this process, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024


def measure(case: str, source: Path, target: Path, results: Connection) -> None:
    """Run one case; send its seconds, CPU seconds and peak memory."""
    # The first use of each library loads its modules: this is not part of the figures.
    pl.scan_parquet(min(source.rglob("*.parquet"))).head(1).collect()
    bf.export(pl.DataFrame({"n": [1]}), target.with_name("warm"))
    start, peak, ended = resident(), [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    wall, cpu = time.perf_counter(), time.process_time()
    rows = CASES[case](source, target)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    ended.set()
    watcher.join()
    results.send({"rows": rows, "wall": wall, "cpu": cpu, "peak": peak[0] - start})


def run(case: str, source: Path, target: Path) -> dict[str, float]:
    """Measure one case in its own process, and remove its files."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=measure, args=(case, source, target, there))
    process.start()
    figures = here.recv()
    process.join()
    figures["size"] = sum(path.stat().st_size for path in target.rglob("*.parquet"))
    if target.exists():
        written = (
            pl.scan_parquet(sorted(target.rglob("*.parquet"))).select(pl.len()).collect().item()
        )
        assert written == figures["rows"]
        shutil.rmtree(target)
    return figures


def main() -> None:
    """Measure the cases of the command line, or all of them."""
    millions = float(sys.argv[1]) if len(sys.argv) > 1 else choose(10.0, 0.1)
    cases = sys.argv[2:] or list(CASES)
    found: dict[str, list[dict[str, float]]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        make(source, millions)
        for _ in range(ROUNDS):
            for case in cases:
                found[case].append(run(case, source, Path(folder) / f"to-{case}"))
    print(f"{millions:g}M rows of 18 columns, {ROUNDS} rounds")
    print(f"{'case':<16}{'s':>8}{'net s':>8}{'CPU s':>8}{'net':>8}{'peak MB':>10}{'size MB':>10}")
    middle = {
        case: {key: median(one[key] for one in rounds) for key in ("wall", "cpu", "size")}
        for case, rounds in found.items()
    }
    nothing = {"wall": 0.0, "cpu": 0.0}
    for case, figures in middle.items():
        reading = middle.get("reading", nothing) if case in ("export", "sink") else nothing
        seconds = "".join(
            f"{figures[key]:>8.2f}{figures[key] - reading[key]:>8.2f}" for key in ("wall", "cpu")
        )
        peak = max(one["peak"] for one in found[case]) / 1e6
        print(f"{case:<16}{seconds}{peak:>10.0f}{figures['size'] / 1e6:>10.1f}")


if __name__ == "__main__":
    main()
