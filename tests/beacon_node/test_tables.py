"""Frames with the schemas of tables."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.beacon_node.tables.income import build_fees
from beaconframes.calendar import MAINNET
from beaconframes.errors import IntegrityError
from beaconframes.v1.income_history import IncomeHistory
from beaconframes.v1.slot_withdrawals import SlotWithdrawals
from beaconframes.v1.validators import Validators


def test_columns_of_any_kind_become_rows_sorted_by_key():
    frame = build_frame(
        SlotWithdrawals,
        {
            "amount_gwei": np.array([5, 6], np.int32),
            "address": ["0x" + "AB" * 20, "0x" + "cd" * 20],
            "block_slot": pl.Series([2, 1], dtype=pl.Int32),
            "validator_index": [8, 9],
            "withdrawal_index": [1, 0],
        },
        MAINNET,
    )
    assert SlotWithdrawals.schema() == frame.schema
    time = datetime(2020, 12, 1, 12, 0, 35, tzinfo=UTC)
    assert (1, 0, time, 9, "0x" + "cd" * 20, 6) == frame.row(0)
    assert "0x" + "ab" * 20 == frame["address"][1]


def test_omitted_columns_are_null_and_the_far_future_too():
    frame = build_frame(Validators, {"validator_index": [3], "exit_epoch": [2**64 - 1]}, MAINNET)
    assert dict.fromkeys(Validators.schema()) | {"validator_index": 3} == frame.row(0, named=True)
    income = build_frame(IncomeHistory, {"validator_index": [3], "epoch": [7]}, MAINNET)
    assert MAINNET.time_of("epoch", 7) == income["time"].item()


def test_wrong_columns_and_contradicting_rows_are_errors():
    with pytest.raises(KeyError, match="slot_withdrawals has no column amount"):
        build_frame(SlotWithdrawals, {"amount": [1]}, MAINNET)
    columns = {"block_slot": [1, 1], "withdrawal_index": [0, 0], "validator_index": [3, 4]}
    with pytest.raises(IntegrityError, match="validator_index: 3 and 4"):
        build_frame(SlotWithdrawals, columns, MAINNET)


def test_fees_of_few_proposers_among_many_validators():
    """Fees may exceed 64 bits; one is unknown, and one is of a validator without a row."""
    fees = build_fees({5: 10**19, 9: None, 6: 3}, np.array([3, 5, 7, 9]))

    assert [0, 10**19, 0, None] == [None if fee is None else int(fee) for fee in fees]
    assert pl.Decimal(28, 0) == fees.dtype
