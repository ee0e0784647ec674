"""The tables of income and balances, one row per validator per epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from beaconframes.simulator import tables
from beaconframes.simulator.income import PARTS

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.dataset import Writer
    from beaconframes.simulator.epoch import Epoch

_CHUNK_ROWS = 131_072  # numpy and polars each have a copy of a chunk


class HistoryWriter:
    """Collects epochs and writes them in chunks, sorted by epoch and validator."""

    def __init__(self, writer: Writer, chain: Chain, validators: int, finalized: int) -> None:
        """Write income up to the *finalized* epoch, and balances up to the head."""
        self._writer, self._chain, self._finalized = writer, chain, finalized
        self._size = max(1, _CHUNK_ROWS // validators)
        shape = (self._size, validators)
        self._parts = np.empty((len(PARTS), *shape), np.int64)
        self._fees = np.empty(shape, np.int64)
        self._missed = np.empty(shape, np.int64)
        self._balance = np.empty(shape, np.int64)
        self._effective = np.empty(shape, np.int64)
        self._has_income = np.zeros(shape, np.bool_)
        self._has_balance = np.zeros(shape, np.bool_)
        self._epochs: list[int] = []

    def add(self, epoch: Epoch) -> None:
        """Add income and balances of an epoch."""
        row, validator_count = len(self._epochs), len(epoch.balance)
        self._epochs.append(epoch.number)
        self._balance[row, :validator_count] = epoch.balance
        self._effective[row, :validator_count] = epoch.effective
        self._has_balance[row, :validator_count] = True
        if epoch.number <= self._finalized:
            income = epoch.income
            self._parts[:, row, :validator_count] = income.amounts
            self._fees[row, :validator_count] = income.fees
            self._missed[row, :validator_count] = income.missed_proposals
            self._has_income[row, :validator_count] = income.is_eligible
        if len(self._epochs) == self._size:
            self.flush()

    def flush(self) -> None:
        """Write the collected epochs."""
        mask = self._has_income
        columns = {name: part[mask] for name, part in zip(PARTS, self._parts, strict=True)}
        columns |= {"proposals_missed": self._missed[mask], "tx_fee_reward_wei": self._fees[mask]}
        self._write("income_history", mask, columns)
        mask = self._has_balance
        columns = {
            "balance_gwei": self._balance[mask],
            "effective_balance_gwei": self._effective[mask],
        }
        self._write("balance_history", mask, columns)
        self._epochs.clear()
        self._has_income[:] = False
        self._has_balance[:] = False

    def _write(self, table: str, mask: Bools, columns: dict[str, Ints]) -> None:
        epochs, validators = np.nonzero(mask)
        numbers = np.array([*self._epochs, *[0] * (self._size - len(self._epochs))], np.int64)
        keys = {"epoch": numbers[epochs], "validator_index": validators}
        self._writer.add(table, tables.build_frame(table, keys | columns, chain=self._chain))
