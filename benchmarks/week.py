"""CPU and memory of questions about a week of 1,000 validators, compared with code by hand.

The rows are simulated, sorted by key as loaders return them, and without polars' mark for sorted
columns. Each case runs in its own interpreter, once, as a user calls it; the cases alternate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from sizes import choose

if TYPE_CHECKING:
    from collections.abc import Callable

VALIDATORS, EPOCHS, DAY = *choose((1_000, 1_575), (100, 450)), 225
KEY = ["validator_index", "epoch"]
STAKE = "effective_balance_gwei"
VOTE_REWARDS = [f"attestation_{part}_reward_gwei" for part in ("head", "source", "target")]
VOTE_PENALTIES = [f"attestation_{part}_penalty_gwei" for part in ("source", "target")]
REWARDS = [
    *VOTE_REWARDS,
    *(f"proposer_{part}_inclusion_reward_gwei" for part in ("attestation", "slashing", "sync")),
    "sync_committee_reward_gwei",
    "slashing_reward_gwei",
]
PENALTIES = [
    *VOTE_PENALTIES,
    "finality_delay_penalty_gwei",
    "sync_committee_penalty_gwei",
    "slashing_penalty_gwei",
]


def summarize_by_hand(
    validators: pl.DataFrame, income: pl.DataFrame, balances: pl.DataFrame
) -> pl.DataFrame:
    """Return income, rates and the attestation score of each validator."""
    earned = income.lazy().select(
        *KEY,
        "proposals_missed",
        wei="tx_fee_reward_wei",
        gwei=pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES),
        votes=pl.sum_horizontal(VOTE_REWARDS) - pl.sum_horizontal(VOTE_PENALTIES),
    )
    rows = earned.join(balances.lazy().select(*KEY, STAKE), on=KEY)
    best = pl.col("votes").sort(descending=True).get((pl.len() - 1) // 10)
    ceilings = rows.group_by("epoch", STAKE).agg(ceiling=best)
    scored = rows.join(ceilings, on=["epoch", STAKE], how="left")
    at_start = pl.when(pl.col("epoch") % DAY == 0).then(STAKE)
    sums, scores, days = pl.collect_all(
        [
            earned.group_by(KEY[0]).agg(pl.sum("gwei", "wei", "proposals_missed")),
            scored.group_by(KEY[0]).agg(pl.sum("votes", "ceiling")),
            rows.group_by(KEY[0], day=pl.col("epoch") // DAY).agg(
                pl.sum("gwei", "wei", STAKE), epochs=pl.len(), at_start=at_start.sum()
            ),
        ]
    )
    first, last = pl.col("day") * DAY, pl.col("exit_epoch")
    whole = (
        (pl.col("epochs") == DAY)
        & (pl.col("activation_epoch") <= first)
        & (last.is_null() | (last >= first + DAY))
    )
    gwei = pl.col("gwei") + pl.col("wei").cast(pl.Float64) / 1e9
    on_effective = gwei.sum() * 365 * DAY / pl.col(STAKE).sum()
    periods = validators.select(KEY[0], "activation_epoch", "exit_epoch")
    rates = (
        days.join(periods, on=KEY[0])
        .group_by(KEY[0])
        .agg(
            apr_on_effective=on_effective,
            apr_on_32_eth=gwei.sum() * 365 * DAY / (pl.sum("epochs") * 32e9),
            apr_as_index=365 * gwei.filter(whole).sum() / pl.col("at_start").filter(whole).sum(),
            peers_apr=pl.lit(days.select(on_effective).item()),
        )
    )
    wei = pl.col("gwei") * pl.lit(10**9, pl.Decimal(38, 0)) + pl.col("wei")
    return (
        periods.select(KEY[0])
        .join(sums.with_columns(net_income_wei=wei), on=KEY[0], how="left")
        .join(rates, on=KEY[0], how="left")
        .join(scores, on=KEY[0], how="left")
        .with_columns(attestation_score=pl.col("votes") / pl.col("ceiling"))
        .sort(KEY[0])
    )


def summarize(folder: Path) -> Callable[[], Any]:
    """Prepare `bf.analysis.performance`, which must equal the summary by hand."""
    from beaconframes.analysis import performance

    return lambda: performance(*read(folder))


def find_gaps(folder: Path) -> Callable[[], Any]:
    """Prepare the check for missing rows after a load."""
    from beaconframes.fetch.completeness import find_intervals_without_rows

    ends = pl.DataFrame({KEY[0]: range(VALIDATORS)}).with_columns(low=0, high=EPOCHS - 1)
    ends = ends.cast(pl.Int64)
    return lambda: find_intervals_without_rows(read(folder)[1], ends, *KEY)


def find_gaps_by_hand(folder: Path) -> Callable[[], Any]:
    """Prepare an anti-join with all epochs of all validators."""

    def find() -> pl.DataFrame:
        validators = pl.DataFrame({KEY[0]: range(VALIDATORS)})
        every = validators.join(pl.DataFrame({KEY[1]: range(EPOCHS)}), how="cross")
        return every.join(read(folder)[1], on=KEY, how="anti")

    return find


def arrange(folder: Path) -> Callable[[], Any]:
    """Prepare the sort of a load."""
    from beaconframes.v1.income_history import IncomeHistory

    return lambda: IncomeHistory.arrange(read(folder)[1])


def build_chart(folder: Path) -> Callable[[], Any]:
    """Prepare the points of the chart of balances."""
    from beaconframes.charts import balances

    return lambda: balances(read(folder)[2])


def build_chart_by_hand(folder: Path) -> Callable[[], Any]:
    """Prepare the quantiles of the balances above the effective balance."""
    excess = (pl.col("balance_gwei") - pl.col(STAKE)) / 1e9
    quantiles = [
        excess.quantile(share, "linear").alias(str(share)) for share in (0, 0.1, 0.5, 0.9, 1)
    ]
    return lambda: read(folder)[2].group_by("time").agg(quantiles).sort("time")


CASES: dict[str, Callable[[Path], Callable[[], Any]]] = {
    "bf.analysis.performance": summarize,
    "hand-written summary": lambda folder: lambda: summarize_by_hand(*read(folder)),
    "check for missing rows": find_gaps,
    "anti-join with all epochs": find_gaps_by_hand,
    "sort of a load": arrange,
    "polars sort": lambda folder: lambda: read(folder)[1].sort(KEY),
    "chart of balances": build_chart,
    "hand-written chart": build_chart_by_hand,
}
FRAMES: dict[Path, list[pl.DataFrame]] = {}


def read(folder: Path) -> list[pl.DataFrame]:
    """Return validators, income and balances, read once."""
    if folder not in FRAMES:
        tables = ("validators", "income_history", "balance_history")
        # Arrow does not preserve the mark for sorted columns.
        FRAMES[folder] = [
            pl.DataFrame(pl.read_parquet(folder / f"{name}.parquet").rechunk().to_arrow())
            for name in tables
        ]
    return FRAMES[folder]


def read_memory(name: str) -> float:
    """Return a memory figure of this process in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split(f"{name}:")[1].split()[0]) * 1024 / 1e6


