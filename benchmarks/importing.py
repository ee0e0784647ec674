"""CPU time of imports: the package, the first loader, the first chart, and the libraries alone.

Every figure is the time of a new interpreter. The programs alternate, so that other work on
the machine affects all of them.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

from sizes import choose

# Three blocks are enough: the time of a first chart is that of its imports and its fonts.
CHART = """
import io
from datetime import UTC, datetime
import polars as pl
import beaconframes as bf
slots = pl.DataFrame({
    "slot": range(3), "epoch": [0] * 3,
    "time": [datetime(2020, 12, 1, 12, n, tzinfo=UTC) for n in range(3)],
    "status": ["proposed"] * 3, "sync_aggregate_participation": [0.5] * 3,
})
bf.plot.sync_participation(slots).figure.savefig(io.BytesIO())
"""
PROGRAMS = {
    "interpreter alone": "pass",
    "import beaconframes": "import beaconframes",
    "import polars": "import polars",
    "import polars, httpx": "import polars, httpx",
    "bf.load_slots": "import beaconframes as bf; bf.load_slots",
    "first chart": CHART,
}


def measure(program: str) -> float:
    """Return the CPU seconds of a new interpreter for *program*."""
    # With compiled files, as users have them.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = measure_children()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    return measure_children() - start


def measure_children() -> float:
    """Return the CPU seconds of all interpreters so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the programs alternately and print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=choose(41, 1))
    rounds = parser.parse_args().rounds

    for program in PROGRAMS.values():
        measure(program)
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            times[name].append(measure(program))

    bare = statistics.median(times["interpreter alone"])
    print(f"{'':<22}{'median':>11}{'difference':>12}{'ratio':>9}   {rounds} interpreters each")
    for name, taken in times.items():
        median = statistics.median(taken)
        over = median - bare
        print(f"{name:<22}{median * 1e3:>8.1f} ms{over * 1e3:>9.1f} ms{median / bare:>9.2f}")


if __name__ == "__main__":
    main()
