"""CPU time and memory of answers of V2: each request is for other validators, and another epoch.

The time includes the selection, the encoding and the writing of the rows, without the socket.
``first`` is the mean of the first two requests, which read tables that later ones share.
"""

from __future__ import annotations

import random
import resource
import statistics
import time
from typing import TYPE_CHECKING, Any

import msgspec
from sizes import choose

from beaconframes import v2
from beaconframes.endpoint import Role
from beaconframes.server.service import Service
from beaconframes.simulator import open_sample

if TYPE_CHECKING:
    from collections.abc import Callable

REQUESTS = choose(30, 3)
WINDOWS = ("24h", "7d", "30d")
CASES = {
    "epoch": ("rewards", "performance", "balances"),
    "range": ("rewards_aggregate", "performance_aggregate", "network_performance", "entities"),
    "slot": ("slot", "slot_withdrawals", "slot_attestation_duties", "slot_sync_committee_duties"),
    "": ("validators", "metadata", "proposal_slots", "withdrawal_slots"),
}
"""The endpoints, by the field that differs between requests."""


def main() -> None:
    """Print one line for each endpoint, and the memory of the process."""
    service = Service(open_sample())
    head, first = service.head, service.views.current().first_epoch
    chosen = random.Random(1)  # noqa: S311
    epochs = range(first, head.finalized_epoch + 1)

    def choose_fields(field: str) -> dict[str, Any]:
        epoch = chosen.choice(epochs)
        return {
            "epoch": {"epoch": epoch},
            "range": {"range": {"evaluation_window": chosen.choice(WINDOWS)}},
            "slot": {"slot": {"number": epoch * 32 + chosen.randrange(32)}},
            "": {},
        }[field]

    endpoints = {endpoint.name: endpoint for endpoint in v2.ENDPOINTS}
    print(f"{'':<28}{'first':>11}{'answer':>11}   CPU, medians of {REQUESTS}; 10 validators each")
    for field, names in CASES.items():
        for name in names:
            endpoint = endpoints[name]
            spent = []
            for _ in range(2 + REQUESTS):
                validators = {"validator_identifiers": chosen.sample(range(900), 10)}
                takes_set = endpoint.parameters_of(Role.SUBJECT)
                selected = {"validator": validators} if takes_set else {}
                body = msgspec.json.encode({"chain": "mainnet", **selected, **choose_fields(field)})
                spent.append(measure(lambda e=endpoint, b=body: service.answer_v2(e, b, "premium")))
            median = statistics.median(spent[2:])
            print(f"{name:<28}{statistics.mean(spent[:2]):>8.1f} ms{median:>8.1f} ms")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cached = service.views.memory.size
    print(f"cached {cached / 1e6:,.0f} MB, peak of the process {peak / 1e3:,.0f} MB")


def measure(work: Callable[[], Any]) -> float:
    """Return the CPU milliseconds of *work*."""
    start = time.process_time()
    assert work().status_code == 200
    return (time.process_time() - start) * 1e3


if __name__ == "__main__":
    main()
