"""``beaconframes simulate``: simulate a chain."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Literal

import click

from beaconframes.cli.from_signature import AsJson, command
from beaconframes.simulation_limits import MAXIMUM, MINIMUM

if TYPE_CHECKING:
    from pathlib import Path


def _range(name: str) -> click.IntRange:
    """Return the range of an argument of simulations."""
    return click.IntRange(MINIMUM[name], MAXIMUM.get(name))


@command()
def simulate(
    *,
    validators: Annotated[int, _range("validators")] = 2000,
    epochs: Annotated[int, _range("epochs")] = 1575,
    seed: Annotated[int, _range("seed")] = 1,
    history_days: Annotated[int, _range("history_days")] = 0,
    chain: Literal["mainnet", "hoodi"] | None = None,
    ends: Annotated[str | None, "TIME"] = None,
    out: Path,
    as_json: AsJson = False,
) -> None:
    """Simulate a chain and write it as a dataset.

    Parameters
    ----------
    validators
        Number of validators.
    epochs
        Number of epochs; 1575 are a week.
    seed
        Seed of the random numbers; the same seed simulates the same chain.
    history_days
        Days of yield index before the simulated epochs.
    chain
        Clock of a public chain; the default is a chain that starts on 30 September 2026, or mainnet
        with --ends.
    ends
        Time of the head: now, or a date or datetime, past or future. Epochs then have the numbers
        of the real chain, and serve --live can show each of them as the latest.
    out
        A new folder.
    """
    from beaconframes.cli.rendering import print_json
    from beaconframes.simulator import simulate as simulate_chain

    started = time.perf_counter()
    dataset = simulate_chain(
        out,
        validators=validators,
        epochs=epochs,
        seed=seed,
        history_days=history_days,
        chain=chain,
        ends=ends,
    )
    seconds = time.perf_counter() - started
    sizes = dataset.tables()
    if as_json:
        tables = {name: {"rows": size.rows, "bytes": size.bytes} for name, size in sizes.items()}
        print_json({"dataset": str(out), "seconds": round(seconds, 1), "tables": tables})
        return
    for name, size in sizes.items():
        click.echo(f"{name:<18}{size.rows:>14,} rows {size.bytes / 1e6:>9.1f} MB")
    click.echo(f"Simulated in {seconds:.1f} s: {click.format_filename(out)}")
