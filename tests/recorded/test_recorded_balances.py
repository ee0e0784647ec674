"""Recorded income against the balances that the service reported in the same minute."""

from __future__ import annotations

from itertools import accumulate

import polars as pl
import pytest

import beaconframes as bf

from ..support.recorded_files import RECORDED
from .test_recorded_rows import INDEX, replay

INCOME = "v1-validator-incomedetailhistory--1.json"
FIRST_EPOCH, FIRST_BALANCE = 185_914, 35_605_930_844
# fmt: off
CHANGES = [
    13043, 13021, 13047, 12828, 13047, 12838, 12938, 12983, 13042, 13049, 12863, 13030, 12952,
    12999, 9657, 13008, 12922, 13029, 13003, 12896, 12906, 12985, 13014, 12878, 13006, 13039,
    12928, 9659, 13038, 12743, 13043, 13040, 13030, 13011, 12937, 13036, 13036, 13026, 12936,
    13038, 12979, 12863, 12934, 12861, 12998, 13045, 12921, 12777, 13041, 12912, 12717, 13024,
    13042, 13037, 13040, 12806, 13041, 12911, 12655, 12905, 13008, 13009, 13002, 12876, 13023,
    13015, 12693, 12680, 12993, 12860, 12756, 12865, 12865, 12968, 12832, 12974, 12975, 12964,
    12971, 12843, 12854, 12856, 12977, 12800, 12827, 12715, 12726, 12957, 12837, 12755, 12982,
    12983, 12870, 12989, 12972, 12960, 12858,
]
# fmt: on
"""What the balance of validator 1000 grew by in each epoch, from GET validator/1000/balancehistory.

It was recorded on 8 March 2023, 05:25:25 UTC, two seconds before the income.
"""

pytestmark = pytest.mark.skipif(INCOME not in INDEX, reason=f"no recorded income in {RECORDED}")


def test_attestations_settled_an_epoch_before_their_label():
    """M4: in March 2023 the rewards of a row had reached the balance one epoch earlier."""
    income, _ = replay(INCOME)
    balances = pl.DataFrame(
        {
            "validator_index": 1000,
            "epoch": range(FIRST_EPOCH, FIRST_EPOCH + len(CHANGES) + 1),
            "balance_gwei": [*accumulate(CHANGES, initial=FIRST_BALANCE)],
        }
    )

    rows = bf.analysis.reconcile(balances, income)

    assert (97, [-1]) == (rows.height, rows["attestations_settle"].unique().to_list())
    assert 0 == rows["unexplained_gwei"].abs().sum()
    assert rows.equals(bf.analysis.reconcile(balances, income, attestations_settle=-1))
    for offset in (0, 1, 2):
        others = bf.analysis.reconcile(balances, income, attestations_settle=offset)
        assert 95 <= (others["unexplained_gwei"] != 0).sum()
