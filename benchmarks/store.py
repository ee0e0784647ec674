"""What is in the store, beside the same rows in one Parquet file; and a year without its memory.

Income of 100 validators over 22,500 epochs, 2.25 million rows, loaded offline from a store that
was filled window by window and compacted. In turn with it ``polars.read_parquet`` reads the same
rows from one file, which is the floor: no finality, no coverage, no sums over content. Then a sum
by validator over a year, 8.2 million rows, by ``lazy=True``, in an interpreter of its own whose
peak memory is told, beside one that only imports what it needs.
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

import beaconframes as bf
from beaconframes.dataset import Grid
from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Callable

VALIDATORS, EPOCHS, YEAR = 100, 22_500, 82_125
FIRST = 300_000
WINDOW = 1_500
URL = "https://explorer.invalid"
GRID = Grid("validator_index", "epoch", ("validator_index", "epoch"))


def rows(first: int, last: int) -> pl.DataFrame:
    """Return income that differs from row to row about as much as real income does."""
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
    """Make a store in *folder*, as loads of one window after the other make it, and compact it."""
    local_store = bf.Explorer(URL, store=folder).local_store
    assert local_store is not None
    for first in range(FIRST, FIRST + epochs, WINDOW):
        last = min(first + WINDOW, FIRST + epochs) - 1
        told = {str(validator): ((first, last),) for validator in range(VALIDATORS)}
        assert local_store.keep("income_history", rows(first, last), GRID, told, last)
    bf.Store(local_store.path).compact()


def load(explorer: bf.Explorer, epochs: int, *, lazy: bool = False) -> pl.DataFrame:
    """Load all that is in the store."""
    return bf.load_income_history(
        range(VALIDATORS), since=FIRST, until=FIRST + epochs - 1, explorer=explorer, lazy=lazy
    )


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that *work* takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def beside_one_file(folder: Path, rounds: int) -> None:
    """Load from the store and read one file in turn, and print medians."""
    fill(folder / "store", EPOCHS)
    explorer = bf.Explorer(URL, store=folder / "store", offline=True)
    file = folder / "rows.parquet"
    expected = load(explorer, EPOCHS)
    assert expected.height == VALIDATORS * EPOCHS
    expected.write_parquet(file)
    assert expected.equals(pl.read_parquet(file))
    del expected
    ways: dict[str, Callable[[], object]] = {
        "one Parquet file": lambda: pl.read_parquet(file),
        "the store": lambda: load(explorer, EPOCHS),
        "the store, first time": lambda: load(
            bf.Explorer(URL, store=folder / "store", offline=True), EPOCHS
        ),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            taken[name].append(seconds(way))
    floor = statistics.median(taken["one Parquet file"])
    print(f"income of {VALIDATORS} validators over {EPOCHS:,} epochs, medians of {rounds} rounds")
    for name, found in taken.items():
        median = statistics.median(found)
        print(f"  {name:<24}{median * 1e3:>7.0f} ms{median / floor:>7.2f} x one file")


def a_year(folder: Path) -> None:
    """Sum up a year in an interpreter of its own, and print the memory that it took."""
    fill(folder / "year", YEAR)
    for what in ("imports", "sum"):
        command = [sys.executable, __file__, "--inside", what, "--folder", str(folder / "year")]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


def inside(what: str, folder: Path) -> None:
    """Do the one thing that this interpreter was started for, and print its peak memory."""
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
    print(f"  {what:<24}{found:>10,} rows {taken:>6.1f} s {peak:>7.0f} MB at most")


def peak_memory() -> int:
    """Return the most bytes that this interpreter has held: not those of who started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Run both and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--inside", choices=["imports", "sum"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        inside(chosen.inside, chosen.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        beside_one_file(Path(folder), chosen.rounds)
        print(f"a year of {VALIDATORS} validators, summed up lazily")
        a_year(Path(folder))


if __name__ == "__main__":
    main()
