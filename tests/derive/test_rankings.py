"""Income over the last days, ranks and the rewards of proposers, worked out by hand."""

from __future__ import annotations

import polars as pl
import pytest

from beaconframes.derive import derive_tables, find_obstacles
from beaconframes.v1.execution_performance import ExecutionPerformance
from beaconframes.v1.leaderboard import Leaderboard
from beaconframes.v1.performance import Performance

from ..support.chain_tables import (
    ETH,
    assert_served,
    build_balances,
    build_income,
    build_tables,
    build_validators,
)

LAST = 41
"""The latest epoch: ten days of four epochs are over, and day 10 has epochs 40 and 41."""
OLD, YOUNG, FRESH, PENDING = range(4)
WINDOWS = [f"performance_{name}_gwei" for name in ("1d", "7d", "31d", "365d", "today", "total")]


@pytest.fixture
def frames():
    """OLD earns the number of the day, YOUNG 100 from its activation in epoch 28 (day 7) on."""
    return {
        "validators": build_validators(
            {}, {"activation_epoch": 28}, {"activation_epoch": 40}, {"activation_epoch": None}
        ),
        "balance_history": build_balances({epoch: [32 * ETH + epoch] * 4 for epoch in range(42)}),
        "income_history": build_income(
            *((OLD, 4 * day, day, 0) for day in range(11)),
            *((YOUNG, 4 * day, 100, 0) for day in range(7, 11)),
            (FRESH, 40, 5, 0),
        ),
    }


def derive_all(tables, *names):
    """Return the frames of some tables."""
    return dict(derive_tables(tables, names=names))


def find_income(tables):
    """Return the windows of each validator."""
    rows = derive_all(tables, "performance")[Performance]
    return dict(zip(rows["validator_index"], rows.select(WINDOWS).rows(), strict=True))


def test_windows_and_ranks(frames):
    """Step 11: windows end with day 9; a validator without a complete day has none."""
    found = derive_all(build_tables(frames, last=LAST), "performance", "leaderboard")
    rows = found[Performance]

    assert Performance.schema() == rows.schema
    assert {
        OLD: (9, sum(range(3, 10)), sum(range(10)), sum(range(10)), 10, sum(range(11))),
        YOUNG: (100, 300, 300, 300, 100, 400),
        FRESH: (None, None, None, None, 5, 5),
        PENDING: (None, None, None, None, 0, 0),
    } == find_income(build_tables(frames, last=LAST))
    assert [2, 1, None, None] == rows["rank_7d"].to_list()
    top = found[Leaderboard]
    assert Leaderboard.schema() == top.schema
    assert [(1, YOUNG, 32 * ETH + 40), (2, OLD, 32 * ETH + 40)] == top.select(
        "rank_7d", "validator_index", "balance_gwei"
    ).rows()


def test_the_leaderboard_has_a_hundred_validators(frames):
    """The one with the least income of 101 is left out."""
    frames["validators"] = build_validators(*[{}] * 101)
    frames["income_history"] = build_income(*((index, 39, 1000 - index, 0) for index in range(101)))

    top = derive_all(build_tables(frames, last=LAST), "performance", "leaderboard")[Leaderboard]

    assert [*range(100)] == top["validator_index"].to_list()
    assert [*range(1, 101)] == top["rank_7d"].to_list()


def test_penalties_are_subtracted(frames):
    """Step 11: income is rewards less penalties."""
    frames["income_history"] = build_income(
        (OLD, 36, 50, 0), slashing_penalty_gwei=20, sync_committee_reward_gwei=3
    )

    assert 33 == find_income(build_tables(frames, last=LAST))[OLD][0]


def test_windows_that_are_not_covered_are_null(frames):
    """Step 11: income from day 7 on is all income of YOUNG, and 7 days of OLD are unknown."""
    tables = build_tables(frames, last=LAST, income_history=((28, LAST),))
    found = derive_all(tables, "performance", "leaderboard")

    income = find_income(tables)
    assert (9, None, None, None, 10, None) == income[OLD]
    assert (100, 300, 300, 300, 100, 400) == income[YOUNG]
    assert [None] * 4 == found[Performance]["rank_7d"].to_list()
    assert 0 == found[Leaderboard].height


