"""What `import beaconframes` costs, beside a bare interpreter and beside `import polars`.

Every figure is the time of a whole fresh interpreter. The three run in turn, so that a busy moment
of the machine falls on all of them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

PROGRAMS = {
    "bare interpreter": "pass",
    "import beaconframes": "import beaconframes",
    "import polars": "import polars",
}


def run(program: str) -> float:
    """Return the seconds that a fresh interpreter needs for *program*."""
    # Compiled files are kept, as they are for users.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    return time.perf_counter() - start


def main() -> None:
    """Run the programs in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41)
    rounds = parser.parse_args().rounds

    for program in PROGRAMS.values():
        run(program)
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            times[name].append(run(program))

    bare = statistics.median(times["bare interpreter"])
    print(f"{'':<18}{'median':>11}{'over bare':>12}{'x bare':>9}   {rounds} interpreters each")
    for name, taken in times.items():
        median = statistics.median(taken)
        over = median - bare
        print(f"{name:<18}{median * 1e3:>8.1f} ms{over * 1e3:>9.1f} ms{median / bare:>9.2f}")


if __name__ == "__main__":
    main()
