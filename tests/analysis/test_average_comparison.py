"""Income beside that of average validators: the parts of the difference, by hand."""

from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.analysis.average_comparison import PARTS
from beaconframes.calendar import MAINNET
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from .test_attestation_losses import HEAD, NO_SOURCE, NO_TARGET, SOURCE, TARGET
from .test_daily_costs import days_of_the_network
from .test_daily_income import stats
from .test_income import history
from .test_problems import validators

ETH = 10**9
GWEI = 10**9
DAY = 3
FIRST = 225 * DAY
# 32 ETH earn 3.2 million gwei a day in this index, of which votes are 54 of 64 parts: 12,000 gwei
# each. A vote of these validators is worth more, because average validators miss some.
VOTE, NO_VOTE = 12_420, 9_200
FULL = Decimal("1.035")
VOTED = {HEAD: 3_220, SOURCE: 3_220, TARGET: 5_980}
MISSED = {NO_SOURCE: 3_220, NO_TARGET: 5_980}
LOST = 10 * (VOTE + NO_VOTE)
BLOCK = 5_000
PROPOSALS = pl.DataFrame(
    {
        "slot": [FIRST * 32 + 7],
        "epoch": [FIRST],
        "time": [MAINNET.time_of("slot", FIRST * 32 + 7)],
        "status": ["proposed"],
        "proposer_index": [1],
    },
    schema_overrides={"time": pl.Datetime("us", "UTC")},
)
BLOCKS = pl.DataFrame(
    {
        "slot": [FIRST * 32 + 7],
        "epoch": [FIRST],
        "proposer_index": [1],
        "status": ["proposed"],
        "producer_reward_wei": [Decimal(3_000 * GWEI)],
        "block_reward_wei": [Decimal(1_000 * GWEI)],
    },
    schema_overrides=dict.fromkeys(["producer_reward_wei", "block_reward_wei"], pl.Decimal(28, 0)),
)
ACTIVE = validators({}, {})
INDEX = days_of_the_network(DAY)
STATS = stats(
    (0, {"end_balance_gwei": 32 * ETH + 225 * VOTE}),
    (
        1,
        {
            "end_balance_gwei": 32 * ETH + 215 * VOTE - 10 * NO_VOTE + BLOCK,
            "missed_attestations": 10,
            "proposed_blocks": 1,
        },
    ),
)
INCOME = history(
    *((0, FIRST + n, VOTED) for n in range(225)),
    (
        1,
        FIRST,
        VOTED
        | {
            "proposer_attestation_inclusion_reward_gwei": BLOCK,
            "tx_fee_reward_wei": Decimal(1_000 * GWEI),
        },
    ),
    *((1, FIRST + n, MISSED if n % 20 == 10 and n < 200 else VOTED) for n in range(1, 225)),
)
BALANCES = INCOME.select("validator_index", "epoch", effective_balance_gwei=pl.lit(32 * ETH))
BY_DAY = {"stats": STATS}
BY_EPOCH = {"income": INCOME, "balances": BALANCES}


def compare(source, index=INDEX, proposals=PROPOSALS, blocks=BLOCKS, active=ACTIVE):
    options = {**source, "blocks": blocks}
    problems = analysis.problems(active, index=index, proposals=proposals, **options)
    options["chain"] = "mainnet"
    return analysis.compare_with_average(active, index, problems, proposals, **options)


def in_wei(gwei):
    return (Decimal(gwei) * GWEI).to_integral_value()


@pytest.mark.parametrize("source", [BY_DAY, BY_EPOCH], ids=["by day", "by epoch"])
def test_parts_by_hand(source):
    """Two validators with 64 of 2.36 million ETH: one missed ten votes and proposed a block."""
    (row,) = compare(source).rows(named=True)

    fees = Decimal(14_400 * 64 * ETH) / (64 * 7200 * 512 * 10**4)
    earned = 225 * VOTE + 215 * VOTE - 10 * NO_VOTE + BLOCK + 1_000
    expected = {
        "earned_wei": earned,
        "average_wei": 6_400_000 + fees,
        "difference_wei": earned - 6_400_000 - fees,
        "missed_avoidable_wei": -LOST,
        "missed_unavoidable_wei": 0,
        "missed_unknown_wei": 0,
        "average_missed_wei": 6_400_000 * (FULL - 1),
        # One block of 7,200, which pays 8 of 64 parts of the rewards of a slot and 2 gwei of fees.
        "proposal_luck_wei": FULL * (4096 - 800_000) + 2 - fees,
        "sync_luck_wei": -FULL * 200_000,
        "execution_wei": 1_000 - 2,
        "unexplained_wei": BLOCK - FULL * 4096,
        "builder_payments_wei": 2_000,
    }
    amounts = {name: row[name] for name in expected}
    assert {name: pytest.approx(in_wei(gwei), abs=5) for name, gwei in expected.items()} == amounts
    assert row["difference_wei"] == sum(row[part] for part in PARTS)
    assert (1, 0, False) == (row["days"], row["days_estimated"], row["consensus_only"])


