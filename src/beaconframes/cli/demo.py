"""``beaconframes demo``: serve, load, draw and save, without a key or a network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from beaconframes.cli.from_signature import AsJson, command

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


@command()
def demo(*, out: Path = Path("out"), as_json: AsJson = False) -> None:
    """Serve a simulated chain, load it, draw it, save it.

    Parameters
    ----------
    out
        Folder for the pictures and the table.
    """
    from beaconframes import plot, server, v1, wall
    from beaconframes.cli.rendering import print_json
    from beaconframes.cli.runner import current_state

    out.mkdir(parents=True, exist_ok=True)
    if not as_json:
        click.echo("Starting the local explorer...")
    with server.local() as local:
        chain, head = local.service.chain, local.service.head
        first = local.service.dataset.meta["first_epoch"]
        half_a_day = max(head.epoch - chain.epochs_per_day // 2 + 1, first)
        validators = range(32)
        log = LoadLog(local)
        income = log.load("income_history", lambda: v1.load_income_history(validators, since=first))
        produced = log.load("produced_blocks", lambda: v1.load_produced_blocks(validators))
        # Each day is a request, and so is each epoch below: half a year shows the trend.
        half_a_year = max(head.latest("day", chain) - 179, 0)
        rates = log.load("yield_index", lambda: v1.load_yield_index(since=half_a_year))
        blocks = log.load("epoch_slots", lambda: v1.load_epoch_slots(since=half_a_day))
        periods = range(
            half_a_day // chain.epochs_per_sync_period, head.latest("period", chain) + 1
        )
        log.load("sync_committees", lambda: v1.load_sync_committees(periods))
        pixels = log.load("graffiti_wall", lambda: v1.load_graffiti_wall(since=0))

    started = time.perf_counter()
    for name, axes in {
        "income.png": plot.income(income, blocks=produced, every="day", unit="eth"),
        "yield_index.png": plot.yield_index(rates),
        "sync_participation.png": plot.sync_participation(blocks, every="epoch"),
    }.items():
        if figure := axes.get_figure(root=True):
            figure.savefig(out / name, dpi=150)
    wall.save(pixels, out / "wall.png", chain=chain.name, simulated=True)
    income.write_parquet(out / "income.parquet")
    files = [click.format_filename(out / name) for name in FILES]
    if as_json:
        print_json(
            {"complete": current_state().is_complete, "loaded": log.to_dicts(), "files": files}
        )
        return
    click.echo(log.format())
    click.echo(f"Drawn and saved in {time.perf_counter() - started:.1f} s:")
    for file in files:
        click.echo(f"  {file}")


class LoadLog:
    """Rows, requests and seconds of each load; the server counts the requests."""

    def __init__(self, local: Local) -> None:
        self.local = local
        self.entries: list[tuple[str, int, int, float]] = []

    def load(self, name: str, loader: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Call *loader*, record its rows, requests and seconds, and return its rows."""
        before, started = self.local.requests, time.perf_counter()
        rows = loader()
        seconds = time.perf_counter() - started
        self.entries.append((name, rows.height, self.local.requests - before, seconds))
        return rows

    def to_dicts(self) -> list[dict[str, object]]:
        """Return the entries for JSON."""
        names = ("table", "rows", "requests", "seconds")
        return [dict(zip(names, entry, strict=True)) for entry in self.entries]

    def format(self) -> str:
        """Return the entries as a table."""
        lines = [f"{'loaded':<16}{'rows':>10}{'requests':>10}{'seconds':>9}"]
        lines += [
            f"{name:<16}{rows:>10,}{requests:>10,}{seconds:>9.2f}"
            for name, rows, requests, seconds in self.entries
        ]
        return "\n".join(lines)
