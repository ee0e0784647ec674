"""CPU time of charts, compared with their aggregation alone; size of a large plotly figure.

Static charts are drawn and encoded as PNG. All cases alternate, so that other work on the machine
affects all of them. Figures are CPU seconds.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")

import polars as pl
from matplotlib import pyplot as plt
from sizes import choose

from beaconframes import interactive, plot
from beaconframes.analysis import income as sum_income
from beaconframes.analysis.income_columns import PENALTIES, REWARDS

if TYPE_CHECKING:
    from collections.abc import Callable

GENESIS = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)
PARTS = [
    column for parts in (REWARDS, PENALTIES) for columns in parts.values() for column in columns
]


def income(rows: int) -> pl.DataFrame:
    """Return an income history of 1,000 validators."""
    validator, epoch = pl.col("row") % 1000, pl.col("row") // 1000
    return (
        pl.DataFrame({"row": pl.int_range(rows, eager=True)})
        .select(
            validator_index=validator,
            epoch=epoch,
            time=pl.lit(GENESIS).dt.cast_time_unit("us") + pl.duration(seconds=384 * epoch),
            proposals_missed=pl.lit(0, pl.Int64),
            tx_fee_reward_wei=pl.lit(Decimal(10**15), pl.Decimal(28, 0)),
            **{name: pl.col("row") * 7919 % 10_000 for name in PARTS},
        )
        .rechunk()
    )


def slots(rows: int) -> pl.DataFrame:
    """Return a block per slot."""
    slot = pl.int_range(rows, eager=True).alias("slot")
    return slot.to_frame().with_columns(
        epoch=slot // 32,
        time=pl.lit(GENESIS).dt.cast_time_unit("us") + pl.duration(seconds=12 * slot),
        status=pl.when(slot % 97 == 0).then(pl.lit("missed")).otherwise(pl.lit("proposed")),
        sync_aggregate_participation=slot % 89 / 100,
    )


def draw_static(frame: pl.DataFrame, **options: str) -> None:
    """Draw an income chart and encode it as PNG."""
    ax = plot.income(frame, **options)  # type: ignore[arg-type]
    ax.figure.savefig(io.BytesIO(), format="png")  # type: ignore[union-attr]
    plt.close("all")


def measure_cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of *work*."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Run the cases alternately and print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=choose(7, 1))
    parser.add_argument("--rows", type=int, default=choose(2_000_000, 20_000))
    chosen = parser.parse_args()
    frame = income(chosen.rows)

    for every in ("day", "epoch"):
        cases: dict[str, Callable[[], object]] = {
            "aggregation alone": lambda every=every: sum_income(frame, every=every, coverage=True),
            "chart": lambda every=every: draw_static(frame, every=every),
            "chart by component": lambda every=every: draw_static(
                frame, every=every, by="component"
            ),
        }
        for case in cases.values():
            case()
        taken: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(chosen.rounds):
            for name, case in cases.items():
                taken[name].append(measure_cpu(case))
        alone = statistics.median(taken["aggregation alone"])
        print(f"income of {chosen.rows:,} rows by {every}, {chosen.rounds} rounds")
        for name, seconds in taken.items():
            median = statistics.median(seconds)
            print(f"  {name:<20}{median * 1e3:>9.0f} ms{median / alone:>8.2f} x aggregation")

    million = slots(1_000_000)
    interactive.sync_participation(million)
    figure = interactive.sync_participation(million)
    drawn = sum(len(trace.x) for trace in figure.data)
    print("interactive participation of 1,000,000 slots")
    print(f"  {measure_cpu(lambda: interactive.sync_participation(million)) * 1e3:.0f} ms of CPU")
    print(f"  {drawn:,} points, {len(figure.to_json()) / 1e6:.1f} MB in the page")


if __name__ == "__main__":
    main()
