"""An index by one process, and by four processes whose parts are merged, beside the ideal.

Run: ``python benchmarks/index_parts.py``. Two other processes serve a synthetic chain as beacon
nodes. A node computes one state at a time, and takes ``--state`` seconds for it, as nodes do for
old states. Four processes index a quarter of the epochs each, two of them from each node; half-way,
one of them is killed and started again. The merged dataset must have the rows of the whole one.

With states that take time, two nodes can be twice as fast as one: that is the ideal. With
``--state 0``, the processes and the nodes share the cores of this machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from importing import measure_children
from report_index import HERE, SERVER, serve
from sizes import choose

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError

PARTS = choose(4, 2)
ROUNDS = choose(2, 1)


def start(url: str, folder: Path, last: int, part: str) -> subprocess.Popen[bytes]:
    """Start a process that indexes a part of the epochs."""
    return subprocess.Popen([sys.executable, __file__, "--run", url, str(folder), str(last), part])


def index_whole(url: str, folder: Path, last: int) -> Dataset:
    """Index all epochs by one process."""
    assert start(url, folder, last, "1/1").wait() == 0
    return Dataset.open(folder)


def index_parts(urls: list[str], home: Path, last: int) -> Dataset:
    """Index the epochs by several processes, of which one is killed once, and merge their parts."""
    given = [
        (urls[n % len(urls)], home / f"part-{n}", last, f"{n + 1}/{PARTS}") for n in range(PARTS)
    ]
    running = [start(*one) for one in given]
    while count_epochs(given[0][1]) < last // PARTS // 2:
        time.sleep(0.05)
    running[0].kill()
    running[0].wait()
    running[0] = start(*given[0])
    assert [one.wait() for one in running] == [0] * PARTS
    return Dataset.merge([folder for _, folder, *_ in given], home / "merged")


def count_epochs(folder: Path) -> int:
    """Return the number of epochs that an index has stored."""
    try:
        return len(Dataset.open(folder).segments("income_history"))
    except DatasetError:
        return 0


def check_equal(whole: Dataset, merged: Dataset) -> int:
    """Check that the tables of all epochs are equal; return the number of their rows."""
    rows = 0
    for table in whole.grids():
        one, other = (dataset.scan(table).collect() for dataset in (whole, merged))
        assert (
            one.height == other.height == one.join(other, on=one.columns, nulls_equal=True).height
        )
        rows += one.height
    return rows


def main() -> None:
    """Make a chain, index it in both ways in alternation, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validators", type=int, default=choose(2_000, 300))
    parser.add_argument("--epochs", type=int, default=choose(96, 14))
    parser.add_argument("--state", type=float, default=choose(0.5, 0.0), help="seconds of a state")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        url, folder, last, part = arguments.run
        bf.index(url, folder, since=0, until=int(last), part=part)
        return
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        chain, seconds = home / "chain", arguments.state
        size = [str(arguments.validators), str(arguments.epochs)]
        subprocess.run([*SERVER, "make", str(chain), *size], check=True, cwd=HERE)
        last = json.loads((chain / "chain.json").read_text())["finalized"] - 3
        with serve(chain, seconds) as first, serve(chain, seconds) as second:
            for number in range(ROUNDS):
                folder = home / str(number)
                folder.mkdir()
                wall, used = time.perf_counter(), measure_children()
                whole = index_whole(first, folder / "whole", last)
                one, one_cpu = time.perf_counter() - wall, measure_children() - used
                wall, used = time.perf_counter(), measure_children()
                merged = index_parts([first, second], folder, last)
                parts, parts_cpu = time.perf_counter() - wall, measure_children() - used
                print(
                    f"one process, one node: {one:.1f} s, CPU {one_cpu:.1f} s; "
                    f"{PARTS} processes, two nodes: {parts:.1f} s, CPU {parts_cpu:.1f} s; "
                    f"{one / parts:.2f} times as fast; {check_equal(whole, merged):,} equal rows",
                    flush=True,
                )


if __name__ == "__main__":
    main()
