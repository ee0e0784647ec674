"""Votes that were not fully rewarded, and their cost, from an income history."""

from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError
from beaconframes.frames import to_polars

from ..support.engines import assert_equal, each_engine, make
from .test_income import history

ETH = 10**9
HEAD, SOURCE, TARGET = (f"attestation_{vote}_reward_gwei" for vote in ("head", "source", "target"))
NO_SOURCE, NO_TARGET = (f"attestation_{vote}_penalty_gwei" for vote in ("source", "target"))

INCOME = history(
    (1, 9, {HEAD: 140, SOURCE: 150, TARGET: 280}),
    (2, 9, {SOURCE: 150, TARGET: 280}),  # late: only the head is missing
    (3, 9, {HEAD: 280, SOURCE: 300, NO_TARGET: 520}),  # twice the balance, wrong target
    (1, 10, {NO_SOURCE: 160, NO_TARGET: 300}),  # no validator voted: the rewards of epoch 9 count
    (2, 10, {NO_SOURCE: 160, NO_TARGET: 300}),
    (3, 10, {}),  # no duty
    (1, 11, {HEAD: 70, NO_SOURCE: 160, TARGET: 140}),
)
BALANCES = pl.DataFrame(
    [(v, e, (64 if v == 3 else 32) * ETH) for v in (1, 2, 3) for e in (9, 10, 11)],
    schema={"validator_index": pl.Int64, "epoch": pl.Int64, "effective_balance_gwei": pl.Int64},
    orient="row",
)


@each_engine
def test_losses_by_hand(kind):
    """A loss is the reward of a full vote less the own rewards, plus the penalties."""
    rows = analysis.attestation_losses(make(kind, INCOME), BALANCES)

    full = 140 + 150 + 280
    expected = pl.DataFrame(
        [
            (1, 10, "missed", full + 460),
            (1, 11, "late", 150 + 160),
            (2, 9, "head", 140),
            (2, 10, "missed", full + 460),
            (3, 9, "target", 560 + 520),
        ],
        schema=["validator_index", "epoch", "fault", "lost_gwei"],
        orient="row",
    )
    assert_equal(
        expected, to_polars(rows).select(expected.columns).sort("validator_index", "epoch")
    )


def test_penalties_after_the_exit_are_no_votes():
    """A slashed validator has penalties until it can withdraw, but no duties."""
    exits = pl.DataFrame({"validator_index": [1, 2], "exit_epoch": [10, None]})

    rows = analysis.attestation_losses(INCOME, BALANCES, validators=exits)

    assert [(2, 9), (2, 10), (3, 9)] == rows.select("validator_index", "epoch").rows()


@each_engine
def test_rates_after_the_exit_are_no_votes(kind):
    """The exit of a validator may be a group; a validator that repeats would count twice."""
    exits = pl.DataFrame({"validator_index": [1, 2, 3], "exit_epoch": [10, 12, 9]})
    income = make(kind, INCOME.join(exits, on="validator_index"))

    rows = analysis.attestation_rates(income, validators=exits, every="all", by="exit_epoch")

    assert {(10, 1), (12, 2)} == set(to_polars(rows).select("exit_epoch", "votes").rows())
    with pytest.raises(UsageError, match="repeat each other"):
        analysis.attestation_rates(INCOME, validators=pl.concat([exits, exits]))


def test_losses_are_the_missed_rewards_of_v2(chain):
    """Of 40 validators, they equal the missed rewards of V2 plus the penalties, to a thousandth."""
    mine = (pl.col("validator_index") < 40) & pl.col("epoch").is_between(200, 400)
    income = chain.scan("income_history").filter(mine).collect()
    balances = chain.scan("balance_history").filter(mine).collect()
    exact = chain.scan("missed_reward_events").filter(mine).collect()

    rows = analysis.attestation_losses(income, balances)

    missed = exact.select(pl.sum("^attestation_.*_missed_gwei$")).row(0)
    want = sum(missed) + income[NO_SOURCE].sum() + income[NO_TARGET].sum()
    assert want > 0
    assert abs(rows["lost_gwei"].sum() - want) < want / 1000


@each_engine
def test_rates_by_hand(kind):
    """Shares of rewarded votes; the effectiveness weights them by 14, 26 and 14 of 54."""
    rows = analysis.attestation_rates(make(kind, INCOME), every="all", by="validator_index")

    weighted = [(14 + 26 + 14 + 26 + 14) / 54 / 3, (14 + 26) / 54 / 2, 28 / 54]
    expected = pl.DataFrame(
        {
            "validator_index": [1, 2, 3],
            "votes": [3, 2, 1],
            "missed": [1, 1, 0],
            "source": [1, 1, 1],
            "target": [2, 1, 0],
            "head": [2, 0, 1],
            "included_rate": [2 / 3, 1 / 2, 1.0],
            "effectiveness": weighted,
        }
    )
    assert_equal(expected, rows)


def test_rates_by_day_have_the_time_zone():
    """Epoch 112 begins at 23:57 UTC, which is the next day in Berlin."""
    income = history((1, 112, {HEAD: 1, SOURCE: 1, TARGET: 1, "tx_fee_reward_wei": Decimal(0)}))

    utc, berlin = (analysis.attestation_rates(income, tz=tz) for tz in ("UTC", "Europe/Berlin"))

    assert ["2020-12-01", "2020-12-02"] == [str(t["date"][0]) for t in (utc, berlin)]
    assert [1.0] == utc["effectiveness"].to_list()
