"""CPU of loads from the sample on disk, beside polars queries of the same rows written by hand.

Every load runs three times in one interpreter. The first one reads the metadata of the tables from
which the rows of V2 are joined; the second one may compute what loads share, such as missed blocks,
for all days, and is printed if that takes longer. The third one is compared. The last column is the
CPU per row, as a multiple of that of `load_income_history`.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import polars as pl
from sizes import choose

import beaconframes as bf

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = choose(1_000, 20)
INDEX, EPOCH = pl.col("validator_index"), pl.col("epoch")


def main() -> None:
    """Print rows, CPU seconds, and those of the query by hand."""
    with bf.open() as sample:
        dataset = sample.views.dataset
        last = sample.views.current().head.finalized_epoch
        ten = {"since": last - 9, "until": last}
        blocks = dataset.scan("execution_blocks").select("block_number", "slot").collect()
        numbers, slots = blocks["block_number"][-49:], blocks["slot"][-49:]
        many_slots = range(32 * last - choose(625, 10), 32 * last)  # as many rows as of income

        def scan(table: str, first: int) -> pl.LazyFrame:
            chosen = dataset.scan(table).filter(INDEX < MANY, EPOCH.is_between(first, last))
            return chosen.sort("validator_index", "epoch")

        def join_keys(table: str) -> pl.LazyFrame:
            keys = dataset.scan("validators").select("validator_index", "pubkey")
            return scan(table, last - 9).join(keys, on="validator_index", how="left")

        def scan_blocks() -> pl.LazyFrame:
            return dataset.scan("execution_blocks").filter(pl.col("slot").is_in(slots.implode()))

        loads: dict[str, tuple[Callable[[], Any], Callable[[], pl.LazyFrame] | None]] = {
            "income_history": (
                lambda: bf.load_income_history(range(MANY), **ten),
                lambda: scan("income_history", last - 9),
            ),
            "v2.rewards": (
                lambda: bf.v2.load_rewards(range(MANY), **ten),
                lambda: join_keys("income_history"),
            ),
            "v2.rewards, 100 epochs": (
                lambda: bf.v2.load_rewards(range(3), since=last - 99, until=last),
                lambda: scan("income_history", last - 99).filter(INDEX < 3),
            ),
            "v2.performance": (
                lambda: bf.v2.load_performance(range(MANY), **ten),
                lambda: join_keys("income_history"),
            ),
            "v2.balances": (
                lambda: bf.v2.load_balances(range(MANY), **ten),
                lambda: join_keys("balance_history"),
            ),
            "v2.validators": (
                lambda: bf.v2.load_validators(range(MANY)),
                lambda: dataset.scan("validators").filter(INDEX < MANY),
            ),
            "v2.slot_withdrawals": (lambda: bf.v2.load_slot_withdrawals(many_slots), None),
            "v2.block": (lambda: bf.v2.load_block(numbers), scan_blocks),
            "v2.block_rewards": (lambda: bf.v2.load_block_rewards(numbers), scan_blocks),
            "slots": (lambda: bf.load_slots(slots), None),
            "deposits": (lambda: bf.load_deposits(range(MANY)), None),
            "validators": (
                lambda: bf.load_validators(range(MANY)),
                lambda: dataset.scan("validators").filter(INDEX < MANY),
            ),
        }
        best = 0.0
        for name, (load, query) in loads.items():
            rows, second, seconds = measure(load)
            per_row = seconds / rows
            best = best or per_row
            shared = f"{second:.3f} s once, " if second > 2 * seconds else ""
            by_hand = "" if query is None else f"{measure(query().collect)[2]:.3f} s by hand, "
            ratio = f"{per_row / best:.1f} a row"
            print(f"{name}: {rows:,} rows, {seconds:.3f} s, {shared}{by_hand}{ratio}")


def measure(load: Callable[[], Any]) -> tuple[int, float, float]:
    """Return the rows, and the CPU seconds of the second and the third run."""
    load()
    started = time.process_time()
    rows = load().height
    ended = time.process_time()
    load()
    return rows, ended - started, time.process_time() - ended


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
