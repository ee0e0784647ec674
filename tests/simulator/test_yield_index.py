"""Test the simulated yield index by its definition."""

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import polars as pl
import pytest

from ..support.first_blocks import compute_first_blocks
from ..support.income_columns import PENALTIES, REWARDS
from ..support.simulated_chain import ETH, assert_empty


def test_a_day_is_the_sum_over_validators_active_throughout(simulated):
    """A detailed day is the sum over the validators that were active throughout."""
    rows = simulated.yield_index.to_dicts()
    days = range(simulated.first // 225, (simulated.finalized) // 225)

    assert [*range(len(rows))] == [row["day"] for row in rows]
    assert len(rows) == days.stop
    for day in days:
        begin, end = 225 * day, 225 * (day + 1)
        whole = simulated.validator_epochs.filter(
            (pl.col("activation") <= begin) & (pl.col("exit") >= end)
        ).select("validator_index")

        def total(table, column, whole=whole, begin=begin, end=end):
            rows = getattr(simulated, table)
            # The first block of a day is in its start balance: it counts for the day before.
            epoch = pl.col("epoch") if "epoch" in rows.columns else (pl.col("slot") - 1) // 32
            rows = rows.filter(epoch.is_between(begin, end, closed="left"))
            return int(rows.join(whole, "validator_index")[column].sum())

        def state(epoch, column, whole=whole):
            rows = simulated.balance_history.filter(pl.col("epoch") == epoch)
            return int(rows.join(whole, "validator_index")[column].sum())

        start, finish = (state(epoch, "balance_gwei") for epoch in (begin, end))
        deposits = total("deposit_events", "amount_gwei")
        consensus = finish - start - deposits + total("withdrawal_events", "amount_gwei")
        fees = total("income_history", "tx_fee_reward_wei")
        row = rows[day]
        assert consensus * ETH == row["consensus_rewards_sum_wei"]
        assert fees == row["tx_fees_sum_wei"]
        assert deposits * ETH == row["deposits_sum_wei"]
        assert start * ETH == row["start_balances_sum_wei"]
        assert finish * ETH == row["end_balances_sum_wei"]
        effective = state(begin, "effective_balance_gwei")
        assert effective * ETH == row["effective_balances_sum_wei"]
        income = sum(total("income_history", name) for name in REWARDS)
        income -= sum(total("income_history", name) for name in PENALTIES)
        first = compute_first_blocks(simulated).join(whole, "validator_index")
        before, after = (
            first.filter(pl.col("epoch") == epoch).select("low", "high").sum().row(0)
            for epoch in (begin, end)
        )
        assert after[0] - before[1] <= consensus - income <= after[1] - before[0]


def test_rates_are_365_times_rewards_over_stake(simulated):
    """Rates are 365 times a day's rewards divided by the effective balances."""
    for row in simulated.yield_index.to_dicts():
        cl, el, stake = (
            int(row[f"{name}_sum_wei"])
            for name in ("consensus_rewards", "tx_fees", "effective_balances")
        )
        assert cl + el == row["total_rewards_wei"]
        assert float(Fraction(365 * (cl + el), stake)) == row["apr"]
        digits = Decimal("1e-16")
        assert float((365 * Decimal(cl) / Decimal(stake)).quantize(digits)) == row["cl_apr"]
        assert float((365 * Decimal(el) / Decimal(stake)).quantize(digits)) == row["el_apr"]
        assert 0.02 < row["cl_apr"] < 0.045
        assert 0.002 < row["el_apr"] < 0.02


@pytest.mark.parametrize("window", [7, 31])
def test_trailing_means_cover_the_last_days(simulated, window):
    """Means cover the last days, the current one included, and fewer near genesis."""
    rows = simulated.yield_index.to_dicts()
    for day, row in enumerate(rows):
        part = rows[max(0, day - window + 1) : day + 1]
        for name in ("apr", "cl_apr", "el_apr"):
            mean = math.fsum(r[name] for r in part) / len(part)
            assert mean == row[f"{name}_avg_{window}d"]
        for name in ("consensus_rewards", "tx_fees"):
            mean = Fraction(sum(int(r[f"{name}_sum_wei"]) for r in part), len(part))
            assert abs(mean - int(row[f"{name}_avg_{window}d_wei"])) <= Fraction(1, 2)


def test_a_day_starts_with_the_end_of_the_day_before(simulated):
    """A day starts with the end of the previous day, plus whole validators that joined."""
    rows = simulated.yield_index.to_dicts()
    days = list(pairwise(rows[: simulated.first // 225 + 1]))
    assert days
    for before, after in days:
        joined = after["start_balances_sum_wei"] - before["end_balances_sum_wei"]
        assert 0 <= joined
        assert 0 == joined % (32 * ETH * ETH)
        grown = after["effective_balances_sum_wei"] - before["effective_balances_sum_wei"]
        assert joined + before["deposits_sum_wei"] == grown
    assert_empty(
        simulated.yield_index.filter(pl.col("day_end") != pl.col("time") + timedelta(days=1))
    )
