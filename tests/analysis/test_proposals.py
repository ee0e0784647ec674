"""Luck of proposals and of seats in sync committees; the cost of missed proposals."""

import math
from datetime import timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.analysis.binomial import compute_interval, compute_p_value, compute_range
from beaconframes.calendar import Chain
from beaconframes.errors import UsageError

from ..support.engines import assert_equal
from .test_income import GENESIS, history

ETH = 10**9
# Validator 1 has a half of the balance, then a quarter; 2 has a quarter; 3 exits in epoch 1.
HELD = pl.DataFrame(
    [
        (1, 0, 64 * ETH),
        (1, 1, 32 * ETH),
        (2, 0, 32 * ETH),
        (2, 1, 32 * ETH),
        (3, 0, 32 * ETH),
        (3, 1, 32 * ETH),
    ],
    schema=["validator_index", "epoch", "effective_balance_gwei"],
    orient="row",
)
EPOCHS = pl.DataFrame({"epoch": [0, 1], "eligible_ether_gwei": [128 * ETH, 128 * ETH]})
LIVES = pl.DataFrame(
    {
        "validator_index": [1, 2, 3],
        "activation_epoch": [0, 0, 0],
        "exit_epoch": pl.Series([None, None, 1], dtype=pl.Int64),
    }
)


