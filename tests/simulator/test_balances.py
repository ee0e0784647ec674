"""Test simulated balances, and for which epochs validators have income."""

import polars as pl

from ..support.first_blocks import compute_first_blocks, sum_first_withdrawals
from ..support.simulated_chain import ETH, KEY, assert_empty, select_income_keys


def test_balances_move_by_income_deposits_and_withdrawals(simulated):
    """M3: a balance has all that was paid before, and the block of the epoch's first slot."""
    balances = simulated.balance_history.filter(
        pl.col("epoch").is_between(simulated.first, simulated.finalized)
    )
    rows = (
        balances.join(simulated.before, KEY, how="left")
        .join(compute_first_blocks(simulated), KEY, how="left")
        .join(sum_first_withdrawals(simulated), KEY, how="left")
        .with_columns(pl.col("low", "high", "paid").fill_null(0))
    )
    in_block = pl.col("balance_gwei") - pl.col("before") + pl.col("paid")

    assert rows.height > 80_000
    assert 0 == rows["before"].null_count()
    assert_empty(rows.filter(~in_block.is_between("low", "high")))
    assert rows.filter(pl.col("low") != pl.col("high")).height < len(simulated.epochs)
    assert rows.filter(in_block != 0).height > 1000
    assert rows.filter(pl.col("paid") > 0).height > 1000


def test_a_validator_has_balances_from_its_deposit_on(simulated):
    """A validator has a balance in every epoch from its deposit to the latest epoch."""
    seen = simulated.balance_history.group_by("validator_index").agg(
        first=pl.col("epoch").min(), last=pl.col("epoch").max(), count=pl.len()
    )
    assert_empty(
        seen.filter(
            (pl.col("last") != simulated.latest)
            | (pl.col("count") != pl.col("last") - pl.col("first") + 1)
        )
    )
    assert simulated.meta["validators"] == seen.height
    new_validators = seen.filter(pl.col("first") > simulated.first)
    deposited = simulated.deposit_events.group_by("validator_index").agg(pl.col("slot").min() // 32)
    expected = new_validators.select("validator_index", slot=pl.col("first") - 1)
    assert 0 == expected.join(deposited, ["validator_index", "slot"], how="anti").height


def test_effective_balances_have_hysteresis(simulated):
    """It changes only if the balance is a quarter below or 1.25 above it.

    It is updated before the block of the epoch's first slot, whose withdrawals come later.
    """
    before = simulated.states.select(KEY[0], pl.col("epoch") + 1, e="effective_balance_gwei")
    rows = simulated.states.join(before, KEY).join(simulated.before, KEY, how="left")
    rows = rows.with_columns(balance_gwei=pl.coalesce("before", "balance_gwei"))
    balance, effective = pl.col("balance_gwei"), pl.col("e")
    moves = (balance + ETH // 4 < effective) | (effective + 5 * ETH // 4 < balance)
    floor = pl.min_horizontal(balance - balance % ETH, "max_effective")
    rule = pl.when(moves).then(floor).otherwise(effective)

    assert_empty(rows.filter(pl.col("effective_balance_gwei") != rule))
    assert rows.filter(moves).height > 3
    assert rows.filter(
        ~moves & (balance - effective > ETH) & (balance < pl.col("max_effective"))
    ).height


def test_active_and_slashed_validators_have_income(simulated):
    """Income exists for active validators, and for slashed ones until they are withdrawable."""
    keys = simulated.income_history.select(KEY)

    assert keys.equals(select_income_keys(simulated))
