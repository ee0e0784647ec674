"""CPU time of responses of the local explorer, compared with ``json.dumps`` of dictionaries.

The time includes the selection, the encoding and the writing of the rows, without the socket. Each
request is repeated, as the batches and windows of a load are. ``first`` is the time of the first
request, which reads the rows from disk.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING, Any

from sizes import choose

from beaconframes import v1
from beaconframes.answers.selectors import select_list, select_page
from beaconframes.server.service import Service
from beaconframes.simulator import open_sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.endpoint import Endpoint

ROUNDS = choose(25, 1)


def measure_cpu(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Return the median CPU milliseconds of *work*."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return statistics.median(spent) * 1e3


def main() -> None:
    """Print one line for each kind of response."""
    service = Service(open_sample(validators=choose(2_000, None)))
    view = service.views.current()
    head = view.head
    epoch, slot = str(head.finalized_epoch), str(head.finalized_epoch * 32)
    hundred = {"validators": ",".join(map(str, range(100)))}
    window = {"latest_epoch": epoch, "limit": "100"}
    block = view.scan("blocks").select("exec_block_number").max().collect().item()
    numbers = ",".join(str(block - n) for n in range(100))
    cases = [
        (v1.INCOME_HISTORY, hundred | window),
        (v1.INCOME_HISTORY, {"validators": "7", **window}),
        (v1.BALANCE_HISTORY, hundred | window),
        (v1.BALANCE_HISTORY, {"validators": "7", **window}),
        (v1.ATTESTATIONS, hundred),
        (v1.ATTESTATIONS, {"validators": "7", "slim": "true"}),
        (v1.PROPOSALS, hundred | {"epoch": epoch}),
        (v1.VALIDATOR_WITHDRAWALS, hundred | {"epoch": epoch}),
        (v1.VALIDATORS, hundred),
        (v1.DEPOSITS, hundred),
        (v1.EPOCHS, {"epoch": epoch}),
        (v1.EPOCH_SLOTS, {"epoch": epoch}),
        (v1.SLOT_ATTESTATIONS, {"slot": slot}),
        (v1.SLOT_WITHDRAWALS, {"slot": slot}),
        (v1.SYNC_COMMITTEES, {"period": "latest"}),
        (v1.EXECUTION_BLOCKS, {"blocks": numbers}),
        (v1.YIELD_INDEX, {"day": "300"}),
        (v1.GRAFFITI_WALL, {"slot": str(head.slot), "startSlot": str(head.slot - 500_000)}),
    ]
    print(
        f"{'':<22}{'rows':>7}{'bytes':>11}{'first':>10}{'answer':>10}{'dicts':>10}{'times':>7}"
        f"   CPU, medians of {ROUNDS}"
    )
    for endpoint, fields in cases:
        table = view.scan(endpoint.table.table_name)
        listed = select_list(endpoint, table, fields, view)
        rows = select_page(endpoint, listed, fields, view).collect()

        def answer(endpoint: Endpoint = endpoint, fields: dict[str, str] = fields) -> bytes:
            return bytes(service.answer(endpoint, fields).body)

        first, ours = measure_cpu(answer, 1), measure_cpu(answer)
        # Less than any service has to do: no wire names, no envelope, no nested objects.
        dicts = measure_cpu(lambda rows=rows: json.dumps(rows.to_dicts(), default=str))
        line = f"{endpoint.name:<22}{rows.height:>7,}{len(answer()):>11,}{first:>7.1f} ms"
        print(f"{line}{ours:>7.1f} ms{dicts:>7.1f} ms{dicts / ours:>7.1f}")


if __name__ == "__main__":
    main()
