"""CPU time, memory and size of a report: of 3, 200 and all validators of a simulated chain.

The chain is simulated before; a month of 10,000 validators (``--validators 10000 --epochs 6830``)
takes one to eight minutes. Each report is made in a process of its own. ``--http`` loads from
a local explorer instead of the dataset, which is another process. Afterwards, the main columns of
daily statistics are compared with polars queries on the tables of the dataset.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sizes import choose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.reports import Report


def measure(folder: str, count: int, url: str | None) -> None:
    """Make one report in this process, print its figures, and check its main columns."""
    import beaconframes as bf

    start, begin = time.process_time(), time.perf_counter()
    source: Any = bf.open(folder) if url is None else bf.connect(url, store=False)
    with source, tempfile.TemporaryDirectory() as temporary:
        report = bf.report(range(count))  # the last 30 days, or all days of the chain
        path = report.save(Path(temporary) / "report.html")
        size = path.stat().st_size
    used = resource.getrusage(resource.RUSAGE_SELF)
    detail = dict(report.frames["facts"].iter_rows())["detail"]
    print(
        f"{count:>9,}  {detail:<17} {time.process_time() - start:6.1f} s "
        f"{time.perf_counter() - begin:6.1f} s {used.ru_maxrss / 1024:8,.0f} MB "
        f"{size / 1000:8,.0f} kB",
        flush=True,
    )
    if detail == "daily statistics":
        check(report, folder, count)


def check(report: Report, folder: str, count: int) -> None:
    """Compare the main columns of a report of days with queries on the tables of the dataset."""
    import polars as pl

    from beaconframes.dataset import Dataset

    dataset, answer = Dataset.open(folder), report.frames["summary"].row(0, named=True)
    first, last = answer["first_epoch"], answer["last_epoch"]
    proposers = pl.col("proposer_index").is_in(range(count))
    in_range = pl.col("epoch").is_between(first, last)
    blocks = dataset.scan("execution_blocks").filter(proposers, in_range)
    wei = pl.col("producer_reward_wei").cast(pl.Int128)
    relayed = wei.filter(pl.col("relay_tag").is_not_null())
    relays, number = blocks.select(relayed.sum(), pl.len()).collect().row(0)
    assert (relays, number) == (answer["relay_payments_wei"], answer["blocks"])
    # Days with a consolidation have no row: their income is unknown.
    key = ["validator_index", "day"]
    on_days = blocks.with_columns(day=pl.col("epoch") // 225, validator_index="proposer_index")
    counted = on_days.join(report.frames["days"].lazy().select(key), on=key).select(wei.sum())
    assert counted.collect().item() == answer["execution_income_wei"]
    validators = report.frames["validators"].sort("validator_index")
    days = pl.col("day").is_between(first // 225, last // 225)
    mine = pl.col("validator_index").is_in(range(count))
    stats = dataset.scan("validator_stats").filter(mine, days)
    missed = stats.group_by("validator_index").agg(pl.sum("missed_attestations")).collect()
    votes = validators.join(missed, on="validator_index", maintain_order="left")
    assert votes["missed_attestations"].to_list() == votes["votes_missed"].to_list()
    stats = stats.join(report.frames["days"].lazy().select(key), on=key, how="semi")
    moves = pl.col("withdrawals_amount_gwei").fill_null(0)
    sums = (
        stats.group_by("validator_index")
        .agg(
            pl.sum("deposits_amount_gwei"),
            income=(pl.col("end_balance_gwei") - pl.col("start_balance_gwei") + moves).sum(),
            withdrawals=moves.sum(),
        )
        .collect()
    )
    joined = validators.join(sums, on="validator_index")
    assert sums["withdrawals"].sum() == answer["withdrawals_gwei"]
    # A deposit reaches the balance later than its block, so validators with one are left out.
    plain = joined.filter(pl.col("deposits_amount_gwei") == 0)
    is_equal = plain["income"] == plain["consensus_income_gwei"]
    # A deposit before the range may reach the balance in it.
    assert is_equal.sum() >= 0.99 * plain.height, f"{is_equal.sum()} of {plain.height}"
    # Of two blocks for one slot, the canonical one counts.
    rows = dataset.scan("blocks").filter(proposers, in_range)
    slots = rows.group_by("slot").agg(pl.col("status").sort().last())
    counts = dict(slots.group_by("status").len().collect().iter_rows())
    for name in ("missed", "orphaned"):
        assert counts[name] == validators[name].sum(), name
    net = answer["consensus_income_gwei"] * 10**9 + int(answer["execution_income_wei"])
    assert net == answer["net_income_wei"]
    print(f"           {len(plain):,} validators compared with queries")


def main() -> None:
    """Simulate a chain, and measure reports of some and of all of its validators."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validators", type=int, default=choose(2_000, 200))
    parser.add_argument("--epochs", type=int, default=choose(900, 450))
    parser.add_argument("--chain", help="folder of a simulated chain, instead of a new one")
    parser.add_argument("--http", action="store_true", help="load from a local explorer")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        measure(arguments.chain, arguments.one, arguments.url)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.chain or str(Path(temporary) / "chain")
        if arguments.chain is None:
            size = ["--validators", str(arguments.validators), "--epochs", str(arguments.epochs)]
            command = [sys.executable, "-m", "beaconframes", "simulate", *size, "--out", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        print(f"{'validators':>10} {'detail':<18} {'CPU':>7} {'wall':>8} {'peak':>10} {'file':>11}")
        for count in sorted({3, min(200, arguments.validators), arguments.validators}):
            command = [sys.executable, __file__, "--chain", folder, "--one", str(count)]
            with serve(folder) if arguments.http else nullcontext() as url:
                start = time.process_time()
                subprocess.run(command + ["--url", url] * (url is not None), check=True)
                if url is not None:
                    print(f"           local explorer: {time.process_time() - start:.1f} s of CPU")


@contextmanager
def serve(folder: str) -> Iterator[str]:
    """Serve the chain from this process, and yield the address."""
    import beaconframes as bf

    with bf.local(folder) as explorer:
        yield explorer.url


if __name__ == "__main__":
    main()