def blocks(*rows):
    """Blocks from (slot, status, proposer)."""
    return pl.DataFrame(
        [
            (slot, slot // 32, GENESIS + timedelta(seconds=12 * slot), status, proposer)
            for slot, status, proposer in rows
        ],
        schema={
            "slot": pl.Int64,
            "epoch": pl.Int64,
            "time": pl.Datetime("us", "UTC"),
            "status": pl.String,
            "proposer_index": pl.Int64,
        },
        orient="row",
    )


SMALL = Chain("small", GENESIS, epochs_per_sync_period=1, sync_committee_size=8)
MEMBERS = {
    0: [1, 1, 1, 1, 2, 2, 3, 9],
    1: [1] * 8,
    2: [2, 2, 2, 9, 9, 9, 9, 9],
    3: [1] * 8,  # drawn in epoch 2, whose balances are unknown
}
COMMITTEES = pl.DataFrame(
    [
        (period, seat, validator, period, period)
        for period, members in MEMBERS.items()
        for seat, validator in enumerate(members)
    ],
    schema=["period", "seat", "validator_index", "start_epoch", "end_epoch"],
    orient="row",
)


BLOCKS = blocks(
    *((slot, "proposed", 1) for slot in range(1, 20)),
    (20, "missed", 1),
    (21, "orphaned", 2),
    (22, "orphaned", 2),
    (22, "proposed", 2),  # the duplicate counts once
    (40, "proposed", 9),  # of another validator
    (63, "scheduled", 2),
)


def test_luck_by_hand():
    """Shares of 64 slots; all outcomes count; intervals and p-values are binomial."""
    rows = analysis.proposal_luck(BLOCKS, HELD, EPOCHS, validators=LIVES)

    counts = ["validator_index", "slots", "expected", "drawn", "proposed", "missed", "orphaned"]
    assert [(1, 64, 24.0, 20, 19, 1, 0), (2, 64, 16.0, 2, 1, 0, 1), (3, 32, 8.0, 0, 0, 0, 0)] == (
        rows.select(counts).rows()
    )
    for row in rows.iter_rows(named=True):
        k, n, mean = row["drawn"], row["slots"], row["expected"]
        assert k / mean == row["luck"]
        low, high = compute_interval(k, n, 0.95)
        assert (low * n / mean, high * n / mean) == (row["luck_low"], row["luck_high"])
        assert compute_p_value(k, n, mean / n) == row["p_value"]
        assert compute_range(n, mean / n, 0.95) == (row["drawn_low"], row["drawn_high"])
    # A quarter of one slot each: a proposal every four slots of 12 seconds. The third has exited.
    assert [4 * 12 / 86_400, 4 * 12 / 86_400, None] == rows["days_to_next"].to_list()


def test_luck_by_label():
    """Groups are columns of the balances."""
    held = HELD.with_columns(pool=pl.col("validator_index").replace_strict({1: "a"}, default="b"))

    rows = analysis.proposal_luck(BLOCKS, held, EPOCHS, by="pool")

    assert [("a", 64, 24.0), ("b", 64, 32.0)] == rows.select("pool", "slots", "expected").rows()


def test_a_set_is_not_the_sum_of_its_parts():
    """A group has one binomial of the common share."""
    (row,) = analysis.proposal_luck(BLOCKS, HELD, EPOCHS, by=()).iter_rows(named=True)

    assert (64, 56.0, 22) == (row["slots"], row["expected"], row["drawn"])
    assert compute_p_value(22, 64, 56 / 64) == row["p_value"]


def test_without_a_share_there_is_no_luck():
    """Without an expected proposal, luck is null."""
    rows = analysis.proposal_luck(BLOCKS, HELD.with_columns(effective_balance_gwei=0), EPOCHS)

    assert [0.0] * 3 == rows["expected"].to_list()
    for name in ("drawn_low", "luck", "luck_low", "luck_high", "p_value", "days_to_next"):
        assert [None] * 3 == rows[name].to_list()


@pytest.mark.parametrize(("percent", "is_known"), [(90, True), (91, False)])
def test_nearly_all_validators_have_no_luck(percent, is_known):
    """More than 90 % of the balances: the expected number stands, and no probability does."""
    held = HELD.filter(pl.col("validator_index") == 1)
    held = held.with_columns(effective_balance_gwei=percent * 10**9)
    epochs = EPOCHS.with_columns(eligible_ether_gwei=100 * 10**9)

    (row,) = analysis.proposal_luck(BLOCKS, held, epochs).iter_rows(named=True)

    assert row["expected"] > 0
    known = [row[name] is not None for name in ("drawn_low", "luck_low", "luck_high", "p_value")]
    assert [is_known] * 4 == known


def test_luck_of_seats_by_hand():
    """Committees of 8 seats: those of periods 0 and 1 are drawn in epoch 0, that of 2 in epoch 1.

    Validator 1 has half of the balance, then a quarter; 3 has exited when the last is drawn.
    """
    rows = analysis.sync_luck(COMMITTEES, HELD, EPOCHS, validators=LIVES, chain=SMALL)
    # A committee that was loaded twice has no more seats.
    twice = pl.concat([COMMITTEES, COMMITTEES])
    repeated = analysis.sync_luck(twice, HELD, EPOCHS, validators=LIVES, chain=SMALL)
    assert_equal(rows, repeated)

    counts = ["validator_index", "periods", "seats", "expected", "drawn"]
    assert [(1, 3, 24, 10.0, 12), (2, 3, 24, 6.0, 5), (3, 2, 16, 4.0, 1)] == (
        rows.select(counts).rows()
    )
    for row in rows.iter_rows(named=True):
        k, n, mean = row["drawn"], row["seats"], row["expected"]
        assert k / mean == row["luck"]
        low, high = compute_interval(k, n, 0.95)
        assert (low * n / mean, high * n / mean) == (row["luck_low"], row["luck_high"])
        assert compute_p_value(k, n, mean / n) == row["p_value"]
        assert compute_range(n, mean / n, 0.95) == (row["drawn_low"], row["drawn_high"])


def test_luck_of_seats_of_a_group():
    """All validators together, and by a column of the balances."""
    held = HELD.with_columns(pool=pl.col("validator_index").replace_strict({1: "a"}, default="b"))
    options = {"validators": LIVES, "chain": SMALL}
    counts = ["periods", "seats", "expected", "drawn"]

    total = analysis.sync_luck(COMMITTEES, HELD, EPOCHS, by=(), **options)
    pools = analysis.sync_luck(COMMITTEES, held, EPOCHS, by="pool", **options)
    nothing = analysis.sync_luck(COMMITTEES.head(0), HELD, EPOCHS, **options)

    assert [(3, 24, 20.0, 18)] == total.select(counts).rows()
    assert [("a", 3, 24, 10.0, 12), ("b", 3, 24, 10.0, 6)] == pools.select("pool", *counts).rows()
    assert nothing.columns == ["validator_index", *total.columns]
    assert nothing.is_empty()
    with pytest.raises(UsageError, match="level=1"):
        analysis.sync_luck(COMMITTEES, HELD, EPOCHS, level=1)


def test_all_seats_are_expected_of_all_validators(chain):
    """The shares of all validators add up to every seat of the three known committees.

    The simulator draws a committee when it begins, so few members are activated meanwhile.
    """
    epochs = chain.scan("epochs").filter(pl.col("epoch") <= 256)
    frames = chain.scan("sync_committees"), chain.scan("balance_history"), epochs

    total = analysis.sync_luck(*frames, validators=chain.scan("validators"), by=()).collect()

    assert [(3, 3 * 512)] == total.select("periods", "seats").rows()
    assert pytest.approx(3 * 512) == total["expected"].item()
    assert 0.98 * 3 * 512 < total["drawn"].item() <= 3 * 512


@pytest.mark.parametrize(
    ("balances", "own", "cap", "least"),
    [
        pytest.param([32] * 2000, 500, 2048, 0.98, marks=pytest.mark.more),
        pytest.param([32] * 2000, 2000, 2048, None, marks=pytest.mark.more),
        ([32] * 3000 + [2048] * 1600, 300, 2048, 0.95),
        ([32] * 1000, 300, 32, 0.5),
    ],
    ids=["since Electra", "all validators", "some large ones", "a small chain before Electra"],
)
def test_committees_of_the_specification_vary_less_than_independent_draws(
    balances, own, cap, least
):
    """`get_next_sync_committee_indices`: a shuffled pass over all validators, then another one.

    Each candidate is accepted in the ratio of its balance to the largest possible one. The variance
    is at most that of independent draws, so no number is stated to be rarer than it is.
    """
    rng = np.random.default_rng(33)
    balances = np.array(balances)

    def draw():
        seats = []
        while len(seats) < 512:
            order = rng.permutation(len(balances))
            bytes_ = rng.integers(0, 2**16, len(balances))
            seats += [*order[balances[order] * (2**16 - 1) >= cap * bytes_]]
        return sum(seat < own for seat in seats[:512])

    seats = np.array([draw() for _ in range(1500)])

    share = balances[:own].sum() / balances.sum()
    assert seats.mean() == pytest.approx(512 * share, rel=0.03)
    if least is None:
        assert {512} == {*seats.tolist()}
        return
    ratio = seats.var() / (512 * share * (1 - share))
    # Three standard errors of a variance of 1,500 draws.
    assert least * (1 - 3 * math.sqrt(2 / 1500)) < ratio < 1 + 3 * math.sqrt(2 / 1500)


@pytest.mark.more
def test_luck_intervals_cover_at_the_level(chain):
    """Of 500 simulated validators, 95 % of the intervals contain 1, and so on."""
    finalized = chain.meta["finalized_epoch"]
    some = (pl.col("validator_index") < 500) & (pl.col("epoch") <= finalized)
    frames = (
        chain.scan("blocks").filter(pl.col("epoch") <= finalized, pl.col("slot") > 0),
        chain.scan("balance_history").filter(some),
        chain.scan("epochs"),
    )

    for level in (0.5, 0.8, 0.95):
        rows = analysis.proposal_luck(
            *frames, validators=chain.scan("validators"), level=level
        ).collect()
        covered = rows.filter(pl.col("luck_low") <= 1, pl.col("luck_high") >= 1).height
        far_off = rows.filter(pl.col("p_value") < 1 - level).height
        # Three standard deviations of 500 draws; the interval may only be too wide.
        slack = 3 * math.sqrt(level * (1 - level) / 500)
        assert 500 == rows.height
        assert covered / 500 >= level - slack
        assert far_off / 500 <= 1 - level + slack
        assert covered + far_off == 500
    assert math.isclose(1, rows["drawn"].sum() / rows["expected"].sum(), abs_tol=0.05)


EARNED = history(
    *(
        (
            validator,
            epoch,
            {
                "proposer_attestation_inclusion_reward_gwei": gwei,
                "proposer_sync_inclusion_reward_gwei": 1,
                "tx_fee_reward_wei": Decimal(wei),
            },
        )
        for validator, epoch, gwei, wei in [
            (5, 0, 100, 7 * 10**20),
            (6, 1, 300, 10**20),
            (7, 1, 200, 10**18),
            (8, 2, 400, 3),
            (9, 500, 9000, 9),
        ]
    ),
    (1, 0, {"attestation_head_reward_gwei": 10**6}),  # no block
)


def test_cost_by_hand():
    """The lower median of the four blocks nearby: 200 + 1 gwei, and 1 ETH of fees."""
    result = analysis.missed_proposals(BLOCKS, EARNED)

    when = [GENESIS + timedelta(seconds=12 * slot) for slot in (20, 21)]
    expected = pl.DataFrame(
        [
            (20, 0, when[0], "missed", 1, 4, 201, Decimal(10**18), "median of 4 blocks"),
            (21, 0, when[1], "orphaned", 2, 4, 201, Decimal(10**18), "median of 4 blocks"),
        ],
        schema=BLOCKS.schema
        | {
            "blocks_compared": pl.Int64,
            "cost_consensus_gwei": pl.Int64,
            "cost_execution_wei": pl.Decimal(28, 0),
            "cost_basis": pl.String,
        },
        orient="row",
    )
    assert_equal(expected, result)


@pytest.mark.parametrize("shown_by", ["proposals", "blocks"])
def test_two_blocks_of_a_validator_in_an_epoch_are_not_one_block(shown_by):
    """The row of validator 1 is the sum of two blocks; those of 2 and 3 earned 30 and 50."""
    earned = history(
        *(
            (v, 1, {"proposer_attestation_inclusion_reward_gwei": gwei, "tx_fee_reward_wei": gwei})
            for v, gwei in ((1, 80), (2, 30), (3, 50))
        )
    )
    slots = blocks(
        *((33, "missed", 2), (34, "proposed", 1), (35, "proposed", 1), (36, "proposed", 2)),
        (37, "proposed", 3),
    )
    given = {"proposals": slots}
    if shown_by == "blocks":
        made = slots.filter(pl.col("status") == "proposed")
        paid = pl.Series([40, 40, 30, 50], dtype=pl.Decimal(28, 0))
        given = {
            "proposals": slots.filter(pl.col("status") == "missed"),
            "blocks": made.with_columns(producer_reward_wei=paid),
        }

    rows = analysis.missed_proposals(income=earned, **given)

    assert [(2, 30, Decimal(30))] == rows.select(
        "blocks_compared", "cost_consensus_gwei", "cost_execution_wei"
    ).rows()


def test_cost_needs_blocks_to_compare():
    """Without blocks nearby, the cost is null."""
    rows = analysis.missed_proposals(BLOCKS, EARNED.filter(pl.col("epoch") > 400))

    assert [(0, None, None)] * 2 == rows.select(
        "blocks_compared", "cost_consensus_gwei", "cost_execution_wei"
    ).rows()


def test_unknown_rewards_are_not_compared():
    """As 0 wei, the fees of this block would have lowered the median."""
    unknown = EARNED.with_columns(
        pl.when(pl.col("validator_index") != 5).then(pl.col("tx_fee_reward_wei"))
    )
    rows = analysis.missed_proposals(BLOCKS, unknown)

    assert [(3, 301, Decimal(10**18))] * 2 == rows.select(
        "blocks_compared", "cost_consensus_gwei", "cost_execution_wei"
    ).rows()


def test_wrong_arguments_are_explained():
    """Levels, windows and frames."""
    with pytest.raises(UsageError, match="level=95 is not between 0 and 1"):
        analysis.proposal_luck(BLOCKS, HELD, EPOCHS, level=95)
    with pytest.raises(UsageError, match="window=-1"):
        analysis.missed_proposals(BLOCKS, EARNED, window=-1)
    with pytest.raises(UsageError, match=r"no column eligible_ether_gwei.*load_epochs"):
        analysis.proposal_luck(BLOCKS, HELD, HELD)
