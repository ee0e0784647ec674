"""``beaconframes simulate``: simulate a chain."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.from_signature import Kind, command, list_arguments
from beaconframes.cli.rendering import print_result
from beaconframes.simulation_limits import MAXIMUM, MINIMUM
from beaconframes.simulator import simulate as simulate_chain

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = {n: Kind(type=click.IntRange(MINIMUM[n], MAXIMUM.get(n))) for n in MINIMUM}


@command(arguments=list_arguments(simulate_chain, ["target"], kinds=LIMITS))
def simulate(arguments: dict[str, Any], *, out: Path) -> None:
    """Simulate a chain and write it as a dataset.

    Parameters
    ----------
    out
        A new folder.
    """
    started = time.perf_counter()
    sizes = simulate_chain(out, **arguments).tables()
    seconds = time.perf_counter() - started
    tables = {name: {"rows": size.rows, "bytes": size.bytes} for name, size in sizes.items()}
    lines = [
        f"{name:<18}{size.rows:>14,} rows {size.bytes / 1e6:>9.1f} MB"
        for name, size in sizes.items()
    ]
    lines.append(f"Simulated in {seconds:.1f} s: {click.format_filename(out)}")
    print_result({"dataset": str(out), "seconds": round(seconds, 1), "tables": tables}, lines)
