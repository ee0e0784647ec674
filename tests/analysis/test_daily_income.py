"""Income of many validators from daily statistics."""

from decimal import Decimal

import polars as pl

from beaconframes import analysis

ETH = 10**9


def stats(*rows):
    """Daily statistics from (validator, changes)."""
    day = {
        "day": 3,
        "start_effective_balance_gwei": 32 * ETH,
        "start_balance_gwei": 32 * ETH,
        "end_balance_gwei": 32 * ETH,
        "deposits_amount_gwei": 0,
        "withdrawals_amount_gwei": None,
        "missed_attestations": 0,
        "missed_sync": 0,
        "proposed_blocks": 0,
        "participated_sync": 0,
    }
    table = pl.DataFrame(
        [{"validator_index": validator, **day, **changes} for validator, changes in rows],
        schema_overrides={"withdrawals_amount_gwei": pl.Int64},
    )
    start = pl.datetime(2020, 12, 4, 12, 0, 23, time_zone="UTC", time_unit="us")
    return table.with_columns(time=start)


def test_income_by_hand():
    """Income is the change of the balance, less deposits, plus withdrawals, plus blocks."""
    table = stats(
        (1, {"end_balance_gwei": 33 * ETH + 900, "deposits_amount_gwei": ETH}),
        (2, {"end_balance_gwei": 31 * ETH, "withdrawals_amount_gwei": ETH + 50}),
        (3, {"end_balance_gwei": None}),
    )
    blocks = pl.DataFrame(
        {"proposer_index": [1, 1, 2], "epoch": [675, 899, 900], "producer_reward_wei": [5, 6, 7]}
    )

    rows = analysis.daily_income(table, blocks)

    assert [
        (3, 1, 900, Decimal(11), Decimal(900 * 10**9 + 11)),
        (3, 2, 50, Decimal(0), Decimal(50 * 10**9)),
    ] == rows.select(
        *("day", "validator_index", "consensus_income_gwei", "execution_income_wei"),
        "net_income_wei",
    ).rows()
    unknown = analysis.daily_income(table)
    assert [None, None] == unknown["net_income_wei"].to_list()


def test_sums_are_those_of_the_income_history(chain):
    """Of whole days, both sources have the same income, except at the two ends of the range."""
    days = pl.col("validator_index") < 50
    stats_rows = chain.scan("validator_stats").filter(days, pl.col("day") == 1).collect()
    epochs = pl.col("epoch").is_between(225, 449)
    income = chain.scan("income_history").filter(days, epochs).collect()

    daily = analysis.daily_income(stats_rows)["consensus_income_gwei"].sum()

    exact = analysis.income(income, every="all")["consensus_income_gwei"].item()
    # The first block of a day is in the balance of the day before.
    assert abs(daily - exact) < exact / 200


def test_losses_by_hand():
    """A missed vote costs 94/54 of what a vote of the others earned."""
    earned = {"end_balance_gwei": 32 * ETH + 225 * 540}
    table = stats(
        (1, earned),
        (2, earned | {"start_effective_balance_gwei": 64 * ETH, "missed_attestations": 10}),
        (3, earned | {"missed_sync": 4}),
    )

    rows = analysis.daily_losses(table)

    assert [(2, 3, 10, 0, 10 * 2 * 940), (3, 3, 0, 4, 0)] == rows.rows()
    assert [None] == analysis.daily_losses(table[1:2])["attestation_lost_gwei"].to_list()
