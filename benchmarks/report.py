"""CPU time, memory and size of a report: of 3, 200 and all validators of a simulated chain.

The chain is simulated before; a month of 10,000 validators (``--validators 10000 --epochs 6830``)
takes eight minutes. Each report is made in a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(folder: str, count: int) -> None:
    """Make one report in this process, and print its figures."""
    import beaconframes as bf

    start = time.process_time()
    with bf.open(folder) as source, tempfile.TemporaryDirectory() as temporary:
        report = bf.report(range(count), since="30d", explorer=source)
        path = report.save(Path(temporary) / "report.html")
        size = path.stat().st_size
    used = resource.getrusage(resource.RUSAGE_SELF)
    detail = dict(report.frames["facts"].iter_rows())["detail"]
    print(
        f"{count:>9,}  {detail:<17} {time.process_time() - start:6.1f} s "
        f"{used.ru_maxrss / 1024:8,.0f} MB {size / 1000:8,.0f} kB"
    )


def main() -> None:
    """Simulate a chain, and measure reports of some and of all of its validators."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validators", type=int, default=2_000)
    parser.add_argument("--epochs", type=int, default=900)
    parser.add_argument("--chain", help="folder of a simulated chain, instead of a new one")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        measure(arguments.chain, arguments.one)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.chain or str(Path(temporary) / "chain")
        if arguments.chain is None:
            size = ["--validators", str(arguments.validators), "--epochs", str(arguments.epochs)]
            command = [sys.executable, "-m", "beaconframes", "simulate", *size, "--out", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        print(f"{'validators':>10} {'detail':<18} {'CPU':>7} {'peak':>10} {'file':>11}")
        for count in (3, 200, arguments.validators):
            command = [sys.executable, __file__, "--chain", folder, "--one", str(count)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