@pytest.mark.parametrize("outcome", ["missed", "orphaned"])
def test_a_missed_proposal_has_no_fees_to_compare(outcome):
    """Its fees are in its cost: below the average, they would count twice. A later one is open."""
    more = [
        PROPOSALS.with_columns(slot=pl.lit(slot, pl.Int64), status=pl.lit(status))
        for slot, status in [(FIRST * 32 + 8, outcome), (FIRST * 32 + 9, "scheduled")]
    ]

    (row,) = compare(BY_EPOCH).rows(named=True)
    (missed,) = compare(BY_EPOCH, proposals=pl.concat([PROPOSALS, *more])).rows(named=True)

    assert in_wei(1_000 - 2) == pytest.approx(missed["execution_wei"], abs=5)
    drawn = missed["proposal_luck_wei"] - row["proposal_luck_wei"]
    assert in_wei(FULL * 4096 + 2) == pytest.approx(drawn, abs=5)
    assert missed["difference_wei"] == sum(missed[part] for part in PARTS)


@pytest.mark.parametrize("other", [DAY - 1, DAY + 1])
def test_a_day_without_an_index_counts_as_the_nearest(other):
    """The nearest day is before or after it; the row states how many days are estimated."""
    (row,) = compare(BY_EPOCH, index=days_of_the_network(other)).rows(named=True)

    assert (1, 1) == (row["days"], row["days_estimated"])
    assert in_wei(6_400_000) == row["average_wei"] // GWEI * GWEI - 390 * GWEI


def test_balances_count_while_their_validator_is_active():
    """Before its activation and after its exit, a validator is no average one."""
    half = validators({}, {"activation_epoch": FIRST + 100, "exit_epoch": FIRST + 145})

    (row,) = compare(BY_EPOCH, active=half).rows(named=True)

    whole = Decimal(6_400_000 + 14_400 * 64 * ETH / (64 * 7200 * 512 * 10**4)) * GWEI
    assert pytest.approx(float(whole) * (225 + 45) / 450, rel=1e-12) == float(row["average_wei"])


def test_penalties_after_the_exit_are_no_votes():
    """A slashed validator has penalties until it can withdraw: average ones miss no less for it."""
    has_exited = (pl.col("validator_index") == 1) & (pl.col("epoch") >= FIRST + 145)
    slashed = INCOME.with_columns(
        pl.when(has_exited).then(MISSED.get(name, 0)).otherwise(name).alias(name)
        for name in VOTED | MISSED
    )
    exits = validators({}, {"exit_epoch": FIRST + 145})

    (row,) = compare(BY_EPOCH | {"income": slashed}, active=exits).rows(named=True)

    rewards = 6_400_000 * Decimal(225 + 145) / 450
    assert in_wei(rewards * (FULL - 1)) == pytest.approx(row["average_missed_wei"], abs=10**9)


def test_the_unknown_cost_of_a_slashing_leaves_its_part_unknown():
    """Daily statistics do not have the penalty: what is known of the sum would be too low."""
    ends = {"slashed": True, "exit_epoch": FIRST + 500, "withdrawable_epoch": FIRST + 9000}

    (row,) = compare(BY_DAY, active=validators({}, ends)).rows(named=True)

    assert (None, 0) == (row["missed_avoidable_wei"], row["missed_unavoidable_wei"])
    assert row["difference_wei"] == sum(row[part] for part in PARTS if row[part] is not None)


def test_balances_without_an_income_are_not_compared():
    """Average validators would earn for the epochs in which the income is unknown."""
    is_known = pl.col("validator_index") == 1
    unknown = INCOME.with_columns(pl.when(is_known).then(SOURCE).alias(SOURCE))
    whole = compare(BY_EPOCH)["average_wei"][0]

    for income in (INCOME.filter(is_known), unknown):
        (row,) = compare(BY_EPOCH | {"income": income}).rows(named=True)
        assert pytest.approx(float(whole) / 2, rel=1e-12) == float(row["average_wei"])


def test_income_without_a_balance_is_not_compared():
    """Average validators would earn nothing for it."""
    one = {name: rows.filter(pl.col("validator_index") == 1) for name, rows in BY_EPOCH.items()}

    for kind in (lambda rows: rows, to_pandas):
        known = BY_EPOCH | {"income": kind(INCOME), "balances": one["balances"]}
        assert compare(one).rows() == compare(known).rows()


