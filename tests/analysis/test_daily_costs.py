"""Costs of missed duties, estimated from daily statistics and from the yield index."""

from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.calendar import MAINNET, Chain
from beaconframes.errors import UsageError

from .test_daily_income import ETH, stats
from .test_problems import validators


def days_of_the_network(day=3):
    """A yield index: 1 gwei of consensus rewards for 10,000 of stake, 2 gwei of fees per slot."""
    return pl.DataFrame(
        {
            "day": [day],
            "time": [MAINNET.time_of("day", day)],
            "consensus_rewards_sum_wei": [64 * 7200 * 512 * 10**9],
            "effective_balances_sum_wei": [64 * 7200 * 512 * 10**13],
            "tx_fees_sum_wei": [7200 * 2 * 10**9],
        }
    ).cast({"^.*_wei$": pl.Decimal(38, 0)}, strict=True)


def test_losses_of_a_day_without_a_validator_to_compare():
    """Votes have 54 of 64 parts of the rewards of the network, sync duties of 512 seats 2."""
    table = stats(
        (1, {"missed_attestations": 10}), (2, {"missed_attestations": 1, "missed_sync": 3})
    )

    rows = analysis.daily_losses(table, days_of_the_network())

    # 32 ETH earn 54/64 of 3.2 million gwei in 225 votes; a missed one costs 94/54 of it.
    vote = 3_200_000 * 94 / 64 / 225
    sync = 2 * 3 * 2
    assert [(1, round(10 * vote), 0), (2, round(vote), sync)] == rows.select(
        "validator_index", "attestation_lost_gwei", "sync_lost_gwei"
    ).rows()
    assert {"mean of the network"} == set(rows["attestation_cost_basis"])
    unknown = analysis.daily_losses(table, days_of_the_network(day=4))
    assert 2 == unknown["attestation_lost_gwei"].null_count()


@pytest.mark.parametrize(("seats", "lost"), [(512, 9), (64, 72)])
def test_missed_sync_duties_are_rounded_once_and_by_the_seats_of_the_chain(seats, lost):
    """A committee earns 1152 gwei in a slot: a seat of 512 earns 2.25, one of 64 earns 18.

    Two missed rewards and penalties of 512 seats are 9 gwei, not twice 2.
    """
    index = days_of_the_network().with_columns(
        consensus_rewards_sum_wei=pl.lit(32 * 7200 * 1152 * 10**9).cast(pl.Decimal(38, 0))
    )
    chain = Chain("small", MAINNET.genesis, sync_committee_size=seats)

    rows = analysis.daily_losses(stats((1, {"missed_sync": 2})), index, chain=chain)

    assert [lost] == rows["sync_lost_gwei"].to_list()


def test_a_validator_activated_during_the_day_is_no_comparison():
    """Its income is that of a few votes, and it missed none of them."""
    table = stats(
        (1, {"end_balance_gwei": 32 * ETH + 20 * 10_800}),
        (2, {"end_balance_gwei": 32 * ETH + 215 * 10_800 - 10 * 8_000, "missed_attestations": 10}),
    )

    rows = analysis.daily_losses(table, days_of_the_network())

    assert [(2, 10 * 18_800)] == rows.select("validator_index", "attestation_lost_gwei").rows()


LOST = pl.DataFrame(
    {
        "slot": [3 * 7200 + 40, 9 * 7200],
        "epoch": [3 * 225 + 1, 9 * 225],
        "time": [MAINNET.time_of("slot", slot) for slot in (3 * 7200 + 40, 9 * 7200)],
        "status": ["missed", "orphaned"],
        "proposer_index": [1, 2],
    },
    schema_overrides={"time": pl.Datetime("us", "UTC")},
)
VOTED = {"end_balance_gwei": 32 * ETH + 225 * 10_800}
MADE = stats(
    (1, VOTED | {"missed_attestations": 45, "end_balance_gwei": 32 * ETH}),
    (2, VOTED),
    (3, {"proposed_blocks": 2, "end_balance_gwei": 32 * ETH + 225 * 10_800 + 2 * 4000}),
    (4, {"proposed_blocks": 1, "end_balance_gwei": 32 * ETH + 225 * 10_800 + 9000}),
    (5, {"proposed_blocks": 1, "end_balance_gwei": 32 * ETH + 180 * 10_800 - 45 * 8_000 + 7000,
         "missed_attestations": 45}),
    # What a duty in a sync committee earned is unknown, and a deposit is no reward of a block.
    (6, {"proposed_blocks": 1, "participated_sync": 9, "end_balance_gwei": 32 * ETH + 10**7}),
    (7, {"proposed_blocks": 1, "end_balance_gwei": 64 * ETH}),
)  # fmt: skip
RECEIVED = pl.DataFrame(
    {"epoch": [675, 676, 899, 2000], "producer_reward_wei": [9 * 10**12, 5 * 10**12, 10**12, 7]},
    schema_overrides={"producer_reward_wei": pl.Decimal(28, 0)},
)


