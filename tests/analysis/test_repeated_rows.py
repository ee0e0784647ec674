"""Rows that occur twice, as in loads that overlap: an error, not a doubled sum."""

from datetime import UTC, datetime

import polars as pl
import pytest

from beaconframes import analysis, interactive, plot
from beaconframes.analysis.engines import check_distinct
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from .test_daily_income import stats
from .test_income import history
from .test_ledger import paid
from .test_problems import stakes

REWARD = {"attestation_head_reward_gwei": 5}
EARLY = history(*((v, e, REWARD) for v in (7, 11) for e in range(10)))
LATE = history(*((v, e, REWARD) for v in (7, 11) for e in range(8, 20)))
KINDS = [lambda frame: frame, to_pandas, pl.DataFrame.to_arrow]
PAID = paid((7, datetime(2020, 12, 2, tzinfo=UTC), 3)).with_columns(withdrawal_index=pl.lit(1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("orders", [["validator_index", "epoch"], ["epoch", "validator_index"], []])
def test_overlapping_loads_are_refused(kind, orders):
    """In any order of the rows; the message has a row and the call that removes them."""
    both = pl.concat([EARLY, LATE])
    both = both.sort(orders) if orders else both.sample(fraction=1, shuffle=True, seed=1)

    with pytest.raises(UsageError, match=r"8 rows .* validator_index (7|11), epoch (8|9) occurs 2"):
        analysis.income(kind(both), coverage=True)


@pytest.mark.parametrize("place", [0, 16_383, 16_384, 16_385, 32_767, 32_768, 39_998])
def test_one_repeated_row_of_many_is_found(place):
    """In sorted rows, at any place: they are compared in parts of 16,384 rows."""
    numbers = pl.int_range(40_000, eager=True)
    rows = pl.DataFrame({"validator_index": numbers // 20_000, "epoch": numbers % 20_000})
    check_distinct(rows, ["validator_index", "epoch"], loader="load_income_history")

    repeated = pl.concat([rows[: place + 1], rows[place:]])

    with pytest.raises(UsageError, match="2 rows"):
        check_distinct(repeated, ["validator_index", "epoch"], loader="load_income_history")


@pytest.mark.parametrize("kind", KINDS)
def test_loads_that_follow_each_other_are_added_up(kind):
    """Rows that are not sorted are not repeated."""
    later = LATE.filter(pl.col("epoch") >= 10)
    for rows in (pl.concat([EARLY, later]), pl.concat([later, EARLY])):
        found = analysis.income(kind(rows), every="all")

        total = found["consensus_income_gwei"]
        assert 2 * 20 * 5 == (total[0].as_py() if kind is KINDS[2] else total[0])


def test_a_validator_may_be_in_several_groups():
    """Each label counts it; twice in one label is an error."""
    labels = pl.DataFrame({"validator_index": [7, 7, 11], "label": ["a", "b", "b"]})

    sums = analysis.income(EARLY.join(labels, "validator_index"), every="all", by="label")

    assert {"a": 50, "b": 100} == dict(sums.select("label", "consensus_income_gwei").iter_rows())
    twice = EARLY.join(pl.concat([labels, labels]), "validator_index")
    with pytest.raises(UsageError, match=r"60 rows .* repeat each other"):
        analysis.income(twice, every="all", by="label")


@pytest.mark.parametrize(
    "use",
    {
        "apr, income": lambda: analysis.apr(pl.concat([EARLY, LATE]), stakes(LATE)),
        "apr, balances": lambda: analysis.apr(LATE, pl.concat([stakes(LATE), stakes(LATE)])),
        "ledger": lambda: analysis.ledger(LATE, pl.concat([PAID, PAID])),
        "daily income": lambda: analysis.daily_income(stats((1, {}), (1, {}))),
        "chart": lambda: plot.income(pl.concat([EARLY, LATE])),
        "interactive chart": lambda: interactive.income(pl.concat([EARLY, LATE])),
        "chart of withdrawals": lambda: plot.withdrawals(pl.concat([PAID, PAID])),
    }.items(),
    ids=lambda item: item[0],
)
def test_other_sums_refuse_repeated_rows(use):
    """Income, balances, withdrawals and daily statistics."""
    with pytest.raises(UsageError, match=r"repeat each other.*frame\.unique\(\["):
        use[1]()
