"""Cost of an index of 10,000 validators, and of reports of 3, 200 and all of them, all checked.

Run: ``python benchmarks/report_index.py``. A synthetic chain of Electra, mainnet preset, is made
and served on loopback by another process: a beacon node with states, and its execution node.
`bf.index` writes all its tables. Each report is then made in a process of its own, by `bf.open`.

Of reports of every epoch, each column of each frame is compared with the queries of the tests on
the files of the index. Of a report of daily statistics, income, withdrawals, votes and blocks are
compared with the income of slots and epochs, which is not what the statistics are made of.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).parent.parent))

from sizes import choose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.reports import Report

SERVER = [sys.executable, "-m", "synthetic_node.server"]
HERE = Path(__file__).parent
MOST = "most"
"""As many epochs as a report loads before it takes daily statistics."""
MOST_ROWS = 2_000_000


@contextmanager
def serve(chain: Path, seconds: float = 0) -> Iterator[str]:
    """Serve a synthetic chain by another process; yield the address of both nodes.

    The node computes one state at a time, in so many *seconds*.
    """
    command = [*SERVER, "serve", str(chain), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def read_memory() -> float:
    """Return the largest resident memory of this process so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_index(chain: Path, folder: Path) -> None:
    """Index the chain in this process, print its figures, and check its verdicts."""
    import beaconframes as bf
    from beaconframes.dataset import Dataset

    with serve(chain) as url, bf.node(url, execution=url) as node:
        start, wall = time.process_time(), time.perf_counter()
        coverage = bf.index(node, folder)
        used, passed = time.process_time() - start, time.perf_counter() - wall
        requests = node.requests
    tables = Dataset.open(folder).tables()
    size = sum(table.bytes for table in tables.values())
    rows = sum(table.rows for table in tables.values())
    assert coverage["status"].to_list() == ["explained"] * coverage.height
    print(
        f"index: {coverage.height} epochs, {rows:,} rows, {size / 1e6:,.0f} MB, "
        f"{requests:,} requests, {used:.1f} s of CPU ({used / coverage.height:.2f} s an epoch), "
        f"{passed:.0f} s, peak {read_memory():,.0f} MB",
        flush=True,
    )


def find_start(folder: Path, count: int) -> int:
    """Return the first epoch of a report of so many rows as are loaded by epoch."""
    from beaconframes.dataset import Dataset

    return int(Dataset.open(folder).meta["latest_epoch"]) - MOST_ROWS // count + 1


def measure_report(folder: Path, count: int, detail: str, since: int, page: Path | None) -> None:
    """Make one report in this process, print its figures, and check it."""
    import beaconframes as bf

    if detail == MOST:
        since, detail = max(since, find_start(folder, count)), "epochs"
    start = time.process_time()
    with bf.open(folder) as source, tempfile.TemporaryDirectory() as temporary:
        report = bf.report(range(count), since=since, detail=detail)
        path = report.save(page or Path(temporary) / "report.html")
        size, requests = path.stat().st_size, source.requests
        used, peak = time.process_time() - start, read_memory()
        facts = dict(report.frames["facts"].iter_rows())
        print(
            f"{count:>10,}  {facts['detail']:<17} {used:6.1f} s {peak:8,.0f} MB "
            f"{size / 1000:8,.0f} kB {requests:>9,}",
            flush=True,
        )
        check_chain(report)
        if facts["detail"] == "daily statistics":
            check_days(report, folder, count)
        else:
            check_epochs(report, folder, count, source)


def check_chain(report: Report) -> None:
    """Check what must hold on every chain whose validators all have their duties."""
    summary = report.frames["summary"].row(0, named=True)
    net = summary["consensus_income_gwei"] * 10**9 + int(summary["execution_income_wei"])
    assert net == summary["net_income_wei"]
    for name in ("effectiveness", "network_effectiveness", "included_rate"):
        assert summary.get(name) is None or 0 <= summary[name] <= 1, name
    parts = ("avoidable_gwei", "unavoidable_gwei", "unknown_gwei")
    assert sum(summary[name] for name in parts) == summary["lost_gwei"]
    if "reconciliation" in report.frames:
        verdict = report.frames["reconciliation"].row(0, named=True)
        # The day on which a deposit reaches the balance is not in the table of deposits.
        assert verdict["unexplained"] == verdict["with_possible_cause"]
        assert verdict["explained"] + verdict["unexplained"] == verdict["changes"]


def check_epochs(report: Report, folder: Path, count: int, explorer: object) -> None:
    """Compare every column of every frame with the queries of the tests."""
    from beaconframes.dataset import Dataset
    from tests.reports.test_every_number import compare
    from tests.support.report_queries import Source

    summary, head = report.frames["summary"].row(0, named=True), explorer.chain_head
    source = Source(
        Dataset.open(folder),
        list(range(count)),
        summary["first_epoch"],
        summary["last_epoch"],
        head.latest("epoch"),
        head.latest("epoch", finalized=True),
        head.chain,
        offset=1,
        address=str(folder),
        requests=explorer.requests,
    )
    compare(report.frames, source)
    columns = sum(frame.width for frame in report.frames.values())
    print(f"            {len(report.frames)} frames, {columns} columns: equal queries", flush=True)


