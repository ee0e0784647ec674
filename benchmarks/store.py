"""Loading from the store, compared with one Parquet file; memory of a lazy sum over a year.

The income of 100 validators over 22,500 epochs, 2.25 million rows, is loaded offline from a store
that was filled window by window and compacted. ``polars.read_parquet`` of the same rows in one file
is the lower limit: it checks no finality, no coverage and no checksums. Then a sum by validator
over a year, 8.2 million rows, runs with ``lazy=True`` in its own interpreter. Its peak memory is
compared with that of an interpreter that only imports the same modules.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from sizes import choose

import beaconframes as bf
from beaconframes.dataset import Grid
from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Callable

VALIDATORS, EPOCHS, YEAR = 100, *choose((22_500, 82_125), (1_500, 3_000))
FIRST = 300_000
WINDOW = 1_500
URL = "https://explorer.invalid"
GRID = Grid("validator_index", "epoch", ("validator_index", "epoch"))


def rows(first: int, last: int) -> pl.DataFrame:
    """Return rows that vary about as much as real income."""
    schema = IncomeHistory.schema()
    keys = pl.DataFrame({"validator_index": range(VALIDATORS)}, schema_overrides=schema).join(
        pl.DataFrame({"epoch": range(first, last + 1)}, schema_overrides=schema), how="cross"
    )
    noise = pl.struct("validator_index", "epoch").hash(seed=1)
    rare = noise % 1000 == 0
    time_of = (pl.col("epoch").cast(pl.Int64) * 384 + 1_606_824_023) * 1_000_000
    usual = {
        "time": time_of.cast(pl.Datetime("us", "UTC")),
        "attestation_head_reward_gwei": 3_000 + noise % 400,
        "attestation_source_reward_gwei": 3_100 + noise // 7 % 300,
        "attestation_target_reward_gwei": 5_900 + noise // 11 % 500,
        "tx_fee_reward_wei": pl.when(rare).then(noise % 10**17).otherwise(0),
        "proposer_attestation_inclusion_reward_gwei": pl.when(rare)
        .then(noise % 10**8)
        .otherwise(0),
    }
    values = {
        name: usual.get(name, pl.lit(0)).cast(schema[name])
        for name in schema
        if name not in keys.columns
    }
    return keys.with_columns(**values).select(list(schema))


def fill(folder: Path, epochs: int) -> None:
    """Fill a store in *folder* window by window, as loads do, and compact it."""
    local_store = bf.Explorer(URL, store=folder).local_store
    assert local_store is not None
    for first in range(FIRST, FIRST + epochs, WINDOW):
        last = min(first + WINDOW, FIRST + epochs) - 1
        covered = {str(validator): ((first, last),) for validator in range(VALIDATORS)}
        assert local_store.put("income_history", rows(first, last), GRID, covered, last)
    bf.Store(local_store.path).compact()


def load(explorer: bf.Explorer, epochs: int, *, lazy: bool = False) -> pl.DataFrame:
    """Load all rows of the store."""
    return bf.load_income_history(
        range(VALIDATORS), since=FIRST, until=FIRST + epochs - 1, explorer=explorer, lazy=lazy
    )


def measure_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of *work*."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare_with_one_file(folder: Path, rounds: int) -> None:
    """Load from the store and read one file alternately, and print medians."""
    fill(folder / "store", EPOCHS)
    explorer = bf.Explorer(URL, store=folder / "store", offline=True)
    file = folder / "rows.parquet"
    expected = load(explorer, EPOCHS)
    assert expected.height == VALIDATORS * EPOCHS
    expected.write_parquet(file)
    assert expected.equals(pl.read_parquet(file))
    del expected
    cases: dict[str, Callable[[], object]] = {
        "one Parquet file": lambda: pl.read_parquet(file),
        "the store": lambda: load(explorer, EPOCHS),
        "the store, first time": lambda: load(
            bf.Explorer(URL, store=folder / "store", offline=True), EPOCHS
        ),
    }
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            taken[name].append(measure_seconds(case))
    floor = statistics.median(taken["one Parquet file"])
    print(f"income of {VALIDATORS} validators over {EPOCHS:,} epochs, medians of {rounds} rounds")
    for name, found in taken.items():
        median = statistics.median(found)
        print(f"  {name:<24}{median * 1e3:>7.0f} ms{median / floor:>7.2f} x one file")


def measure_year(folder: Path) -> None:
    """Sum a year in its own interpreter, and print its peak memory."""
    fill(folder / "year", YEAR)
    for what in ("imports", "sum"):
        command = [sys.executable, __file__, "--inside", what, "--folder", str(folder / "year")]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


def run_inside(what: str, folder: Path) -> None:
    """Run one case in this interpreter, and print its peak memory."""
    explorer = bf.Explorer(URL, store=folder, offline=True)
    start = time.perf_counter()
    found = 0
    if what == "sum":
        lazy = load(explorer, YEAR, lazy=True).lazy()
        reward = pl.sum_horizontal(pl.col("^attestation_.*_reward_gwei$"))
        sums = lazy.group_by("validator_index").agg(pl.len(), reward.sum()).collect()
        found = int(sums["len"].sum())
        assert found == VALIDATORS * YEAR
    taken = time.perf_counter() - start
    peak = peak_memory() / 1e6
    print(f"  {what:<24}{found:>10,} rows {taken:>6.1f} s {peak:>7.0f} MB peak")


def peak_memory() -> int:
    """Return the peak memory of this interpreter in bytes, without that of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Run both benchmarks and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=choose(7, 1))
    parser.add_argument("--inside", choices=["imports", "sum"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        run_inside(chosen.inside, chosen.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare_with_one_file(Path(folder), chosen.rounds)
        print(f"a year of {VALIDATORS} validators, lazy sum")
        measure_year(Path(folder))


if __name__ == "__main__":
    main()
