"""What an answer of the local explorer costs, beside building the same JSON from dictionaries.

CPU of the answer alone, without the socket: select the rows, spell them, write them. Two sizes of
income and of balances, and single records; each asked for again and again, as the batches and
windows of one load are.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING, Any

from beaconframes.service import sample
from beaconframes.service.app import Service
from beaconframes.v1 import BALANCE_HISTORY, EPOCHS, INCOME_HISTORY, VALIDATORS, YIELD_INDEX

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 25


def cpu(way: Callable[[], Any]) -> float:
    """Return the median CPU seconds of *way*, after one round to warm up."""
    way()
    spent = []
    for _ in range(ROUNDS):
        start = time.process_time()
        way()
        spent.append(time.process_time() - start)
    return statistics.median(spent)


def main() -> None:
    """Print a line for each kind of answer."""
    service = Service(sample())
    epoch = str(service.head.finalized_epoch)
    hundred = ",".join(map(str, range(100)))
    window = {"latest_epoch": epoch, "limit": "100"}
    cases = [
        ("income, 10,000 rows", INCOME_HISTORY, {"validators": hundred, **window}),
        ("income, 100 rows", INCOME_HISTORY, {"validators": "7", **window}),
        ("balances, 10,000 rows", BALANCE_HISTORY, {"validators": hundred, **window}),
        ("balances, 100 rows", BALANCE_HISTORY, {"validators": "7", **window}),
        ("validators, 100 rows", VALIDATORS, {"validators": hundred}),
        ("one epoch", EPOCHS, {"epoch": epoch}),
        ("one day", YIELD_INDEX, {"day": "300"}),
    ]
    print(
        f"{'':<24}{'bytes':>11}{'answer':>10}{'dicts':>10}{'times':>7}   CPU, medians of {ROUNDS}"
    )
    for name, endpoint, fields in cases:
        body = service.answer(endpoint, fields, None).body
        rows = service.rows.select(endpoint, fields, service)
        ours = cpu(lambda e=endpoint, f=fields: service.answer(e, f, None))
        # Less than any service has to do: no names of the wire, no envelope, no inner objects.
        dicts = cpu(lambda r=rows: json.dumps(r.to_dicts(), default=str))
        line = f"{name:<24}{len(body):>11,}{ours * 1e3:>7.1f} ms{dicts * 1e3:>7.1f} ms"
        print(f"{line}{dicts / ours:>7.1f}")


if __name__ == "__main__":
    main()