def test_ranks_need_seven_days(frames):
    """Step 11: with the income of the last 7 days the ranks are known; longer sums are null."""
    tables = build_tables(frames, last=LAST, income_history=((12, LAST),))
    found = derive_all(tables, "performance", "leaderboard")

    assert (9, 42, None, None, 10, None) == find_income(tables)[OLD]
    assert [2, 1, None, None] == found[Performance]["rank_7d"].to_list()
    top = found[Leaderboard]
    sums = top.select("performance_7d_gwei", "performance_31d_gwei", "performance_total_gwei")
    assert [(300, 300, 400), (42, None, None)] == sums.rows()
    for table, rows in found.items():
        assert_served(table, rows)


@pytest.mark.parametrize(
    ("coverage", "expected"),
    [
        ({"income_history": ((0, 40),)}, (9, 42, 45, 45, None, None)),
        ({"income_history": ((0, 35), (37, LAST))}, (None,) * 4 + (10, None)),
        ({"balance_history": ((0, 39),)}, (None,) * 4 + (10, 55)),
    ],
)
def test_a_gap_makes_the_sums_over_it_null(frames, coverage, expected):
    """Step 11: no sum leaves out an epoch silently; without a day's end there is no last day."""
    assert expected == find_income(build_tables(frames, last=LAST, **coverage))[OLD]


def test_some_validators_have_no_ranks(frames):
    """Step 11: a rank is a place among all validators."""
    tables = build_tables(frames, last=LAST, validators=frozenset({OLD, YOUNG}))

    rows = derive_all(tables, "performance", "leaderboard")

    assert {Performance} == set(rows)
    assert [OLD, YOUNG] == rows[Performance]["validator_index"].to_list()
    assert 2 == rows[Performance]["rank_7d"].null_count()
    assert 0 == rows[Performance]["performance_7d_gwei"].null_count()
    assert "needs all validators" in find_obstacles(tables)["leaderboard"]


WEI_WINDOWS = [f"performance_{name}_wei" for name in ("1d", "7d", "31d", "total")]


@pytest.fixture
def produced():
    """The head is slot 335; the last day starts with slot 304."""
    return pl.DataFrame(
        {
            "slot": [303, 304, 335, 20, 320],
            "proposer_index": [OLD, OLD, OLD, OLD, YOUNG],
            "producer_reward_wei": [10, 200, 3000, 40_000, 7],
        },
        schema_overrides={"producer_reward_wei": pl.Decimal(28, 0)},
    )


def find_rewards(frames, produced, **coverage):
    """Return the rewards of OLD and YOUNG, and how many blocks of the others."""
    tables = build_tables(frames | {"execution_blocks": produced}, last=LAST, **coverage)
    rows = derive_all(tables, "execution_performance")[ExecutionPerformance]
    assert_served(ExecutionPerformance, rows)
    assert ExecutionPerformance.schema() == rows.schema
    return rows.select(WEI_WINDOWS).rows()


def test_rewards_of_proposers(frames, produced):
    """Step 11: days are the last 32 slots each, up to the head."""
    assert [
        (3200, 3210, 43_210, 43_210),
        (7, 7, 7, 7),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
    ] == find_rewards(frames, produced)


def test_rewards_that_are_not_covered_are_null(frames, produced):
    """Step 11: blocks from epoch 28 on are all blocks of YOUNG; an unknown reward is no zero."""
    assert [
        (3200, None, None, None),
        (7, 7, 7, 7),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
    ] == find_rewards(frames, produced, execution_blocks=((28, LAST),))
    reward = pl.col("producer_reward_wei")
    unknown = produced.with_columns(pl.when(pl.col("slot") != 303).then(reward))
    assert [(3200, None, None, None), (7, 7, 7, 7)] == find_rewards(frames, unknown)[:2]


def test_without_the_latest_epoch_only_pending_validators_have_rewards(frames, produced):
    """Step 11: a validator that is active since the latest epoch may have a block in it."""
    latest = build_validators(
        {}, {"activation_epoch": 28}, {"activation_epoch": LAST}, {"activation_epoch": None}
    )

    unknown = (None, None, None, None)
    assert [unknown, unknown, unknown, (0, 0, 0, 0)] == find_rewards(
        frames | {"validators": latest}, produced, execution_blocks=((0, LAST - 1),)
    )
