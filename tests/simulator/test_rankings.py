"""Test simulated performance, ranks, leaderboard and proposal luck."""

import polars as pl
import pytest

from ..support.simulated_chain import KEY, assert_empty


def test_performance_sums_net_income_by_day(simulated):
    """Days, weeks and the rest are sums of net income by day; today is the rest."""
    day = pl.col("epoch") // 225
    gwei, stop = pl.col("gwei"), simulated.days.stop
    sums = simulated.net.group_by(KEY[0]).agg(
        *(
            gwei.filter(day.is_between(stop - days, stop - 1)).sum().alias(f"{days}d")
            for days in (1, 7, 31, 365)
        ),
        today=gwei.filter(day >= stop).sum(),
        total=gwei.sum(),
    )
    rows = simulated.performance.join(sums, KEY[0], how="left")

    assert simulated.validators[KEY[0]].to_list() == simulated.performance[KEY[0]].to_list()
    for name in ("today", "total"):
        assert_empty(rows.filter(pl.col(f"performance_{name}_gwei") != pl.col(name).fill_null(0)))
    fresh = simulated.validators.filter(
        pl.col("activation_epoch").is_null() | (pl.col("activation_epoch") // 225 >= stop)
    )
    assert fresh.height
    for days in (1, 7, 31, 365):
        column = pl.col(f"performance_{days}d_gwei")
        assert_empty(rows.filter(column != pl.col(f"{days}d").fill_null(0)))
        assert fresh[KEY[0]].to_list() == rows.filter(column.is_null())[KEY[0]].to_list()
    balances = simulated.validators["balance_gwei"]
    assert balances.equals(simulated.performance["balance_gwei"])


def test_rank_1_earned_most_and_ranks_have_no_gaps(simulated):
    """Rank 1 earned most in 7 days; ranks have no gaps."""
    rows = simulated.performance.filter(pl.col("rank_7d").is_not_null()).sort("rank_7d")

    assert [*range(1, rows.height + 1)] == rows["rank_7d"].to_list()
    assert rows["performance_7d_gwei"].is_sorted(descending=True)
    assert rows.height == simulated.performance["performance_7d_gwei"].is_not_null().sum()


def test_the_leaderboard_has_the_first_hundred_by_rank(simulated):
    """The first hundred by rank, with the balance at the end of the last day."""
    top = simulated.performance.sort("rank_7d", nulls_last=True).head(100)
    names = [n for n in simulated.leaderboard.columns if n != "balance_gwei"]
    ends = simulated.balance_history.filter(pl.col("epoch") == simulated.days.stop * 225)
    balances = dict(ends.select(KEY[0], "balance_gwei").rows())

    assert top.select(names).equals(simulated.leaderboard.select(names))
    assert [balances[v] for v in simulated.leaderboard[KEY[0]]] == (
        simulated.leaderboard["balance_gwei"].to_list()
    )


def test_luck_is_blocks_over_slots_times_the_share_of_the_stake(simulated):
    """Proposed blocks divided by slots times the share of the stake, in the time frame."""
    frames = {"5 days": 5, "week": 7, "month": 30, "6 weeks": 45, "2 months": 60}
    validators = simulated.validators.with_columns(
        active=(pl.col("activation_epoch") <= simulated.latest)
        & (pl.col("exit_epoch").fill_null(2**62) > simulated.latest)
    )
    everyone = validators.filter("active")["effective_balance_gwei"].sum()
    rows = {row["validators"]: row for row in simulated.proposal_luck.to_dicts()}

    assert {"0", "9", "0,1,2,3,4,5,6,7,8,9"} <= set(rows)
    for lookup, row in rows.items():
        members = [int(index) for index in lookup.split(",")]
        own = validators.filter(pl.col(KEY[0]).is_in(members), "active")
        share = own["effective_balance_gwei"].sum() / everyone
        assert 1 / share == pytest.approx(row["average_proposal_interval"])
        history = simulated.meta["latest_slot"] - simulated.blocks["slot"].min() + 1
        slots = min(frames.get(row["time_frame"], 0) * 7200, history)
        mine = simulated.canonical.filter(
            pl.col("proposer_index").is_in(members),
            pl.col("slot") > simulated.meta["latest_slot"] - slots,
        )
        luck = mine.height / (slots * share) if slots else None
        assert luck == (row["proposal_luck"] and pytest.approx(row["proposal_luck"]))
