"""Income of many validators from daily statistics."""

from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis

ETH = 10**9


def stats(*rows):
    """Daily statistics from (validator, changes)."""
    day = {
        "day": 3,
        "start_effective_balance_gwei": 32 * ETH,
        "end_effective_balance_gwei": 32 * ETH,
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
        {
            "proposer_index": [1, 1, 2],
            "epoch": [675, 899, 900],
            "producer_reward_wei": [5, 6, 7],
            "block_reward_wei": [5, 4, 7],
        }
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


def test_the_day_of_the_deposit_of_a_new_validator_counts():
    """Its balance begins with 0: its income counts, and the effective balance of the end."""
    new = {"start_balance_gwei": 0, "start_effective_balance_gwei": 0}
    end = {"end_balance_gwei": 32 * ETH + 700}
    table = stats(
        (1, new | end | {"deposits_amount_gwei": 32 * ETH}),
        (2, new | end),
        (3, {"end_balance_gwei": 32 * ETH + 1000}),
    )

    rows = analysis.daily_income(table)
    rates = analysis.daily_rates(rows.with_columns(execution_income_wei=pl.lit(Decimal(0))))

    expected = [(1, 700), (3, 1000)]
    assert expected == rows.select("validator_index", "consensus_income_gwei").rows()
    assert 365 * 1700 / (64 * ETH) == pytest.approx(rates["apr_on_effective"][0])


def test_the_day_of_the_deposit_of_a_new_validator_shows_no_rate_of_votes():
    """A missed vote costs what those of the others earn, in the ratio of effective balances."""
    new = {"start_balance_gwei": 0, "start_effective_balance_gwei": 0, "missed_attestations": 1}
    deposit = {"deposits_amount_gwei": 64 * ETH, "end_effective_balance_gwei": 64 * ETH}
    new |= deposit | {"end_balance_gwei": 64 * ETH + 700}
    table = stats((1, new), (2, {"end_balance_gwei": 32 * ETH + 225 * 54}))

    rows = analysis.daily_losses(table)

    assert [(1, 2 * 94)] == rows.select("validator_index", "attestation_lost_gwei").rows()


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


def test_deposits_count_when_they_reach_the_balance():
    """A deposit of day 3 that is credited on day 5; a consolidation has no deposit at all."""
    start = 32 * ETH
    table = stats(
        (1, {"day": 3, "deposits_amount_gwei": ETH, "end_balance_gwei": start + 10}),
        (1, {"day": 4, "start_balance_gwei": start + 10, "end_balance_gwei": start + 30}),
        (1, {"day": 5, "start_balance_gwei": start + 30, "end_balance_gwei": start + ETH + 70}),
        (2, {"day": 3, "end_balance_gwei": 64 * ETH}),
        (3, {"day": 3, "end_balance_gwei": 0}),
        (4, {"day": 3, "deposits_amount_gwei": ETH, "end_balance_gwei": start + 5}),
    )

    rows = analysis.daily_income(table)

    columns = "validator_index", "day", "consensus_income_gwei", "deposits_gwei"
    assert [(1, 3, 10, 0), (4, 3, 5, 0), (1, 4, 20, 0), (1, 5, 40, ETH)] == (
        rows.select(columns).rows()
    )


def test_deposits_that_wait_reach_the_balance_together():
    """Two deposits, of days 3 and 4, are credited on day 5: one rise of the balance has both."""
    start = 32 * ETH
    table = stats(
        (1, {"day": 3, "deposits_amount_gwei": ETH, "end_balance_gwei": start + 10}),
        (1, {"day": 4, "deposits_amount_gwei": 3 * ETH, "start_balance_gwei": start + 10,
             "end_balance_gwei": start + 30}),
        (1, {"day": 5, "start_balance_gwei": start + 30, "end_balance_gwei": start + 4 * ETH + 70}),
    )  # fmt: skip

    rows = analysis.daily_income(table)

    columns = "day", "consensus_income_gwei", "deposits_gwei"
    assert [(3, 10, 0), (4, 20, 0), (5, 40, 4 * ETH)] == rows.select(columns).rows()


def test_days_without_income_keep_what_was_received():
    """A consolidation, a day without balances and a day without statistics have blocks too."""
    table = stats(
        (1, {"end_balance_gwei": 64 * ETH}),
        (2, {"end_balance_gwei": None}),
        (3, {"end_balance_gwei": None}),
        (4, {}),
        (5, {"end_balance_gwei": 64 * ETH}),
    )
    blocks = pl.DataFrame(
        {
            "proposer_index": [1, 2, 4, 4, 4],
            "epoch": [675, 800, 700, 900, 901],
            "producer_reward_wei": [5, 6, 7, 8, 9],
            "block_reward_wei": [5, 6, 7, 8, 9],
        }
    )

    rows = analysis.daily_income_gaps(table, blocks)

    moved = "consolidation, or deposit of an earlier day"
    assert [
        (1, 3, Decimal(5), moved),
        (2, 3, Decimal(6), "no balances"),
        (4, 4, Decimal(17), "no statistics"),
        (5, 3, Decimal(0), moved),
    ] == rows.rows()
    counted = analysis.daily_income(table, blocks)["execution_income_wei"].sum()
    assert counted + rows["execution_income_wei"].sum() == 35
    unknown = analysis.daily_income_gaps(table)
    assert [(1, 3, None, moved), (5, 3, None, moved)] == unknown.rows()


def test_rates_and_votes_by_hand():
    """365 times the income of a day over the stake; the index counts priority fees."""
    table = stats(
        (1, {"end_balance_gwei": 32 * ETH + 2_000_000, "missed_attestations": 9}),
        (2, {"end_balance_gwei": 32 * ETH + 1_000_000, "missed_attestations": 0}),
    )
    blocks = pl.DataFrame(
        {
            "proposer_index": [1],
            "epoch": [700],
            "producer_reward_wei": [10**15],
            "block_reward_wei": [4 * 10**14],
        }
    )
    index = pl.DataFrame({"day": [3, 4], "apr": [0.02, 0.9]})
    validators = pl.DataFrame(
        {"validator_index": [1, 2], "activation_epoch": [0, 800], "exit_epoch": [None, 860]}
    )

    daily = analysis.daily_income(table, blocks)
    for every in ("day", "all"):
        row = analysis.daily_rates(daily, index, every=every).row(0, named=True)
        assert 365 * 4_000_000 / (64 * ETH) == pytest.approx(row["apr_on_effective"])
        assert row["apr_on_effective"] == pytest.approx(row["apr_on_32_eth"])
        assert 365 * 3_400_000 / (64 * ETH) == pytest.approx(row["apr_as_index"])
        assert 0.02 == pytest.approx(row["index_apr"])
        assert (row["apr_as_index"] - 0.02) * 1e4 == pytest.approx(row["difference_bp"])
    assert "index_apr" not in analysis.daily_rates(daily).columns
    for every in ("day", "all"):
        unknown = analysis.daily_rates(analysis.daily_income(table), index, every=every)
        assert [(None, None)] == unknown.select("apr_as_index", "difference_bp").rows()

    votes = analysis.daily_votes(table, validators).row(0, named=True)
    assert (3, 225 + 60, 9) == (votes["day"], votes["votes"], votes["missed"])
    assert 1 - 9 / 285 == pytest.approx(votes["included_rate"])


def test_fees_of_days_without_an_index_are_not_compared():
    """Day 4 has no index: neither its income nor its fees are in the rate beside the index."""
    grown = {"end_balance_gwei": 32 * ETH + 1_000_000}
    blocks = pl.DataFrame(
        {
            "proposer_index": [1, 1],
            "epoch": [700, 1000],
            "producer_reward_wei": [10**15, 10**16],
            "block_reward_wei": [10**15, 10**16],
        }
    )
    daily = analysis.daily_income(stats((1, grown), (1, grown | {"day": 4})), blocks)
    index = pl.DataFrame({"day": [3], "apr": [0.02]})

    row = analysis.daily_rates(daily, index, every="all").row(0, named=True)

    assert 365 * 2_000_000 / (32 * ETH) == pytest.approx(row["apr_as_index"])
    assert 365 * 13_000_000 / (64 * ETH) == pytest.approx(row["apr_on_effective"])
    # A group may be named like the rate of the index.
    grouped = analysis.daily_rates(daily.with_columns(apr=pl.lit(1)), index, by="apr")
    assert [0.02, None] == grouped["index_apr"].to_list()


def test_losses_by_hand():
    """A missed vote costs 94/54 of what a vote of the others earned."""
    earned = {"end_balance_gwei": 32 * ETH + 225 * 540}
    table = stats(
        (1, earned),
        (2, earned | {"start_effective_balance_gwei": 64 * ETH, "missed_attestations": 10}),
        (3, earned | {"missed_sync": 4}),
    )

    rows = analysis.daily_losses(table)

    basis = "median of the validators"
    expected = [(2, 3, 10, 0, 10 * 2 * 940, basis, None), (3, 3, 0, 4, 0, basis, None)]
    assert expected == rows.rows()
    # Alone, its income is that of 225 votes, less 94/54 of each missed one.
    alone = analysis.daily_losses(table[1:2])["attestation_lost_gwei"].to_list()
    assert [round(10 * 225 * 540 / (225 - 10 * 94 / 54) * 94 / 54)] == alone
