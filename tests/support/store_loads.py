"""Loads with a store, with their rows, warnings and requests."""

from __future__ import annotations

import warnings

import beaconframes as bf

from .store_processes import connect

FINAL = 467
"""The last finalized epoch of the chain; two more were processed."""


class CountedLoad:
    """The rows, the warnings and the requests of a call, counted by the server."""

    def __init__(self, server, call, explorer):
        before = server.requests
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.rows = call(explorer)
        self.warnings = [warning.message for warning in caught]
        self.requests = server.requests - before


def load_counted(server, store, call, **more):
    """Return the counted load of *call* by an explorer without any state but the store."""
    with connect(server, store, **more) as explorer:
        return CountedLoad(server, call, explorer)


CALLS = {
    "income": lambda e: bf.load_income_history(range(101), since=250, until=255, explorer=e),
    "balances": lambda e: bf.load_balance_history(range(120), since=0, until=120, explorer=e),
    "proposals": lambda e: bf.load_proposals(range(30), since=0, until=110, explorer=e),
    "withdrawals": lambda e: bf.load_validator_withdrawals(
        range(50), since=0, until=110, explorer=e
    ),
    "attestations": lambda e: bf.load_attestations(range(50), since=400, until=450, explorer=e),
    "slim": lambda e: bf.load_attestations([1, 2], since=400, until=450, slim=True, explorer=e),
    "epochs": lambda e: bf.load_epochs(since=100, until=110, explorer=e),
    "epoch slots": lambda e: bf.load_epoch_slots(since=100, until=103, explorer=e),
    "yield": lambda e: bf.load_yield_index(since=0, until=1, explorer=e),
    "yield of V2": lambda e: bf.v2.load_yield_index(since=0, until=1, explorer=e),
    "slots": lambda e: bf.load_slots(range(3200, 3208), explorer=e),
    "slot attestations": lambda e: bf.load_slot_attestations([11840, 11841], explorer=e),
    "slot withdrawals": lambda e: bf.load_slot_withdrawals(range(3200, 3206), explorer=e),
    "sync": lambda e: bf.load_sync_committees([0, 1], explorer=e),
    "wall": lambda e: bf.load_graffiti_wall(since=0, until=12_000, explorer=e),
    "wall, summary": lambda e: bf.load_graffiti_wall(
        since=0, until=12_000, summarize=True, explorer=e
    ),
    "wall, part": lambda e: bf.load_graffiti_wall(
        (0, 0, 500, 500), since=0, until=12_000, explorer=e
    ),
    "days": lambda e: bf.load_validator_stats(range(3), since=0, until=1, explorer=e),
    "execution": lambda e: bf.load_execution_blocks(range(1000, 1120), explorer=e),
    "rewards of V2": lambda e: bf.v2.load_rewards(
        range(12), since=100, until=101, explorer=e
    ),
    "slots of V2": lambda e: bf.v2.load_slot(range(3200, 3206), explorer=e),
    "withdrawals of V2": lambda e: bf.v2.load_slot_withdrawals([3200, 3201], explorer=e),
}  # fmt: skip
"""Calls of every kind of loader whose rows can be final."""
