"""The reasons of balances and statuses: deposits, withdrawals, exits, slashings, by slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes.service.simulate import tables

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Writer
    from beaconframes.service.simulate.epoch import Epoch
    from beaconframes.service.simulate.preset import Ints

_EPOCHS = 128  # of a chunk


class EventTables:
    """Collects events and hands them on, sorted by slot."""

    def __init__(self, writer: Writer, chain: Chain) -> None:
        self._writer, self._size = writer, chain.slots_per_epoch
        self._paid: list[tuple[Ints, Ints, Ints]] = []
        self._few: dict[str, list[tuple[Any, ...]]] = {}
        self._withdrawals = 0

    def add(self, epoch: Epoch) -> None:
        """Take an epoch in."""
        first, paid = epoch.number * self._size, epoch.withdrawals
        self._paid.append((first + paid.slots, paid.validators, paid.amounts))
        events: dict[str, list[tuple[Any, ...]]] = {
            "deposit_events": [(first + slot, who, gwei) for slot, who, gwei in epoch.deposits],
            "exit_events": [(first + slot, who) for slot, who in epoch.exits],
            "slashing_events": [
                (first + s.slot, s.validator, s.kind, first + s.offence) for s in epoch.slashings
            ],
        }
        for table, rows in events.items():
            self._few.setdefault(table, []).extend(rows)
        if len(self._paid) == _EPOCHS:
            self.flush()

    def flush(self) -> None:
        """Hand on what is there."""
        for table, events in self._few.items():
            if events:
                self._write(table, list(zip(*events, strict=True)))
        columns = [np.concatenate(parts) for parts in zip(*self._paid, strict=True)]
        if columns:
            numbers = self._withdrawals + np.arange(len(columns[0]))
            self._withdrawals += len(numbers)
            self._write("withdrawal_events", [numbers, *columns])
        self._few.clear()
        self._paid.clear()

    def _write(self, table: str, columns: list[Any]) -> None:
        names = tables.EVENTS[table].names()
        rows = tables.frame(table, dict(zip(names, columns, strict=True)))
        self._writer.add(table, rows)