def run_case(name: str, folder: Path) -> dict[str, float]:
    """Run one case in this process, and return CPU seconds and the peak above the start."""
    read(folder)
    case = CASES[name](folder)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, start = read_memory("VmRSS"), time.process_time()
    case()
    return {"cpu": time.process_time() - start, "peak": read_memory("VmHWM") - before}


def write(folder: Path) -> None:
    """Simulate the week."""
    from beaconframes.simulator import simulate

    chain = simulate(folder / "chain", validators=VALIDATORS, epochs=EPOCHS, seed=1)
    for name in ("validators", "income_history", "balance_history"):
        rows = chain.scan(name).collect()
        rows.sort([key for key in KEY if key in rows.columns]).write_parquet(
            folder / f"{name}.parquet"
        )


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=choose(5, 1))
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(run_case(given.case, given.folder)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or Path(name)
        if not (folder / "balance_history.parquet").exists():
            write(folder)
        own, by_hand = CASES["bf.analysis.performance"](folder)(), summarize_by_hand(*read(folder))
        assert own["net_income_wei"].to_list() == by_hand["net_income_wei"].to_list()
        for column in ("apr_on_effective", "apr_as_index", "attestation_score"):
            assert (own[column] - by_hand[column]).abs().max() < 1e-12, column
        taken: dict[str, list[dict[str, float]]] = {case: [] for case in CASES}
        for _ in range(given.rounds):
            for case, runs in taken.items():
                command = [sys.executable, __file__, "--case", case, "--folder", str(folder)]
                answer = subprocess.run(command, check=True, capture_output=True, text=True)
                runs.append(json.loads(answer.stdout))
    for case, runs in taken.items():
        cpu, peak = (statistics.median(run[key] for run in runs) for key in ("cpu", "peak"))
        print(f"{case:28}{cpu:7.2f} s of CPU {peak:7.0f} MB above the start")


if __name__ == "__main__":
    main()
