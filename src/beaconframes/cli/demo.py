"""``beaconframes demo``: everything at once, without a key or a network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from beaconframes.server import Local

FILES = (
    "income.png",
    "yield_index.png",
    "sync_participation.png",
    "wall.png",
    "income.parquet",
)


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for the pictures and the table.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON, for machines.")
def demo(out: Path, as_json: bool) -> None:
    """Serve a simulated chain, load it, draw it, save it."""
    from beaconframes import plot, server, v1, wall
    from beaconframes.cli.running import state
    from beaconframes.cli.showing import write_json

    out.mkdir(parents=True, exist_ok=True)
    if not as_json:
        click.echo("Starting the local explorer (the first time, a chain is simulated)...")
    with server.local() as local:
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
    files = [click.format_filename(out / name) for name in FILES]
    if as_json:
        write_json({"complete": state().complete, "loaded": told.facts(), "files": files})
        return
    click.echo(told.table())
    click.echo(f"Drawn and saved in {time.perf_counter() - started:.1f} s:")
    for file in files:
        click.echo(f"  {file}")


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

    def facts(self) -> list[dict[str, object]]:
        """Return the counts as JSON has them."""
        names = ("table", "rows", "requests", "seconds")
        return [dict(zip(names, line, strict=True)) for line in self.lines]

    def table(self) -> str:
        """Return the counts as text."""
        lines = [f"{'loaded':<16}{'rows':>10}{'requests':>10}{'seconds':>9}"]
        lines += [f"{n:<16}{rows:>10,}{asked:>10,}{s:>9.2f}" for n, rows, asked, s in self.lines]
        return "\n".join(lines)
