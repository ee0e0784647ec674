"""``beaconframes demo``: serve, load, draw and save, without a key or a network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.from_signature import command

if TYPE_CHECKING:
    import polars as pl


@command()
def demo(*, out: Path = Path("out")) -> None:
    """Serve a simulated chain, load it, draw it, save it.

    Parameters
    ----------
    out
        Folder for the pictures and the table.
    """
    from beaconframes import plot, server, v1, wall
    from beaconframes.cli.rendering import print_result
    from beaconframes.cli.runner import current_state
    from beaconframes.wall.png_file import write_atomically

    out.mkdir(parents=True, exist_ok=True)
    if not current_state().as_json:
        click.echo("Starting the local explorer...")
    entries: list[dict[str, Any]] = []
    with server.local() as local:
        chain, head = local.service.chain, local.service.head
        first = local.service.dataset.meta["first_epoch"]
        half_a_day = max(head.epoch - chain.epochs_per_day // 2 + 1, first)
        validators = range(32)

        def load(table: str, *words: Any, **range_: int) -> pl.DataFrame:
            """Call a loader, and record its rows, requests (counted by the server) and seconds."""
            before, started = local.requests, time.perf_counter()
            rows: pl.DataFrame = getattr(v1, f"load_{table}")(*words, **range_)
            seconds, requests = time.perf_counter() - started, local.requests - before
            facts = {"rows": rows.height, "requests": requests, "seconds": seconds}
            entries.append({"table": table} | facts)
            return rows

        income = load("income_history", validators, since=first)
        produced = load("produced_blocks", validators)
        # Each day is a request, and so is each epoch below: half a year shows the trend.
        rates = load("yield_index", since=max(head.latest("day", chain) - 179, 0))
        blocks = load("epoch_slots", since=half_a_day)
        latest_period = head.latest("period", chain)
        load(
            "sync_committees", range(half_a_day // chain.epochs_per_sync_period, latest_period + 1)
        )
        pixels = load("graffiti_wall", since=0)

    started = time.perf_counter()
    charts = {
        "income.png": plot.income(income, blocks=produced, every="day", unit="eth"),
        "yield_index.png": plot.yield_index(rates),
        "sync_participation.png": plot.sync_participation(blocks, every="epoch"),
    }
    for name, axes in charts.items():
        figure: Any = axes.get_figure(root=True)
        with write_atomically(out / name) as part:
            figure.savefig(part, format="png", dpi=150)
    wall.save(pixels, out / "wall.png", chain=chain.name, simulated=True)
    with write_atomically(out / "income.parquet") as part:
        income.write_parquet(part)
    files = [click.format_filename(out / name) for name in (*charts, "wall.png", "income.parquet")]
    lines = [f"{'loaded':<16}{'rows':>10}{'requests':>10}{'seconds':>9}"]
    for each in entries:
        counts = f"{each['rows']:>10,}{each['requests']:>10,}{each['seconds']:>9.2f}"
        lines.append(f"{each['table']:<16}{counts}")
    lines.append(f"Drawn and saved in {time.perf_counter() - started:.1f} s:")
    facts = {"complete": current_state().is_complete, "loaded": entries, "files": files}
    print_result(facts, [*lines, *(f"  {file}" for file in files)])
