"""Questions about one day of all validators of mainnet, with polars, DuckDB and Dask in 8 GB.

Run: ``python benchmarks/mainnet_day.py``. The rows are synthetic: 1,000,000 validators x 225 epochs
of income, in files as `bf.index` leaves them after the compaction of a day. Each question is
answered by `bf.analysis`, and by a query written by hand on the same engine. Each case has its own
process, which is ended if its resident memory exceeds the limit; memory is its peak.

The whole run takes 80 MB of disk and about ten minutes of CPU; ``--validators 100000`` is a tenth.
``--engine``, ``--question`` and ``--method`` choose cases, and ``--folder`` stores the rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sizes import choose

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

VALIDATORS, EPOCHS = choose(1_000_000, 2_000), 225
FIRST_EPOCH = 1_800 * EPOCHS
CHOSEN = 1_000
SEED = 7
LIMIT = 8 * 10**9
"""Bytes of resident memory above which a case is ended."""
EXCEEDED = 99
INCREMENT = 10**9
WEIGHTS = {"source": 14, "target": 26, "head": 14}
VOTE_REWARDS = [f"attestation_{part}_reward_gwei" for part in ("head", "source", "target")]
REWARDS = [
    *VOTE_REWARDS,
    *(f"proposer_{part}_inclusion_reward_gwei" for part in ("attestation", "slashing", "sync")),
    "sync_committee_reward_gwei",
    "slashing_reward_gwei",
]
PENALTIES = [
    "attestation_source_penalty_gwei",
    "attestation_target_penalty_gwei",
    "finality_delay_penalty_gwei",
    "sync_committee_penalty_gwei",
    "slashing_penalty_gwei",
]
FEES = "tx_fee_reward_wei"
QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
QUESTIONS = {
    "day": "income by day, in total and by component",
    "validators": "income of each validator; the worst ten and quantiles",
    "chosen": "income of 1,000 validators chosen at random",
    "missed": "missed attestations by day",
}
METHODS = ("by hand", "bf.analysis")


# --- the rows ------------------------------------------------------------------------------------


class Mainnet:
    """Amounts of a day: the values of each epoch, and the duties and habits of each validator."""

    def __init__(self, validators: int) -> None:
        import numpy as np

        from beaconframes.calendar import MAINNET

        rng = np.random.default_rng(SEED)
        self.epochs = np.arange(FIRST_EPOCH, FIRST_EPOCH + EPOCHS)
        length = MAINNET.seconds_per_slot * MAINNET.slots_per_epoch
        self.times = (int(MAINNET.genesis.timestamp()) + self.epochs * length) * 10**6
        # Balances: 32 ETH, some with one less after penalties, some compounding up to 2,048.
        stakes = np.full(validators, 32)
        stakes[rng.random(validators) < 0.01] = 31
        large = rng.random(validators) < 0.01
        stakes[large] = (33 + rng.exponential(200, large.sum())).clip(33, 2_048)
        self.stakes = stakes
        total = int(stakes.mean() * VALIDATORS)
        self.base = INCREMENT * 64 // int((total * INCREMENT) ** 0.5)
        # A reward is scaled by the share of the stake that voted as well, which differs by epoch.
        late = rng.beta(1.5, 60, EPOCHS)
        self.shares = {
            "source": 1 - rng.beta(8, 1_500, EPOCHS),
            "target": 1 - rng.beta(10, 1_500, EPOCHS),
            "head": 1 - rng.beta(10, 1_200, EPOCHS) - late,
        }
        # Most validators miss one of 500 votes, a few some of 20, and a few are offline.
        kind = rng.random(validators)
        missing = np.where(kind < 0.97, 0.002, np.where(kind < 0.996, 0.05, 0.99))
        self.missing = missing * rng.uniform(0.2, 1.8, validators).clip(0, 1 / missing)
        self.late = late
        # Duties: a proposer for each slot, and a sync committee whose period ends on this day.
        count = EPOCHS * 32 * validators // VALIDATORS
        self.proposers = rng.integers(0, validators, count)
        self.proposed_in = rng.integers(0, EPOCHS, count)
        self.members = rng.choice(validators, min(1_024, validators // 2), replace=False)
        self.slashed = set(rng.choice(validators, 3, replace=False).tolist())

    def build_rows(self, first: int, last: int) -> pl.DataFrame:
        """Return the rows of the validators from *first* to before *last*, sorted."""
        import numpy as np
        import polars as pl

        from beaconframes.v1.income_history import IncomeHistory

        rng = np.random.default_rng([SEED, first])
        size = (last - first, EPOCHS)
        stake = self.stakes[first:last, None] * self.base
        votes = rng.random(size) >= self.missing[first:last, None]
        target = votes & (rng.random(size) >= 0.002)
        head = target & (rng.random(size) >= self.late)
        columns: dict[str, NDArray[np.int64]] = {
            "validator_index": np.repeat(np.arange(first, last), EPOCHS).reshape(size),
            "epoch": np.broadcast_to(self.epochs, size),
            "time": np.broadcast_to(self.times, size),
        }
        for part, ok in (("head", head), ("source", votes), ("target", target)):
            reward = (stake * WEIGHTS[part] * self.shares[part] // 64).astype(np.int64)
            columns[f"attestation_{part}_reward_gwei"] = np.where(ok, reward, 0)
            if part != "head":
                penalty = np.where(ok, 0, stake * WEIGHTS[part] // 64)
                columns[f"attestation_{part}_penalty_gwei"] = penalty
        others = [name for name in (*REWARDS, *PENALTIES) if name not in columns]
        columns |= {name: np.zeros(size, np.int64) for name in [*others, "proposals_missed"]}
        fees = np.zeros(size)
        self._add_duties(columns, fees, first, last, rng)
        frame = pl.DataFrame({name: np.ravel(values) for name, values in columns.items()})
        fees_wei = pl.Series(FEES, np.ravel(fees)).cast(pl.Int64)
        schema = IncomeHistory.schema()
        return frame.with_columns(fees_wei).select(
            pl.col(name).cast(pl.Int64).cast(dtype) for name, dtype in schema.items()
        )

    def _add_duties(
        self,
        columns: dict[str, NDArray[np.int64]],
        fees: NDArray[np.float64],
        first: int,
        last: int,
        rng: np.random.Generator,
    ) -> None:
        inside = (self.proposers >= first) & (self.proposers < last)
        for validator, epoch in zip(self.proposers[inside], self.proposed_in[inside], strict=True):
            cell = validator - first, epoch
            if rng.random() < 0.008:
                columns["proposals_missed"][cell] += 1
                continue
            columns["proposer_attestation_inclusion_reward_gwei"][cell] = rng.normal(4.1e7, 3e6)
            columns["proposer_sync_inclusion_reward_gwei"][cell] = rng.normal(1.6e6, 5e4)
            fees[cell] += rng.lognormal(36.9, 1.2)
        reward = 32 * self.base * self.stakes.mean() * VALIDATORS * 2 // 64 // 32 // 512
        for place, validator in enumerate(self.members):
            if first <= validator < last:
                # The period changes within the day.
                period = slice(0, 100) if place < len(self.members) // 2 else slice(100, EPOCHS)
                absent = rng.binomial(32, 0.02, EPOCHS)[period]
                row = validator - first
                columns["sync_committee_reward_gwei"][row, period] = (32 - absent) * reward // 32
                columns["sync_committee_penalty_gwei"][row, period] = absent * reward // 32
        for validator in self.slashed & set(range(first, last)):
            columns["slashing_penalty_gwei"][validator - first, EPOCHS // 2] = 32 * 10**9 // 4096


def write_day(folder: str, validators: int) -> dict[str, Any]:
    """Write the day as a dataset with files as those of a compacted index."""
    from beaconframes.beacon_node.index.coverage import WHOLE_CHAIN
    from beaconframes.beacon_node.tables import INDEXED_TABLES
    from beaconframes.dataset import Dataset
    from beaconframes.dataset.segments import ROWS

    start = time.process_time()
    mainnet = Mainnet(validators)
    name = "income_history"
    grid = INDEXED_TABLES[name].grid(chosen=False)
    dataset = Dataset.create(folder, meta={"chain": {}})
    each = ROWS // EPOCHS
    covered = {WHOLE_CHAIN: ((FIRST_EPOCH, FIRST_EPOCH + EPOCHS - 1),)}
    with dataset.writing() as writer:
        writer.add_covered(name, mainnet.build_rows(0, 1).clear(), grid, covered)
        for first in range(0, validators, each):
            rows = mainnet.build_rows(first, min(first + each, validators))
            writer.add_segment(name, rows)
    size = dataset.tables()[name]
    seconds = time.process_time() - start
    return {"rows": size.rows, "bytes": size.bytes, "files": size.segments, "cpu": seconds}


# --- the questions, by hand ----------------------------------------------------------------------


def answer_in_polars(question: str, files: str, chosen: list[int]) -> Any:
    """Return the answer of a query written by hand in polars, computed in streaming."""
    import polars as pl

    rows = pl.scan_parquet(files)
    income = pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)
    sums = pl.sum(*REWARDS, *PENALTIES, FEES)
    if question == "day":
        date = pl.col("time").dt.date().alias("date")
        table = rows.group_by(date).agg(sums).with_columns(income=income).sort("date")
        return table.collect(engine="streaming")
    if question == "missed":
        date = pl.col("time").dt.date().alias("date")
        is_missed = (
            (pl.col(PENALTIES[0]) > 0) & (pl.col(PENALTIES[1]) > 0) & (pl.col(VOTE_REWARDS[0]) == 0)
        )
        return rows.group_by(date).agg(missed=is_missed.sum()).collect(engine="streaming")
    if question == "chosen":
        rows = rows.filter(pl.col("validator_index").is_in(chosen))
    net = income.cast(pl.Decimal(38, 0)) * 10**9 + pl.col(FEES)
    table = rows.group_by("validator_index").agg(sums).with_columns(net=net)
    return summarize(table.collect(engine="streaming"), "net")


def answer_in_duckdb(question: str, files: str, chosen: list[int]) -> Any:
    """Return the answer of a query written by hand in DuckDB."""
    import duckdb

    duckdb.execute(f"SET memory_limit = '{LIMIT * 3 // 4 // 10**6}MB'")
    income = f"{' + '.join(REWARDS)} - {' - '.join(PENALTIES)}"
    sums = ", ".join(f"sum({name}) AS {name}" for name in (*REWARDS, *PENALTIES, FEES))
    date = "CAST(timezone('UTC', time) AS DATE)"
    if question == "missed":
        is_missed = f"{PENALTIES[0]} > 0 AND {PENALTIES[1]} > 0 AND {VOTE_REWARDS[0]} = 0"
        query = f"SELECT {date} AS date, count(*) AS missed FROM '{files}' WHERE {is_missed}"  # noqa: S608
        return duckdb.sql(f"{query} GROUP BY ALL").pl()
    if question == "day":
        query = f"SELECT {date} AS date, {sums} FROM '{files}' GROUP BY ALL"  # noqa: S608
        return duckdb.sql(f"SELECT *, {income} AS income FROM ({query})").pl()  # noqa: S608
    where = f"WHERE validator_index IN ({', '.join(map(str, chosen))})" if chosen else ""
    query = f"SELECT validator_index, {sums} FROM '{files}' {where} GROUP BY ALL"  # noqa: S608
    net = f"({income})::DECIMAL(38, 0) * 1000000000 + {FEES}"
    return summarize(duckdb.sql(f"SELECT *, {net} AS net FROM ({query})").pl(), "net")  # noqa: S608


def answer_in_dask(question: str, files: str, chosen: list[int]) -> Any:
    """Return the answer of a query written by hand in Dask."""
    import dask.dataframe as dd
    import polars as pl

    amounts = [*REWARDS, *PENALTIES, FEES]
    options: dict[str, Any] = {"dtype_backend": "pyarrow"}
    if question in ("day", "missed"):
        used = [PENALTIES[0], PENALTIES[1], VOTE_REWARDS[0]] if question == "missed" else amounts
        frame: Any = dd.read_parquet(files, columns=["time", *used], **options)
        frame["date"] = frame["time"].dt.floor("D")
        if question == "missed":
            head, source, target = VOTE_REWARDS[0], *PENALTIES[:2]
            frame = frame[(frame[source] > 0) & (frame[target] > 0) & (frame[head] == 0)]
            return pl.from_pandas(frame.groupby("date").size().compute().reset_index(name="missed"))
        table = pl.from_pandas(frame.groupby("date")[amounts].sum().compute().reset_index())
        income = pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)
        return table.with_columns(income=income)
    if chosen:
        options["filters"] = [("validator_index", "in", chosen)]
    frame = dd.read_parquet(files, columns=["validator_index", *amounts], **options)
    grouped = frame.groupby("validator_index")[amounts].sum().compute()
    table = pl.from_pandas(grouped.reset_index())
    net = pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)
    wei = net.cast(pl.Decimal(38, 0)) * 10**9 + pl.col(FEES).cast(pl.Decimal(38, 0))
    return summarize(table.with_columns(net=wei), "net")


BY_HAND: dict[str, Callable[[str, str, list[int]], Any]] = {
    "polars": answer_in_polars,
    "duckdb": answer_in_duckdb,
    "dask": answer_in_dask,
}


# --- the questions, by beaconframes --------------------------------------------------------------


def answer_with_analysis(engine: str, question: str, files: str, chosen: list[int]) -> Any:
    """Return the answer of `bf.analysis`."""
    import polars as pl

    import beaconframes as bf

    validator = pl.col("validator_index")
    rows: Any
    if engine == "polars":
        rows = pl.scan_parquet(files)
        rows = rows.filter(validator.is_in(chosen)) if chosen else rows
    elif engine == "duckdb":
        import duckdb

        connection = duckdb.connect(config={"memory_limit": f"{LIMIT * 3 // 4 // 10**6}MB"})
        rows = connection.read_parquet(files)
        if chosen:
            rows = rows.filter(f"validator_index IN ({', '.join(map(str, chosen))})")
    else:
        import dask.dataframe as dd

        filters = [("validator_index", "in", chosen)] if chosen else None
        rows = dd.read_parquet(files, dtype_backend="pyarrow", filters=filters)
    if question == "missed":
        result = bf.analysis.attestation_rates(rows)
    elif question == "day":
        result = bf.analysis.income(rows)
    else:
        result = bf.analysis.income(rows, every="all", by="validator_index")
    if engine == "polars":
        table = result.collect(engine="streaming")
    elif engine == "duckdb":
        table = result.pl()
    else:
        table = pl.from_pandas(result.compute())
    if question in ("day", "missed"):
        return table
    return summarize(table, "net_income_wei")


def summarize(table: pl.DataFrame, net: str) -> pl.DataFrame:
    """Return the worst ten validators and the quantiles, as one frame."""
    import polars as pl

    worst = table.bottom_k(10, by=[net, "validator_index"]).sort(net, "validator_index")
    ether = table[net].cast(pl.Float64)
    quantiles = [ether.quantile(share, "nearest") for share in QUANTILES]
    return pl.DataFrame(
        {
            "validator": [*worst["validator_index"].to_list(), *[-1] * len(QUANTILES)],
            "net": [*(float(x) for x in worst[net].to_list()), *quantiles],
        }
    )


# --- measuring -----------------------------------------------------------------------------------


def run_case(
    engine: str, method: str, question: str, folder: str, validators: int
) -> dict[str, Any]:
    """Run one case in this process, and return its answer, time and memory."""
    import numpy as np

    importlib.import_module("dask.dataframe" if engine == "dask" else engine)
    importlib.import_module("beaconframes.analysis")
    chosen: list[int] = []
    if question == "chosen":
        rng = np.random.default_rng(SEED + 1)
        chosen = sorted(rng.choice(validators, min(CHOSEN, validators), replace=False).tolist())
    files = f"{folder}/income_history/*.parquet"
    before, begin = time.process_time(), time.perf_counter()
    if method == METHODS[0]:
        table = BY_HAND[engine](question, files, chosen)
    else:
        table = answer_with_analysis(engine, question, files, chosen)
    wall, cpu = time.perf_counter() - begin, time.process_time() - before
    if question == "day":
        income = "income" if "income" in table.columns else "consensus_income_gwei"
        answer = [int(x) for x in table.sort("date")[income]]
    elif question == "missed":
        answer = [int(x) for x in table.sort("date")["missed"]]
    else:
        answer = [*table["validator"].to_list(), *(round(x / 1e9) for x in table["net"])]
    return {"answer": answer, "wall": wall, "cpu": cpu, "peak": read_status(os.getpid(), "VmHWM")}


def read_status(process: int, field: str) -> int:
    """Return a size of a process in bytes; 0 after its end."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(status.split(f"{field}:")[1].split()[0]) * 1024 if field in status else 0


