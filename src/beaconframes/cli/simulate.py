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
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for machines.")
def simulate(
    validators: int, epochs: int, seed: int, history_days: int, out: Path, as_json: bool
) -> None:
    """Simulate a chain and write it as a dataset."""
    from beaconframes.cli.showing import write_json
    from beaconframes.simulator import simulate as make

    started = time.perf_counter()
    made = make(out, validators=validators, epochs=epochs, seed=seed, history_days=history_days)
    seconds = time.perf_counter() - started
    if as_json:
        tables = {name: {"rows": s.rows, "bytes": s.bytes} for name, s in made.tables().items()}
        write_json({"dataset": str(out), "seconds": round(seconds, 1), "tables": tables})
        return
    for name, size in made.tables().items():
        click.echo(f"{name:<18}{size.rows:>14,} rows {size.bytes / 1e6:>9.1f} MB")
    click.echo(f"Simulated in {seconds:.1f} s: {click.format_filename(out)}")
