"""Income and balances, one row per validator per epoch: collected by chunks of epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from beaconframes.simulator import tables
from beaconframes.simulator.income import PARTS

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Writer
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Bools, Ints

_ROWS = 131_072  # of a chunk: what numpy and polars hold twice for a moment


class Histories:
    """Collects epochs and hands them on, sorted by epoch and validator."""

    def __init__(self, writer: Writer, chain: Chain, validators: int, finalized: int) -> None:
        """Income is kept up to the *finalized* epoch, balances up to the head."""
        self._writer, self._chain, self._finalized = writer, chain, finalized
        self._size = max(1, _ROWS // validators)
        shape = (self._size, validators)
        self._parts = np.empty((len(PARTS), *shape), np.int64)
        self._fees = np.empty(shape, np.int64)
        self._missed = np.empty(shape, np.int64)
        self._balance = np.empty(shape, np.int64)
        self._effective = np.empty(shape, np.int64)
        self._entitled = np.zeros(shape, np.bool_)
        self._known = np.zeros(shape, np.bool_)
        self._epochs: list[int] = []

    def add(self, epoch: Epoch) -> None:
        """Take an epoch in."""
        row, known = len(self._epochs), len(epoch.balance)
        self._epochs.append(epoch.number)
        self._balance[row, :known] = epoch.balance
        self._effective[row, :known] = epoch.effective
        self._known[row, :known] = True
        if epoch.number <= self._finalized:
            income = epoch.income
            self._parts[:, row, :known] = income.amounts
            self._fees[row, :known] = income.fees
            self._missed[row, :known] = income.missed
            self._entitled[row, :known] = income.entitled
        if len(self._epochs) == self._size:
            self.flush()

    def flush(self) -> None:
        """Hand on what is there."""
        held = self._entitled
        columns = {name: part[held] for name, part in zip(PARTS, self._parts, strict=True)}
        columns |= {"proposals_missed": self._missed[held], "tx_fee_reward_wei": self._fees[held]}
        self._write("income_history", held, columns)
        held = self._known
        columns = {
            "balance_gwei": self._balance[held],
            "effective_balance_gwei": self._effective[held],
        }
        self._write("balance_history", held, columns)
        self._epochs.clear()
        self._entitled[:] = False
        self._known[:] = False

    def _write(self, table: str, held: Bools, columns: dict[str, Ints]) -> None:
        epochs, validators = np.nonzero(held)
        numbers = np.array([*self._epochs, *[0] * (self._size - len(self._epochs))], np.int64)
        keys = {"epoch": numbers[epochs], "validator_index": validators}
        self._writer.add(table, tables.frame(table, keys | columns, chain=self._chain))
