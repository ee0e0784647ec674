"""``beaconframes simulate``: a chain of one's own."""

from __future__ import annotations

import time
from pathlib import Path

import click


@click.command()
@click.option("--validators", default=2000, show_default=True, type=click.IntRange(min=1))
@click.option("--epochs", default=1575, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option(
    "--history-days",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Days of yield index before the epochs that are simulated in full.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder.")
def simulate(validators: int, epochs: int, seed: int, history_days: int, out: Path) -> None:
    """Simulate a chain and write it as a dataset."""
    from beaconframes.service.simulate import simulate as make

    started = time.perf_counter()
    made = make(out, validators=validators, epochs=epochs, seed=seed, history_days=history_days)
    for name, size in made.tables().items():
        click.echo(f"{name:<18}{size.rows:>14,} rows {size.bytes / 1e6:>9.1f} MB")
    click.echo(f"Simulated in {time.perf_counter() - started:.1f} s: {out}")
