"""``beaconframes simulate``: simulate a chain."""

from __future__ import annotations

import time
from pathlib import Path

import click

from beaconframes.cli.common_options import JSON_HELP
from beaconframes.simulation_limits import MAXIMUM, MINIMUM


def _range(name: str) -> click.IntRange:
    """Return the range of an argument of simulations."""
    return click.IntRange(MINIMUM[name], MAXIMUM.get(name))


@click.command()
@click.option(
    "--validators",
    default=2000,
    show_default=True,
    type=_range("validators"),
    help="Number of validators.",
)
@click.option(
    "--epochs",
    default=1575,
    show_default=True,
    type=_range("epochs"),
    help="Number of epochs; 1575 are a week.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=_range("seed"),
    help="Seed of the random numbers; the same seed simulates the same chain.",
)
@click.option(
    "--history-days",
    default=0,
    show_default=True,
    type=_range("history_days"),
    help="Days of yield index before the simulated epochs.",
)
@click.option(
    "--chain",
    type=click.Choice(["mainnet", "hoodi"]),
    help="Clock of a public chain; the default is a chain that starts on 30 September 2026, "
    "or mainnet with --ends.",
)
@click.option(
    "--ends",
    metavar="TIME",
    help="Time of the head: now, or a date or datetime, past or future. Epochs then have the "
    "numbers of the real chain, and serve --live can show each of them as the latest.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder.")
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
def simulate(
    validators: int,
    epochs: int,
    seed: int,
    history_days: int,
    chain: str | None,
    ends: str | None,
    out: Path,
    as_json: bool,
) -> None:
    """Simulate a chain and write it as a dataset."""
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