def test_days_without_a_rate_of_votes_have_that_of_the_others():
    """On day 4, both validators sign for a sync committee: its votes alone are unknown.

    What average validators missed is then in the ratio of day 3.
    """
    time = MAINNET.time_of("day", DAY + 1)
    signing = {
        "day": DAY + 1,
        "time": time,
        "participated_sync": 9,
        "end_balance_gwei": 32 * ETH + 225 * VOTE,
    }
    later = pl.col("time") + pl.duration(days=1)
    stats_ = pl.concat([STATS, stats((0, signing), (1, signing)).with_columns(time=later)])
    index = pl.concat([INDEX, days_of_the_network(DAY + 1)])

    (row,) = compare({"stats": stats_}, index=index).rows(named=True)
    (alone,) = compare({"stats": stats_.filter(pl.col("day") > DAY)}, index=index).rows(named=True)

    assert 2 == row["days"]
    assert in_wei(2 * 6_400_000 * (FULL - 1)) == pytest.approx(row["average_missed_wei"], abs=5)
    assert alone["average_missed_wei"] is None
    for found in (row, alone):
        assert found["difference_wei"] == sum(found[part] or 0 for part in PARTS)


def test_seats_that_are_unknown_on_a_day_leave_their_luck_unknown():
    """The statistics of day 4 do not state how often the second validator has signed."""
    later = stats((0, {"day": DAY + 1}), (1, {"day": DAY + 1, "participated_sync": None}))
    later = later.with_columns(pl.col("time") + pl.duration(days=1))
    index = pl.concat([INDEX, days_of_the_network(DAY + 1)])

    (row,) = compare({"stats": pl.concat([STATS, later])}, index=index).rows(named=True)

    assert 2 == row["days"]
    assert row["sync_luck_wei"] is None
    assert row["difference_wei"] == sum(row[part] or 0 for part in PARTS)


def test_daily_balances_count_while_their_validator_is_active():
    """The second validator has 65 of 225 epochs.

    It has none after its exit, or if its activation is unknown.
    """
    half = validators({}, {"activation_epoch": FIRST + 100, "exit_epoch": FIRST + 165})

    (whole,) = compare(BY_DAY).rows(named=True)
    (row,) = compare(BY_DAY, active=half).rows(named=True)
    (none,) = compare(BY_DAY, active=validators({}, {"activation_epoch": None})).rows(named=True)
    (left,) = compare(BY_DAY, active=validators({}, {"exit_epoch": FIRST - 9})).rows(named=True)

    share = (225 + 65) / 450
    assert float(whole["average_wei"]) * share == pytest.approx(float(row["average_wei"]), rel=1e-9)
    assert float(whole["average_wei"]) / 2 == pytest.approx(float(none["average_wei"]), rel=1e-9)
    assert none["average_wei"] == left["average_wei"]
    assert whole["earned_wei"] == row["earned_wei"] == none["earned_wei"]


def test_the_day_of_the_deposit_of_a_new_validator_is_compared():
    """A balance that reaches the chain on the day counts as one that waits for its activation."""
    active = validators({}, {"activation_epoch": FIRST + 160})
    old = {"end_balance_gwei": 32 * ETH + 65 * VOTE}
    start = {"start_balance_gwei": 0, "start_effective_balance_gwei": 0}
    new = old | start | {"deposits_amount_gwei": 32 * ETH}

    rows = [
        compare({"stats": pl.concat([STATS.head(1), stats((1, day))])}, active=active).row(0)
        for day in (old, new)
    ]

    assert rows[0] == rows[1]


def test_validators_of_unknown_income_are_not_compared():
    """A consolidation raises a balance: neither its income nor what its votes are worth counts."""
    moved = stats((2, {"start_balance_gwei": 32 * ETH, "end_balance_gwei": 64 * ETH}))

    (row,) = compare(BY_DAY).rows(named=True)
    three = {"stats": pl.concat([STATS, moved])}
    (more,) = compare(three, active=validators({}, {}, {})).rows(named=True)

    names = ["earned_wei", "average_wei", "average_missed_wei", "sync_luck_wei"]
    assert [row[name] for name in names] == [more[name] for name in names]


def test_unknown_execution_income_is_not_compared():
    """Daily statistics without blocks: consensus income alone, and no fees in any part."""
    (row,) = compare(BY_DAY, blocks=None).rows(named=True)

    assert row["consensus_only"]
    assert (None, None) == (row["execution_wei"], row["builder_payments_wei"])
    assert in_wei(6_400_000) == row["average_wei"]
    assert in_wei(FULL * (4096 - 800_000)) == row["proposal_luck_wei"]
    known = [row[part] for part in PARTS if row[part] is not None]
    assert row["difference_wei"] == sum(known)


def test_nothing_to_compare_has_no_row():
    """Without a day of the index, and without a day of income."""
    assert 0 == compare(BY_EPOCH, index=INDEX.clear()).height
    assert 0 == compare({"stats": STATS.clear()}).height
    with pytest.raises(UsageError, match="income and stats are missing"):
        analysis.compare_with_average(ACTIVE, INDEX, pl.DataFrame(), PROPOSALS)
