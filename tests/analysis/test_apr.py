"""Yearly rates by three definitions, and compared with the yield index."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.calendar import Chain
from beaconframes.errors import UsageError

from .test_income import EPOCH, GENESIS, history

ETH = 10**9
# A day of three epochs, to compute by hand.
SHORT = Chain("short", genesis=datetime(2026, 1, 1, tzinfo=UTC), seconds_per_slot=900)


def gained(gwei, wei=0):
    return {"attestation_head_reward_gwei": gwei, "tx_fee_reward_wei": Decimal(wei)}


# Validator 1 has both whole days, validator 2 only day 1.
EARNED = history(
    (1, 0, gained(1000)),
    (1, 1, gained(2000, 10**15)),
    (1, 2, {"attestation_target_penalty_gwei": 500}),
    (1, 3, gained(900)),
    (1, 4, gained(900)),
    (1, 5, gained(900)),
    (2, 1, gained(7000)),
    (2, 3, gained(4000, 3 * 10**15)),
    (2, 4, gained(4000)),
    (2, 5, gained(4000)),
    (3, 4, gained(1)),  # whose balance is not known
)
# The same with the times of the chain of short days.
EARNED_SHORT = EARNED.with_columns(time=SHORT.time_expr("epoch", pl.col("epoch")))
HELD = pl.DataFrame(
    [
        *((1, epoch, eth * ETH) for epoch, eth in enumerate([32, 32, 31, 31, 31, 31, 31])),
        *((2, epoch, 64 * ETH) for epoch in range(1, 6)),
    ],
    schema=["validator_index", "epoch", "effective_balance_gwei"],
    orient="row",
)
HELD_AT = HELD.with_columns(
    time=pl.lit(GENESIS) + pl.col("epoch") * pl.lit(EPOCH).cast(pl.Duration("us"))
)
INDEX = pl.DataFrame(
    {"day": [0, 1], "apr": [0.004, 0.016], "cl_apr": [0.003, 0.015], "el_apr": [0.001, 0.001]}
)
YEAR = 365 * 3  # epochs


def compute_expected():
    """The expected columns, as fractions."""
    gwei = Fraction(10**6)  # 10^15 wei
    day_0 = {
        "validator_epochs": 4,
        "whole_days": 1,
        "consensus_income_gwei": 9500,
        "execution_income_wei": 10**15,
        "cl_apr_on_32_eth": Fraction(9500 * YEAR, 4 * 32 * ETH),
        "el_apr_on_32_eth": gwei * YEAR / (4 * 32 * ETH),
        "cl_apr_on_effective": Fraction(9500 * YEAR, (32 + 32 + 31 + 64) * ETH),
        "el_apr_on_effective": gwei * YEAR / ((32 + 32 + 31 + 64) * ETH),
        "cl_apr_as_index": Fraction(2500 * 365, 32 * ETH),
        "el_apr_as_index": gwei * 365 / (32 * ETH),
    }
    day_1 = {
        "validator_epochs": 6,
        "whole_days": 2,
        "consensus_income_gwei": 14700,
        "execution_income_wei": 3 * 10**15,
        "cl_apr_on_32_eth": Fraction(14700 * YEAR, 6 * 32 * ETH),
        "el_apr_on_32_eth": 3 * gwei * YEAR / (6 * 32 * ETH),
        "cl_apr_on_effective": Fraction(14700 * YEAR, 3 * (31 + 64) * ETH),
        "el_apr_on_effective": 3 * gwei * YEAR / (3 * (31 + 64) * ETH),
        "cl_apr_as_index": Fraction(14700 * 365, (31 + 64) * ETH),
        "el_apr_as_index": 3 * gwei * 365 / ((31 + 64) * ETH),
    }
    return [day_0, day_1]


def assert_rates(expected, row):
    for name, value in expected.items():
        if name.endswith(("_gwei", "_wei", "_epochs", "_days")):
            assert value == row[name], name
        else:
            assert math.isclose(value, row[name], rel_tol=1e-12), name
    for way in ("on_32_eth", "on_effective", "as_index"):
        both = expected[f"cl_apr_{way}"] + expected[f"el_apr_{way}"]
        assert math.isclose(both, row[f"apr_{way}"], rel_tol=1e-12)


def test_rates_match_fractions():
    """By hand, with fractions: each definition, each layer, each day."""
    rows = analysis.apr(EARNED_SHORT, HELD, INDEX, chain=SHORT)

    assert [0, 1] == rows["day"].to_list()
    for expected, row, index in zip(
        compute_expected(), rows.iter_rows(named=True), INDEX.iter_rows(named=True), strict=True
    ):
        assert_rates(expected, row)
        for layer in ("cl_", "el_"):
            assert math.isclose(index[f"{layer}apr"], row[f"index_{layer}apr"], rel_tol=1e-12)
            gap = float(expected[f"{layer}apr_as_index"]) - index[f"{layer}apr"]
            assert math.isclose(gap * 10_000, row[f"{layer}difference_bp"], rel_tol=1e-9)


def test_the_index_over_all_days_is_weighted_by_stake():
    """32 ETH on day 0 and 95 on day 1: the same stake would have earned it."""
    (row,) = analysis.apr(EARNED_SHORT, HELD, INDEX, every="all", chain=SHORT).iter_rows(named=True)

    own = Fraction((2500 + 14700) * 365, (32 + 95) * ETH)
    assert math.isclose(own, row["cl_apr_as_index"], rel_tol=1e-12)
    assert math.isclose((32 * 0.003 + 95 * 0.015) / 127, row["index_cl_apr"], rel_tol=1e-12)
    assert (10, 3, 24200) == (
        row["validator_epochs"],
        row["whole_days"],
        row["consensus_income_gwei"],
    )


def test_days_without_an_index_are_not_compared():
    """By day they have no difference; over all days they are left out of the comparison."""
    index = INDEX.filter(pl.col("day") == 1)

    days = analysis.apr(EARNED_SHORT, HELD, index, chain=SHORT)
    (whole,) = analysis.apr(EARNED_SHORT, HELD, index, every="all", chain=SHORT).iter_rows(
        named=True
    )

    assert [True, False] == days["difference_bp"].is_null().to_list()
    assert [False, False] == days["apr_as_index"].is_null().to_list()
    for layer in ("cl_", "el_", ""):
        assert days[f"{layer}apr_as_index"][1] == whole[f"{layer}apr_as_index"]
    assert math.isclose(0.015, whole["index_cl_apr"], rel_tol=1e-12)


@pytest.mark.parametrize(
    ("life", "counts"),
    [((0, None), True), ((0, 6), True), ((0, 5), False), ((3, None), True), ((4, None), False)],
)
def test_whole_days_need_an_active_validator(life, counts):
    """Day 1 is epochs 3 to 5: active at its first epoch, and no exit before epoch 6."""
    lives = pl.DataFrame(
        [(1, *life)],
        schema={"validator_index": pl.Int64, "activation_epoch": pl.Int64, "exit_epoch": pl.Int64},
        orient="row",
    )
    one = EARNED_SHORT.filter(pl.col("validator_index") == 1)

    rows = analysis.apr(one, HELD, validators=lives, chain=SHORT)

    assert counts == bool(rows.filter(pl.col("day") == 1)["whole_days"].item())


def test_the_whole_simulated_chain_is_its_own_index(chain):
    """Over all validators, the rate by the index's definition is the index.

    M3: the first block of a day counts for the index of the day before, and is a 7200th of a day.
    """
    rows = analysis.apr(
        chain.scan("income_history"),
        chain.scan("balance_history"),
        chain.scan("yield_index"),
        validators=chain.scan("validators"),
    ).collect()

    # The last day of the chain is not complete, so the index has no row of it.
    assert [0, 1, 2] == rows["day"].to_list()
    for name in ("difference_bp", "cl_difference_bp"):
        assert [0, 0, None] == pytest.approx(rows[name].to_list(), abs=0.02)
    assert [0, 0, None] == rows["el_difference_bp"].round(9).to_list()


def test_wrong_arguments_are_explained():
    """Unknown options and missing columns are named."""
    with pytest.raises(UsageError, match="every='week'"):
        analysis.apr(EARNED_SHORT, HELD, every="week")
    with pytest.raises(UsageError, match=r"no column effective_balance_gwei.*load_balance_history"):
        analysis.apr(EARNED_SHORT, EARNED)
    with pytest.raises(UsageError, match=r"no column day.*load_yield_index"):
        analysis.apr(EARNED_SHORT, HELD, HELD)
    with pytest.raises(UsageError, match="by='day' is a column"):
        analysis.apr(EARNED.with_columns(day=1), HELD, by="day")
