"""The reasons of balances and statuses: what happened, by slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes.simulator import tables

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Writer
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Ints

_EPOCHS = 128  # of a chunk


class EventTables:
    """Collects events and hands them on, sorted by slot."""

    def __init__(self, writer: Writer, chain: Chain, finalized: int) -> None:
        """Missed attestations are kept up to the *finalized* epoch: later ones may come yet."""
        self._writer, self._size, self._finalized = writer, chain.slots_per_epoch, finalized
        self._many: dict[str, list[tuple[Ints, ...]]] = {}
        self._few: dict[str, list[tuple[Any, ...]]] = {}
        self._withdrawals = 0

    def add(self, epoch: Epoch) -> None:
        """Take an epoch in."""
        first, paid, blocks = epoch.number * self._size, epoch.withdrawals, epoch.slots.earning
        numbers = self._withdrawals + np.arange(len(paid.slots))
        self._withdrawals += len(numbers)
        many: dict[str, tuple[Ints, ...]] = {
            "withdrawal_events": (numbers, first + paid.slots, paid.validators, paid.amounts),
            "fee_events": (first + np.flatnonzero(blocks), epoch.fees[blocks]),
        }
        if epoch.votes is not None and epoch.number <= self._finalized:
            missing = epoch.votes.voters[epoch.votes.inclusion < 0]
            many["missed_attestation_events"] = np.full_like(missing, epoch.number), missing
        few: dict[str, list[tuple[Any, ...]]] = {
            "deposit_events": [(first + slot, who, gwei) for slot, who, gwei in epoch.deposits],
            "bls_change_events": [(first + slot, who) for slot, who in epoch.bls_changes],
            "exit_events": [(first + slot, who) for slot, who in epoch.exits],
            "slashing_events": [
                (first + s.slot, s.validator, s.kind, first + s.offence) for s in epoch.slashings
            ],
        }
        for table, columns in many.items():
            self._many.setdefault(table, []).append(columns)
        for table, rows in few.items():
            self._few.setdefault(table, []).extend(rows)
        if len(self._many["fee_events"]) == _EPOCHS:
            self.flush()

    def flush(self) -> None:
        """Hand on what is there."""
        for table, events in self._few.items():
            if events:
                self._write(table, list(zip(*events, strict=True)))
        for table, parts in self._many.items():
            self._write(table, [np.concatenate(columns) for columns in zip(*parts, strict=True)])
        self._few.clear()
        self._many.clear()

    def _write(self, table: str, columns: list[Any]) -> None:
        names = tables.EVENTS[table].names()
        rows = tables.frame(table, dict(zip(names, columns, strict=True)))
        self._writer.add(table, rows)