def check_days(report: Report, folder: Path, count: int) -> None:
    """Compare the main columns of daily statistics with the income of slots and epochs."""
    import polars as pl

    from beaconframes.dataset import Dataset

    dataset, summary = Dataset.open(folder), report.frames["summary"].row(0, named=True)
    # Those of the whole days; the summary states the requested ones.
    facts = dict(report.frames["facts"].iter_rows())
    first, last = int(facts["first epoch"]), int(facts["last epoch"])
    assert last - first + 1 == summary["income_epochs"]
    mine = pl.col("validator_index") < count
    # A balance is that after the first block of an epoch.
    after = pl.col("slot").is_between(first * 32 + 1, (last + 1) * 32)
    moves = ["withdrawal", "deposit", "switch_to_compounding"]
    in_slots = dataset.scan("slot_income").filter(mine, after, ~pl.col("kind").is_in(moves))
    rewards = pl.sum_horizontal(
        "attestation_head_reward_gwei",
        "attestation_source_reward_gwei",
        "attestation_target_reward_gwei",
    ) - pl.sum_horizontal(
        "attestation_source_penalty_gwei",
        "attestation_target_penalty_gwei",
        "finality_delay_penalty_gwei",
    )
    # The transition at the end of an epoch pays the votes of the epoch before.
    paid = pl.col("epoch").is_between(first - 1, last - 1)
    votes = dataset.scan("income_history").filter(mine, paid)
    income = pl.concat(
        [
            in_slots.select("validator_index", "amount_gwei"),
            votes.select("validator_index", amount_gwei=rewards),
        ]
    )
    sums = income.group_by("validator_index").agg(pl.sum("amount_gwei")).collect()
    validators = report.frames["validators"].sort("validator_index")
    found = validators.join(sums, on="validator_index", how="left", maintain_order="left")
    # A validator that is new, or has a consolidation, has days of unknown income.
    known = found.filter(pl.col("consensus_income_gwei").is_not_null())
    differs = known.filter(pl.col("consensus_income_gwei") != pl.col("amount_gwei").fill_null(0))
    assert known.height == count, f"{count - known.height} of {count} have no income"
    assert differs.is_empty(), differs.select(
        "validator_index", "consensus_income_gwei", "amount_gwei"
    )
    assert summary["consensus_income_gwei"] == known["consensus_income_gwei"].sum()

    proposers = pl.col("proposer_index") < count
    in_range = pl.col("epoch").is_between(first, last)
    blocks = dataset.scan("execution_blocks").filter(proposers, in_range)
    paid_wei, number = (
        blocks.select(pl.col("producer_reward_wei").cast(pl.Int128).sum(), pl.len())
        .collect()
        .row(0)
    )
    assert (paid_wei, number) == (int(summary["execution_income_wei"]), summary["blocks"])
    withdrawn = (
        dataset.scan("validator_withdrawals")
        .filter(mine, pl.col("slot").is_between(first * 32 + 1, (last + 1) * 32))
        .select(pl.sum("amount_gwei"))
        .collect()
        .item()
    )
    assert withdrawn == summary["withdrawals_gwei"], (withdrawn, summary["withdrawals_gwei"])
    missed = dataset.scan("attestations").filter(mine, in_range, pl.col("status") == "missed")
    counts = missed.group_by("validator_index").agg(count=pl.len()).collect()
    votes_missed = validators.join(counts, on="validator_index", how="left", maintain_order="left")
    assert votes_missed["count"].fill_null(0).to_list() == votes_missed["votes_missed"].to_list()
    rows = dataset.scan("blocks").filter(proposers, in_range, pl.col("status") == "missed")
    assert rows.select(pl.len()).collect().item() == validators["missed"].sum()
    print(f"            {count:,} validators: equal the income of slots and epochs", flush=True)


def main() -> None:
    """Make a chain, index it, and measure reports of some and of all of its validators."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validators", type=int, default=choose(10_000, 300))
    parser.add_argument("--epochs", type=int, default=456, help="two days and what settles them")
    parser.add_argument("--since", type=int, default=0, help="first epoch of the reports")
    parser.add_argument("--folder", type=Path, help="store chain, index and pages, or use stored")
    parser.add_argument("--run", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        case, *values = arguments.run
        if case == "index":
            measure_index(Path(values[0]), Path(values[1]))
        else:
            folder, count, detail, page = values
            measure_report(Path(folder), int(count), detail, arguments.since, Path(page))
        return
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.folder or Path(temporary)
        chain, folder = home / "chain", home / "index"
        own = [sys.executable, __file__, "--since", str(arguments.since), "--run"]
        if not (chain / "chain.json").exists():
            size = [str(arguments.validators), str(arguments.epochs)]
            subprocess.run([*SERVER, "make", str(chain), *size], check=True, cwd=HERE)
        if not folder.exists():
            subprocess.run([*own, "index", str(chain), str(folder)], check=True)
        print(
            f"{'validators':>10}  {'rows':<17} {'CPU':>8} {'peak':>11} {'file':>11} {'requests':>9}"
        )
        few = [(3, "auto"), (200, "auto")]
        for count, detail in [*few, (arguments.validators, "days"), (arguments.validators, MOST)]:
            page = home / f"report-{count}-{detail}.html"
            subprocess.run([*own, "report", str(folder), str(count), detail, str(page)], check=True)


if __name__ == "__main__":
    main()
