"""CPU and memory of loading a week of 1,000 validators from a dataset on disk.

The comparison reads one Parquet file with the same rows in the same order, filters it by validator
and epoch, and sorts it by key. Each case runs in its own interpreter, and loads twice: the second
load is measured. The cases alternate.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from sizes import choose

LOADERS = choose(("income_history", "balance_history"), ("balance_history",))
METHODS = ("file", "open", "local")
ROUNDS = choose(3, 1)
VALIDATORS = choose(1000, 50)


def main() -> None:
    """Run all cases, or the one case that the arguments name."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*sys.argv[1:])))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in LOADERS:
            file = write_file(name, Path(folder) / f"{name}.parquet")
            found: dict[str, list[tuple[float, float, int]]] = {method: [] for method in METHODS}
            for _ in range(ROUNDS):
                for method in METHODS:
                    command = [sys.executable, __file__, method, name, str(file)]
                    found[method].append(json.loads(subprocess.check_output(command)))
            best = statistics.median(seconds for seconds, _, _ in found["file"])
            for method in METHODS:
                seconds, peak, rows = map(statistics.median, zip(*found[method], strict=True))
                print(
                    f"{name} {method}: {rows:,.0f} rows, {seconds:.2f} s CPU "
                    f"({seconds / best:.1f}), peak {peak:.0f} MB"
                )


def write_file(name: str, file: Path) -> Path:
    """Write the rows of the sample into one file."""
    import beaconframes as bf

    with bf.open() as sample:
        sample.views.dataset.scan(name).collect().write_parquet(file)
    return file


def measure(method: str, name: str, file: str) -> tuple[float, float, int]:
    """Return the CPU seconds of a second load, the process's peak in MB, and the rows."""
    import os
    import resource

    import polars as pl

    import beaconframes as bf

    columns = ["validator_index", "epoch"]
    epochs = pl.scan_parquet(file).select(first=pl.min("epoch"), last=pl.max("epoch"))
    first, last = epochs.collect().row(0)
    index, epoch = map(pl.col, columns)

    def load() -> int:
        if method == "file":
            rows = pl.scan_parquet(file).filter(index < VALIDATORS, epoch.is_between(first, last))
            return rows.sort(columns).collect().height
        height: int = getattr(bf, f"load_{name}")(range(VALIDATORS), since=first, until=last).height
        return height

    with {"open": bf.open, "local": bf.local, "file": bf.open}[method]():
        load()
        before = os.times()
        rows = load()
        after = os.times()
    seconds = after.user + after.system - before.user - before.system
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, rows


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
