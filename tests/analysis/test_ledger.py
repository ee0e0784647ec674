"""The ledger: days of any time zone, exact totals, daily prices."""

from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError

from ..support.engines import assert_equal
from .test_income import EPOCH, GENESIS, PENALTIES, REWARDS, history, varied

ETH = 10**9
BERLIN = ZoneInfo("Europe/Berlin")


def paid(*rows):
    """Withdrawals from (validator, time, gwei)."""
    return pl.DataFrame(
        list(rows),
        schema={
            "validator_index": pl.Int64,
            "time": pl.Datetime("us", "UTC"),
            "amount_gwei": pl.Int64,
        },
        orient="row",
    )


def priced(*rows, name="eur"):
    return pl.DataFrame(
        list(rows),
        schema={"time": pl.Datetime("us", "UTC"), name: pl.Float64},
        orient="row",
    )


# Epoch 112 begins at 23:57 UTC of 1 December 2020, which is the 2nd in Berlin already.
EARNED = history(
    (1, 112, {"attestation_head_reward_gwei": 5, "tx_fee_reward_wei": Decimal(10**18)}),
    (1, 113, {"attestation_source_penalty_gwei": 2}),
    (2, 10, {"sync_committee_reward_gwei": 7}),
)
PAID = paid(
    (1, datetime(2020, 12, 1, 23, 30, tzinfo=UTC), 3),
    (2, datetime(2020, 12, 2, 23, 30, tzinfo=UTC), 2 * ETH),
)
PRICES = priced(
    (datetime(2020, 12, 1, 23, 10, tzinfo=UTC), 500.0),  # the 2nd in Berlin, and not its last
    (datetime(2020, 12, 2, 22, 59, tzinfo=UTC), 600.5),
    (datetime(2020, 12, 1, 22, 59, tzinfo=UTC), 400.0),
)
SECOND, FIRST, THIRD = date(2020, 12, 2), date(2020, 12, 1), date(2020, 12, 3)


def test_a_ledger_by_hand():
    """In Berlin: income, fees and withdrawals by day, at the last price of each day."""
    whole = analysis.ledger(EARNED, PAID, PRICES, tz="Europe/Berlin", price="eur")

    names = ["date", "validator_index", "net_income_wei", "withdrawals_gwei", "eur"]
    values = ["income_value", "withdrawals_value"]
    rows = pl.DataFrame(
        [
            (FIRST, 2, Decimal(7 * 10**9), 0, 400.0, 7e-9 * 400, 0.0),
            (SECOND, 1, Decimal(10**18 + 3 * 10**9), 3, 600.5, 1.000000003 * 600.5, 3e-9 * 600.5),
            (THIRD, 2, Decimal(0), 2 * ETH, None, None, None),
        ],
        schema=dict(
            zip(
                [*names, *values],
                [pl.Date, pl.Int64, pl.Decimal(28, 0), pl.Int64] + [pl.Float64] * 3,
                strict=True,
            )
        ),
        orient="row",
    )
    assert_equal(rows, whole.select(*names, *values))


def test_kinds_of_income_have_columns():
    """Each column is the sum of its kind; penalties are positive amounts."""
    rows = analysis.ledger(EARNED)

    columns = [
        "date",
        "attestation_reward_gwei",
        "attestation_penalty_gwei",
        "consensus_income_gwei",
        "execution_income_wei",
    ]
    assert [(FIRST, 5, 0, 5, Decimal(10**18)), (FIRST, 0, 0, 7, 0), (SECOND, 0, 2, -2, 0)] == (
        rows.select(columns).rows()
    )


def test_totals_are_those_of_the_raw_rows(chain):
    """In any zone, every wei of 60 validators is in the ledger once."""
    mine = pl.col("validator_index") < 60
    income = chain.scan("income_history").filter(mine).collect()
    withdrawals = chain.scan("validator_withdrawals").filter(mine).collect()
    gwei = sum(income[name].sum() for name in REWARDS) - sum(
        income[name].sum() for name in PENALTIES
    )

    for tz in ("UTC", "Asia/Kathmandu", "America/New_York"):
        rows = analysis.ledger(income, withdrawals, tz=tz)
        net = sum(map(int, rows["net_income_wei"]))
        assert gwei * 10**9 + sum(map(int, income["tx_fee_reward_wei"])) == net
        assert withdrawals["amount_gwei"].sum() == rows["withdrawals_gwei"].sum()
        assert rows.height == rows.select("date", "validator_index").unique().height


@pytest.mark.parametrize(
    ("first", "day"), [(26_150, date(2021, 3, 28)), (74_950, date(2021, 10, 31))]
)
def test_days_on_which_clocks_change(first, day):
    """The days of 23 and of 25 hours have the epochs that plain Python puts there."""
    frame = varied([1], range(first, first + 700))
    hand = defaultdict(int)
    for epoch, fee in frame.select("epoch", "tx_fee_reward_wei").iter_rows():
        hand[(GENESIS + EPOCH * epoch).astimezone(BERLIN).date()] += int(fee)

    rows = analysis.ledger(frame, tz="Europe/Berlin")

    assert day in hand
    assert dict(hand) == {
        found: int(fee) for found, fee in rows.select("date", "execution_income_wei").iter_rows()
    }


def test_wrong_frames_are_explained():
    """Prices that are missing or not numbers; an unknown time zone."""
    with pytest.raises(UsageError, match="no column price"):
        analysis.ledger(EARNED, prices=PRICES)
    with pytest.raises(UsageError, match="eur of prices is not numeric"):
        analysis.ledger(EARNED, prices=PRICES.cast({"eur": pl.String}), price="eur")
    with pytest.raises(UsageError, match="price='date' is a column of the ledger"):
        analysis.ledger(EARNED, prices=PRICES.rename({"eur": "date"}), price="date")
    with pytest.raises(UsageError, match="not a time zone"):
        analysis.ledger(EARNED, tz="Berlin")
