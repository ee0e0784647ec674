"""CPU of loads from the sample on disk, beside polars queries of the same rows written by hand.

Every load runs twice in one interpreter, and the second one is measured: the rows of V2 are joined
from several tables, of which the first load reads the metadata. The last column is the CPU per row,
as a multiple of that of `load_income_history`.
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
            "v2.slot_withdrawals": (lambda: bf.v2.load_slot_withdrawals(slots), None),
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
            rows, seconds = measure(load)
            per_row = seconds / rows
            best = best or per_row
            by_hand = "" if query is None else f"{measure(query().collect)[1]:.3f} s by hand, "
            print(f"{name}: {rows:,} rows, {seconds:.3f} s, {by_hand}{per_row / best:.1f} a row")


def measure(load: Callable[[], Any]) -> tuple[int, float]:
    """Return the rows and the CPU seconds of the second of two runs."""
    load()
    before = time.process_time()
    rows = load().height
    return rows, time.process_time() - before


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
