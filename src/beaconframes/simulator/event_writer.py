"""The event tables: deposits, withdrawals, fees, exits, slashings and more, by slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes.simulator import tables

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.consensus.registry import Ints
    from beaconframes.dataset import Writer
    from beaconframes.simulator.epoch import Epoch

_CHUNK_EPOCHS = 128


class EventWriter:
    """Collects the events of epochs and writes them, sorted by slot."""

    def __init__(self, writer: Writer, chain: Chain, finalized: int) -> None:
        """Write missed and late attestations up to *finalized*: others may still be included."""
        self._writer, self._size, self._finalized = writer, chain.slots_per_epoch, finalized
        self._columns: dict[str, list[tuple[Ints, ...]]] = {}
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._withdrawals = 0

    def add(self, epoch: Epoch) -> None:
        """Add the events of an epoch."""
        for table, columns in self._collect_columns(epoch).items():
            self._columns.setdefault(table, []).append(columns)
        for table, rows in self._collect_rows(epoch).items():
            self._rows.setdefault(table, []).extend(rows)
        if len(self._columns["fee_events"]) == _CHUNK_EPOCHS:
            self.flush()

    def _collect_columns(self, epoch: Epoch) -> dict[str, tuple[Ints, ...]]:
        """Return the events of an epoch that are in arrays, by table: a column in each array."""
        first = epoch.number * self._size
        withdrawals, blocks = epoch.withdrawals, epoch.slots.rewarded
        numbers = self._withdrawals + np.arange(len(withdrawals.slots))
        self._withdrawals += len(numbers)
        columns: dict[str, tuple[Ints, ...]] = {
            "withdrawal_events": (
                numbers,
                first + withdrawals.slots,
                withdrawals.validators,
                withdrawals.amounts,
            ),
            "fee_events": (first + np.flatnonzero(blocks), epoch.fees[blocks]),
        }
        if epoch.number > self._finalized:
            return columns
        duties = epoch.attestations
        missed = duties.inclusion_slots < 0
        late = duties.inclusion_slots > duties.slots + 1
        columns["missed_attestation_events"] = (
            np.full(missed.sum(), epoch.number),
            first + duties.slots[missed],
            duties.validators[missed],
        )
        columns["late_attestation_events"] = (
            np.full(late.sum(), epoch.number),
            first + duties.slots[late],
            duties.validators[late],
            first + duties.inclusion_slots[late],
        )
        missed_rewards = epoch.income.missed
        validators = np.flatnonzero(missed_rewards.any(axis=0))
        columns["missed_reward_events"] = (
            np.full(len(validators), epoch.number),
            validators,
            *missed_rewards[:, validators],
        )
        return columns

    def _collect_rows(self, epoch: Epoch) -> dict[str, list[tuple[Any, ...]]]:
        """Return the events of an epoch that are objects, by table: a tuple for each row."""
        first = epoch.number * self._size
        withdrawals = epoch.withdrawals
        return {
            "deposit_events": [
                (first + slot, validator, gwei) for slot, validator, gwei in epoch.deposits
            ],
            "bls_change_events": [
                (first + slot, validator) for slot, validator in epoch.bls_changes
            ],
            "switch_events": [(first + slot, *switch) for slot, *switch in epoch.switches],
            "withdrawal_request_events": [
                (request.slot, request.validator, request.amount)
                for request in epoch.withdrawal_requests
            ],
            "rejected_request_events": [
                (first + slot, *request) for slot, *request in epoch.rejected_requests
            ],
            "manual_withdrawal_events": [
                (first + int(withdrawals.slots[0]), request.validator, request.slot)
                for request in withdrawals.requests
            ],
            "exit_events": [(first + slot, validator) for slot, validator in epoch.exits],
            "slashing_events": [
                (
                    first + offence.slot,
                    offence.validator,
                    offence.kind,
                    first + offence.offence_slot,
                )
                for offence in epoch.slashings
            ],
        }

    def flush(self) -> None:
        """Write the collected events."""
        for table, events in self._rows.items():
            if events:
                self._write(table, list(zip(*events, strict=True)))
        for table, parts in self._columns.items():
            self._write(table, [np.concatenate(columns) for columns in zip(*parts, strict=True)])
        self._rows.clear()
        self._columns.clear()

    def _write(self, table: str, columns: list[Any]) -> None:
        names = tables.EVENTS[table].names()
        rows = tables.build_frame(table, dict(zip(names, columns, strict=True)))
        self._writer.add(table, rows)
