"""Income of 50 million rows by day and validator, compared with hand-written queries.

The rows are copies of a simulated chain with other validator indices, in a temporary folder. Each
case runs in its own interpreter, and both alternate. CPU is that of all threads, memory is the
peak. A run with half of the rows shows whether memory grows with the number of rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from sizes import choose

ROWS = choose(50_000_000, 90_000)
ROUNDS = choose(3, 1)
VALIDATORS, EPOCHS = choose((2_000, 675), (100, 450))
MEASURED = ("wall", "cpu", "peak")
CASES = ("hand-written", "bf.analysis.income")
PARTS = {
    "attestation_reward_gwei": [
        "attestation_head_reward_gwei",
        "attestation_source_reward_gwei",
        "attestation_target_reward_gwei",
    ],
    "proposal_reward_gwei": [
        "proposer_attestation_inclusion_reward_gwei",
        "proposer_slashing_inclusion_reward_gwei",
        "proposer_sync_inclusion_reward_gwei",
    ],
    "sync_committee_reward_gwei": ["sync_committee_reward_gwei"],
    "slashing_reward_gwei": ["slashing_reward_gwei"],
    "attestation_penalty_gwei": [
        "attestation_source_penalty_gwei",
        "attestation_target_penalty_gwei",
    ],
    "finality_delay_penalty_gwei": ["finality_delay_penalty_gwei"],
    "sync_committee_penalty_gwei": ["sync_committee_penalty_gwei"],
    "slashing_penalty_gwei": ["slashing_penalty_gwei"],
}
REWARDS = [name for name in PARTS if "reward" in name]
PENALTIES = [name for name in PARTS if "penalty" in name]


def polars_by_hand(pattern: str) -> Any:
    """Return the sums of a hand-written polars query."""
    import polars as pl

    decimal = pl.Decimal(38, 0)
    return (
        pl.scan_parquet(pattern)
        .group_by(pl.col("time").dt.date().alias("date"), "validator_index")
        .agg(
            *(pl.sum_horizontal(columns).sum().alias(part) for part, columns in PARTS.items()),
            pl.sum("tx_fee_reward_wei", "proposals_missed"),
            pl.len().alias("epochs"),
            pl.min("epoch").alias("first_epoch"),
            pl.max("epoch").alias("last_epoch"),
        )
        .with_columns(income=pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES))
        .with_columns(net=pl.col("income") * pl.lit(10**9, decimal) + pl.col("tx_fee_reward_wei"))
        .sort("date", "validator_index")
        .collect(engine="streaming")
    )


def duckdb_by_hand(pattern: str) -> Any:
    """Return the sums of a hand-written DuckDB query."""
    import duckdb

    parts = ", ".join(f"sum({' + '.join(names)}) AS {part}" for part, names in PARTS.items())
    income = f"{' + '.join(REWARDS)} - {' - '.join(PENALTIES)}"
    return (
        duckdb.connect()
        .sql(
            f"""SELECT *, {income} AS income, income * 1000000000 + fees AS net FROM (
                SELECT CAST(timezone('UTC', time) AS DATE) AS date, validator_index, {parts},
                    sum(tx_fee_reward_wei) AS fees, sum(proposals_missed) AS missed,
                    count(*) AS epochs, min(epoch) AS first_epoch, max(epoch) AS last_epoch
                FROM '{pattern}' GROUP BY ALL
            ) ORDER BY date, validator_index"""  # noqa: S608
        )
        .pl()
    )


def dask_by_hand(pattern: str) -> Any:
    """Return the sums of a hand-written Dask query."""
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa

    frame: Any = dd.read_parquet(pattern, dtype_backend="pyarrow")
    frame["date"] = frame["time"].dt.floor("D")
    for part, names in PARTS.items():
        frame[part] = sum(frame[name] for name in names)
    result = frame.groupby(["date", "validator_index"]).agg(
        **{n: (n, "sum") for n in [*PARTS, "tx_fee_reward_wei", "proposals_missed"]},
        epochs=("epoch", "count"),
        first_epoch=("epoch", "min"),
        last_epoch=("epoch", "max"),
    )
    result["income"] = sum(result[name] for name in REWARDS) - sum(result[n] for n in PENALTIES)
    table = result.reset_index().compute()
    # Wei needs more than 64 bits; Arrow has decimals.
    gwei = table["income"].astype(pd.ArrowDtype(pa.decimal128(19, 0)))
    wei = table["tx_fee_reward_wei"].astype(pd.ArrowDtype(pa.decimal128(28, 0)))
    table["net"] = gwei * Decimal(10**9) + wei
    return table


def sum_with_analysis(engine: str, pattern: str) -> Any:
    """Return the sums of `bf.analysis.income`."""
    import beaconframes as bf

    options = {"every": "day", "by": "validator_index"}
    if engine == "polars":
        import polars as pl

        return bf.analysis.income(pl.scan_parquet(pattern), **options).collect(engine="streaming")
    if engine == "duckdb":
        import duckdb

        return bf.analysis.income(duckdb.connect().read_parquet(pattern), **options).pl()
    import dask.dataframe as dd

    frame = dd.read_parquet(pattern, dtype_backend="pyarrow")
    return bf.analysis.income(frame, **options).compute()


BY_HAND = {"polars": polars_by_hand, "duckdb": duckdb_by_hand, "dask": dask_by_hand}


def run_case(engine: str, case: str, pattern: str) -> dict[str, Any]:
    """Run one case in this process, and return its rows, time and memory."""
    importlib.import_module("dask.dataframe" if engine == "dask" else engine)
    importlib.import_module("beaconframes.analysis")
    before = time.process_time()
    begin = time.perf_counter()
    result = BY_HAND[engine](pattern) if case == CASES[0] else sum_with_analysis(engine, pattern)
    wall = time.perf_counter() - begin
    cpu = time.process_time() - before
    # getrusage returns the peak of the parent process if this was higher.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    # Both results must be equal.
    net = "net" if case == CASES[0] else "net_income_wei"
    total = str(int(sum(result[net].to_list())))
    return {"rows": len(result), "net": total, "wall": wall, "cpu": cpu, "peak": peak}


def write(folder: Path, rows: int) -> None:
    """Write the rows: a simulated chain, and copies of it with other validator indices."""
    import polars as pl

    from beaconframes.simulator import simulate

    chain = simulate(folder / "chain", validators=VALIDATORS, epochs=EPOCHS, seed=1)
    income = chain.scan("income_history").collect()
    for copy in range(-(-rows // income.height)):
        shifted = income.with_columns(pl.col("validator_index") + copy * VALIDATORS)
        part = shifted.head(rows - copy * income.height)
        part.write_parquet(folder / f"{copy:03}.parquet", row_group_size=250_000)


def measure(engine: str, case: str, pattern: str) -> dict[str, Any]:
    """Run one case in its own interpreter, and return its figures."""
    command = [sys.executable, __file__, "--engine", engine, "--case", case, "--files", pattern]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--engine", choices=BY_HAND)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--files")
    parser.add_argument(
        "--folder", type=Path, help="folder for the rows; existing rows are used again"
    )
    given = parser.parse_args()
    if given.files:
        print(json.dumps(run_case(given.engine, given.case, given.files)))
        return
    import polars as pl

    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.glob("*.parquet")):
            write(folder, given.rows)
        rows = pl.scan_parquet(folder / "*.parquet").select(pl.len()).collect().item()
        size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
        print(f"{rows:,} rows, {size / 1e6:,.0f} MB of Parquet, {os.cpu_count()} cores")
        print(
            f"{'engine':8} {'case':20} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}   of half the rows"
        )
        half = Path(name) / "half"
        half.mkdir()
        files = sorted(folder.glob("*.parquet"))
        for file in files[: len(files) // 2]:
            (half / file.name).symlink_to(file.resolve())
        for engine in [given.engine] if given.engine else choose([*BY_HAND], ["duckdb"]):
            taken: dict[str, list[dict[str, Any]]] = {case: [] for case in CASES}
            for _ in range(given.rounds):
                for case in CASES:
                    taken[case].append(measure(engine, case, f"{folder}/*.parquet"))
            median = {
                case: {key: statistics.median(one[key] for one in runs) for key in MEASURED}
                for case, runs in taken.items()
            }
            for case, found in median.items():
                less = measure(engine, case, f"{half}/*.parquet")
                print(
                    f"{engine:8} {case:20} {found['cpu']:8.1f} {found['wall']:8.1f} "
                    f"{found['peak'] / 1e6:8.0f} {less['peak'] / 1e6:8.0f} MB"
                )
            one, other = (median[case] for case in CASES)
            answers = {(found["rows"], found["net"]) for runs in taken.values() for found in runs}
            assert len(answers) == 1, answers
            print(
                f"{engine:8} {'ratio':20} {other['cpu'] / one['cpu']:8.2f} "
                f"{other['wall'] / one['wall']:8.2f} {other['peak'] / one['peak']:8.2f}"
            )


if __name__ == "__main__":
    main()