def test_missed_proposals_from_daily_statistics():
    """A block earned what its proposer earned beyond its votes; execution is what was received."""
    rows = analysis.missed_proposals(LOST, stats=MADE, blocks=RECEIVED)

    columns = "slot", "blocks_compared", "cost_consensus_gwei", "cost_execution_wei", "cost_basis"
    basis = "median of 4 blocks, execution layer: median of 3 blocks"
    expected = [
        (3 * 7200 + 40, 4, 7000, Decimal(5 * 10**12), basis),
        (9 * 7200, 0, None, Decimal(7), "execution layer: median of 1 block"),
    ]
    assert expected == rows.select(columns).rows()


@pytest.mark.parametrize("with_stats", [True, False])
def test_missed_proposals_without_a_block_to_compare(with_stats):
    """8 of 64 parts of the rewards of the network on the day are those of blocks."""
    given = MADE.filter(pl.col("proposed_blocks") == 0) if with_stats else None
    rows = analysis.missed_proposals(LOST, stats=given, index=days_of_the_network())

    basis = "mean of the network, execution layer: priority fees of the network"
    expected = [(0, 8 * 512, Decimal(2 * 10**9), basis), (0, None, None, None)]
    columns = "blocks_compared", "cost_consensus_gwei", "cost_execution_wei", "cost_basis"
    assert expected == rows.select(columns).rows()


@pytest.mark.parametrize("index", [None, days_of_the_network()])
def test_a_validator_that_exits_during_the_day_is_no_comparison_of_blocks(index):
    """Beyond its 8 votes, 217 votes of the proposers would count as rewards of their blocks."""
    exits = (1, {"end_balance_gwei": 32 * ETH + 8 * 10_800})
    made = {"proposed_blocks": 1, "end_balance_gwei": 32 * ETH + 225 * 10_800 + 4000}

    alone = analysis.missed_proposals(LOST, stats=stats(exits, (2, made), (3, made)), index=index)
    table = stats(exits, (2, made), (3, made), (4, VOTED))
    compared = analysis.missed_proposals(LOST, stats=table, index=index)

    columns = "blocks_compared", "cost_consensus_gwei"
    assert (0, None if index is None else 8 * 512) == alone.select(columns).row(0)
    assert (2, 4000) == compared.select(columns).row(0)


def test_missed_proposals_need_something_to_compare():
    with pytest.raises(UsageError, match="income, stats and index are missing"):
        analysis.missed_proposals(LOST)


def test_problems_from_daily_statistics_have_a_cost():
    """Missed votes and proposals; the basis states what each cost is estimated from."""
    rows = analysis.problems(
        validators({}, {}), stats=MADE, proposals=LOST, blocks=RECEIVED, index=days_of_the_network()
    )

    rows = rows.filter(pl.col("table") != "validators")
    basis = "median of 4 blocks, execution layer: median of 3 blocks"
    votes = "median of the validators"
    assert [
        ("missed votes", 1, 45 * 18_800, votes),
        ("missed votes", 5, 45 * 18_800, votes),
        ("missed proposal", 1, 7000 + 5000, basis),
        ("orphaned proposal", 2, None, None),
    ] == rows.select("kind", "validator_index", "cost_gwei", "cost_basis").rows()


def test_unknown_counts_are_not_zero():
    """A day whose missed votes are unknown has no cost of them, and is no comparison."""
    table = stats(
        (1, VOTED | {"missed_attestations": None, "missed_sync": 2}),
        (2, {"missed_attestations": 45}),
        (3, VOTED | {"participated_sync": None}),
    )

    rows = analysis.daily_losses(table)
    known = analysis.daily_losses(table, days_of_the_network())

    assert [(1, None, 2, None), (2, 45, 0, None)] == rows.select(
        "validator_index", "missed_attestations", "missed_sync", "attestation_lost_gwei"
    ).rows()
    assert [None, "mean of the network"] == known["attestation_cost_basis"].to_list()


def test_blocks_of_days_with_unknown_sync_duties_are_not_compared():
    """What a duty in a sync committee earned would count as the reward of a block."""
    made = {"proposed_blocks": 1, "end_balance_gwei": 32 * ETH + 225 * 540 + 10**7}
    table = stats((1, VOTED), (2, made | {"participated_sync": None}))

    rows = analysis.missed_proposals(LOST, stats=table)

    assert [None, None] == rows["cost_consensus_gwei"].to_list()
