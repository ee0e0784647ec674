"""The command line: ``beaconframes``, or ``python -m beaconframes``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from beaconframes.errors import BeaconframesError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from beaconframes.service import Local
    from beaconframes.service.generation2.tiers import Tier

FAILED = 1


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="beaconframes")
def commands() -> None:
    """Turn a proof-of-stake chain explorer into DataFrames."""


@commands.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for the pictures and the table.",
)
def demo(out: Path) -> None:
    """Serve a simulated chain on this machine, load it over HTTP, draw and save it."""
    from beaconframes import plot, service, v1, wall

    out.mkdir(parents=True, exist_ok=True)
    click.echo("Starting the local explorer (the first time, a chain is simulated)...")
    with service.local() as local:
        chain, head = local.service.chain, local.service.head
        first = local.service.dataset.meta["first_epoch"]
        day = max(head.epoch - chain.epochs_per_day + 1, first)
        told = Told(local)
        income = told.load(
            "income_history", lambda: v1.load_income_history(range(250), since=first)
        )
        rates = told.load("yield_index", lambda: v1.load_yield_index(since=0))
        blocks = told.load("epoch_slots", lambda: v1.load_epoch_slots(since=day))
        periods = range(day // chain.epochs_per_sync_period, head.latest("period", chain) + 1)
        told.load("sync_committees", lambda: v1.load_sync_committees(periods))
        pixels = told.load("graffiti_wall", lambda: v1.load_graffiti_wall(since=0))

    started = time.perf_counter()
    for name, axes in {
        "income.png": plot.income(income, every="day", unit="eth"),
        "yield_index.png": plot.yield_index(rates),
        "sync_participation.png": plot.sync_participation(blocks, every="epoch"),
    }.items():
        if figure := axes.get_figure(root=True):
            figure.savefig(out / name, dpi=150)
    wall.save(pixels, out / "wall.png", chain=chain.name, simulated=True)
    income.write_parquet(out / "income.parquet")
    click.echo(told.table())
    click.echo(f"Drawn and saved in {time.perf_counter() - started:.1f} s:")
    for name in ("income.png", "yield_index.png", "sync_participation.png", "wall.png"):
        click.echo(f"  {out / name}")
    click.echo(f"  {out / 'income.parquet'}")


class Told:
    """Keeps count of what each load took, by the server's own count of requests."""

    def __init__(self, local: Local) -> None:
        self.local = local
        self.lines: list[tuple[str, int, int, float]] = []

    def load(self, name: str, loader: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Return what *loader* loads, and note rows, requests and seconds."""
        before, started = self.local.requests, time.perf_counter()
        rows = loader()
        seconds = time.perf_counter() - started
        self.lines.append((name, rows.height, self.local.requests - before, seconds))
        return rows

    def table(self) -> str:
        """Return the counts as text."""
        lines = [f"{'loaded':<16}{'rows':>10}{'requests':>10}{'seconds':>9}"]
        lines += [f"{n:<16}{rows:>10,}{asked:>10,}{s:>9.2f}" for n, rows, asked, s in self.lines]
        return "\n".join(lines)


@commands.command()
@click.argument("dataset", required=False, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--port", default=8000, show_default=True, help="Port on loopback; 0 is any free one."
)
@click.option(
    "--wire",
    type=click.Choice(["spec", "public"]),
    default="spec",
    show_default=True,
    help="Names, shapes and errors of the specification, or those of the public service.",
)
@click.option("--rate", type=click.IntRange(min=1), help="Requests a second that are permitted.")
@click.option(
    "--key",
    "tiers",
    multiple=True,
    metavar="KEY:TIER",
    callback=lambda _context, _option, texts: tiers_of(texts),
    help="A made-up key and its tier, free or premium, to try tiers with; once for each.",
)
def serve(
    dataset: str | None,
    port: int,
    wire: Literal["spec", "public"],
    rate: int | None,
    tiers: dict[str, Tier],
) -> None:
    """Serve DATASET, or the simulated sample, as an explorer on this machine.

    With keys, only requests that carry one are answered. One that is to stay secret belongs into
    the environment variable BEACONFRAMES_SERVE_KEY: everybody who lists the processes sees the
    options.
    """
    from beaconframes.dataset import Dataset
    from beaconframes.service import Server, sample

    served = sample() if dataset is None else Dataset.open(dataset)
    if key := os.environ.get("BEACONFRAMES_SERVE_KEY"):
        tiers = {**tiers, key: "premium"}
    with Server(served, port=port, keys=tiers, wire=wire, rate=rate) as server:
        chain = visible(server.service.chain.name)
        click.echo(f"Serving {served.path} ({chain}) at {server.url} until Ctrl-C")
        try:
            server.wait()
        except KeyboardInterrupt:
            click.echo("Stopped")


def tiers_of(texts: tuple[str, ...]) -> dict[str, Tier]:
    """Return keys by their tier; refuse what is none."""
    found: dict[str, Tier] = {}
    for text in texts:
        key, _, tier = text.rpartition(":")
        if not key or tier not in ("free", "premium"):
            raise click.BadParameter("a key is written KEY:free or KEY:premium")
        found[key] = cast("Tier", tier)
    return found


@commands.command()
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


@commands.command()
@click.argument("loader", required=False)
def dictionary(loader: str | None) -> None:
    """Say what LOADER gives, column by column; without one, list the loaders."""
    from beaconframes.dictionary import describe

    for row in describe(loader).iter_rows(named=True):
        if loader is None:
            click.echo(f"{row['loader']:<32}{row['rows']}")
        else:
            mark = "*" if row["key"] else " "
            click.echo(f"{mark} {row['column']:<44}{row['type']:<20}{row['meaning']}")


def main() -> None:
    """Run the command line; an error of ours is one line and an exit status, no traceback."""
    try:
        commands()
    except BeaconframesError as error:
        click.echo(f"beaconframes: {error}", err=True)
        sys.exit(FAILED)