def measure(arguments: list[str]) -> dict[str, Any] | None:
    """Run a case in its own interpreter, and return its figures; None if it needs too much."""
    command = [sys.executable, __file__, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            if read_status(process.pid, "VmRSS") > LIMIT:
                process.kill()
                return None
            time.sleep(0.2)
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    if process.returncode:
        raise SystemExit(f"the case {arguments} failed")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def main() -> None:
    """Write the rows, and print one line for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--validators", type=int, default=VALIDATORS)
    parser.add_argument("--engine", choices=BY_HAND, action="append")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--question", choices=QUESTIONS, action="append")
    parser.add_argument("--folder", help="folder for the rows; existing rows are used again")
    parser.add_argument("--case", help=argparse.SUPPRESS, action="store_true")
    parser.add_argument("--write", help=argparse.SUPPRESS, action="store_true")
    given = parser.parse_args()
    if given.write:
        print(json.dumps(write_day(given.folder, given.validators)))
        return
    if given.case:
        case = given.engine[0], given.method[0], given.question[0]
        print(json.dumps(run_case(*case, given.folder, given.validators)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or f"{name}/day"
        options = ["--folder", folder, "--validators", str(given.validators)]
        if not Path(folder).exists():
            size = measure(["--write", *options])
            assert size is not None
            print(
                f"{size['rows']:,} rows in {size['files']} files, {size['bytes'] / 1e6:,.0f} MB; "
                f"written in {size['cpu']:,.0f} s of CPU",
                flush=True,
            )
        answers: dict[str, list[int]] = {}
        print(f"{'question':<12}{'engine':<8}{'method':<12}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}")
        for question, engine, method in product(
            given.question or choose([*QUESTIONS], ["day"]),
            given.engine or BY_HAND,
            given.method or METHODS,
        ):
            case = ["--engine", engine, "--method", method, "--question", question]
            found = measure(["--case", *case, *options])
            if found is None:
                print(f"{question:<12}{engine:<8}{method:<12} more than {LIMIT / 1e9:.0f} GB")
                continue
            print(
                f"{question:<12}{engine:<8}{method:<12}{found['cpu']:>8.1f}{found['wall']:>8.1f}"
                f"{found['peak'] / 1e6:>9,.0f}",
                flush=True,
            )
            if answers.setdefault(question, found["answer"]) != found["answer"]:
                raise SystemExit(f"{engine} {method}: {found['answer']}, not {answers[question]}")


if __name__ == "__main__":
    main()
