"""Income with coverage: exact sums, and whether a day, week or month is complete."""

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from .test_income import PENALTIES, REWARDS, history


def steady(first, last, **amounts):
    """An income history of validator 1 with the same amounts in every epoch."""
    amounts = amounts or {"attestation_head_reward_gwei": 1}
    return history(*((1, epoch, amounts) for epoch in range(first, last + 1)))


def time_after(seconds):
    """The column ``time`` of epochs so many seconds after noon of a day."""
    return (datetime(2026, 3, 1, 12, tzinfo=UTC) + pl.duration(seconds=seconds)).alias("time")


def test_net_income_is_rewards_minus_penalties_plus_fees():
    """Every column counts once, with its sign: powers of two identify the parts."""
    rewards = {name: 2**i for i, name in enumerate(REWARDS)}
    penalties = {name: 2 ** (20 + i) for i, name in enumerate(PENALTIES)}
    fee = {"tx_fee_reward_wei": Decimal(7)}

    (row,) = analysis.income(history((1, 5, rewards | penalties | fee))).iter_rows(named=True)

    assert 0b111 == row["attestation_reward_gwei"]
    assert 0b111000 == row["proposal_reward_gwei"]
    assert 2**6 == row["sync_committee_reward_gwei"]
    assert 2**7 == row["slashing_reward_gwei"]
    assert 0b11 << 20 == row["attestation_penalty_gwei"]
    assert 2**22 == row["finality_delay_penalty_gwei"]
    assert 2**23 == row["sync_committee_penalty_gwei"]
    assert 2**24 == row["slashing_penalty_gwei"]
    assert 0b11111111 - (0b11111 << 20) == row["consensus_income_gwei"]
    assert 7 == row["execution_income_wei"]
    assert (0b11111111 - (0b11111 << 20)) * 10**9 + 7 == row["net_income_wei"]


def test_missed_proposals_are_not_added_to_income():
    """The column is a count."""
    rows = analysis.income(history((1, 5, {"proposals_missed": 1_000_000})))

    assert [Decimal(0)] == rows["net_income_wei"].to_list()


@pytest.mark.parametrize("kind", [lambda frame: frame, to_pandas, pl.DataFrame.to_pandas])
def test_sums_are_exact(kind):
    """Wei beyond 64 bits, and more digits than a float has, in polars and pandas."""
    fees = [Decimal(2**70 + 1), Decimal(123_456_789_012_345_678_901), Decimal(1)]
    frame = history(
        *(
            (i, 5, {"tx_fee_reward_wei": fee, "slashing_reward_gwei": 2**53 + 1})
            for i, fee in enumerate(fees)
        )
    )

    rows = analysis.income(kind(frame))

    assert [sum(fees) + 3 * (2**53 + 1) * 10**9] == list(rows["net_income_wei"])


def test_types_match_the_units():
    """Gwei are Int64, wei Decimal(28, 0), times UTC; also without rows."""
    options = {"every": "epoch", "coverage": True}
    schema = analysis.income(history(), **options).schema

    assert schema == analysis.income(steady(0, 2), **options).schema
    assert pl.Datetime("us", "UTC") == schema["time"]
    for name, dtype in schema.items():
        if name.endswith("_gwei"):
            assert pl.Int64 == dtype
        if name.endswith("_wei"):
            assert pl.Decimal(28, 0) == dtype


def test_income_by_epoch_has_a_row_per_epoch():
    """Over all validators, sorted."""
    one = {"attestation_head_reward_gwei": 1}
    frame = history((1, 7, one), (2, 7, one), (1, 5, one))

    rows = analysis.income(frame, every="epoch", coverage=True)

    assert [(5, 1), (7, 2)] == rows.select("first_epoch", "consensus_income_gwei").rows()
    assert [True, True] == rows["complete"].to_list()


def test_days_are_utc_days():
    """An epoch counts for the UTC day in which it begins, whatever the zone of its time."""
    # Epoch 112 begins 43,008 s after 12:00:23, on the same day; epoch 113 on the next.
    frame = steady(111, 114).with_columns(pl.col("time").dt.convert_time_zone("Asia/Tokyo"))

    rows = analysis.income(frame, every="day", coverage=True)

    days = [date(2020, 12, day) for day in (1, 2)]
    assert [(days[0], 2, 112), (days[1], 2, 114)] == rows.select(
        "date", "epochs", "last_epoch"
    ).rows()


def test_a_day_is_complete_with_all_its_epochs():
    """225 epochs begin in a full day; partial days and days with gaps are not complete."""
    frame = steady(10, 1000).filter(pl.col("epoch") != 500)

    rows = analysis.income(frame, coverage=True)

    assert [103, 225, 224, 225, 213] == rows["epochs"].to_list()
    assert [False, True, False, True, False] == rows["complete"].to_list()


def test_the_day_of_genesis_is_not_complete():
    """Z3: the chain began at noon, so the day has 113 of 225 epochs; nor is the last day."""
    rows = analysis.income(steady(0, 113 + 225 + 200), coverage=True)

    assert [False, True, False] == rows["complete"].to_list()
    assert [113, 225, 201] == rows["epochs"].to_list()


def test_a_day_of_short_epochs_is_complete():
    """The minimal preset of test networks: 8 slots of 6 seconds, so a day has 1,800 epochs."""
    frame = steady(0, 4_000).with_columns(time_after(pl.col("epoch") * 48))

    rows = analysis.income(frame, coverage=True)

    assert [900, 1_800, 1_301] == rows["epochs"].to_list()
    assert [False, True, False] == rows["complete"].to_list()
    assert [False] == analysis.income(frame.head(1), coverage=True)["complete"].to_list()


def test_a_day_of_epochs_at_one_time_is_not_complete():
    """Wrong times do not show how long an epoch is."""
    frame = steady(0, 3).with_columns(time_after(pl.lit(0)))

    assert [False] == analysis.income(frame, coverage=True)["complete"].to_list()


def test_weeks_begin_on_monday():
    """1 December 2020 was a Tuesday, with 113 epochs after genesis."""
    rows = analysis.income(steady(0, 113 + 5 * 225 + 1575 - 1), every="week", coverage=True)

    mondays = [date(2020, 11, 30), date(2020, 12, 7)]
    assert [(mondays[0], 1238, False), (mondays[1], 1575, True)] == rows.select(
        "date", "epochs", "complete"
    ).rows()


def test_months_have_their_own_lengths():
    """December has 31 days minus half a day before genesis; January has 31; February is cut off."""
    rows = analysis.income(steady(0, 225 * 62), every="month", coverage=True)

    assert [12, 1, 2] == rows["date"].dt.month().to_list()
    assert [30 * 225 + 113, 31 * 225] == rows["epochs"].to_list()[:2]
    assert [False, True, False] == rows["complete"].to_list()
    assert rows["epochs"].to_list() == rows["consensus_income_gwei"].to_list()


def test_income_by_validator():
    """One row per day and validator."""
    frame = history(
        (8, 5, {"attestation_head_reward_gwei": 3}),
        (8, 6, {"attestation_head_reward_gwei": 4}),
        (2, 5, {"slashing_penalty_gwei": 9}),
    )

    rows = analysis.income(frame, by="validator_index")

    assert [(2, -9), (8, 7)] == rows.select("validator_index", "consensus_income_gwei").rows()


def test_rows_without_an_amount_are_left_out():
    """Unknown income is not zero income."""
    frame = steady(5, 6).with_columns(
        slashing_reward_gwei=pl.when(pl.col("epoch") == 5).then(0),
    )

    assert [5] == analysis.income(frame, every="epoch")["first_epoch"].to_list()


def test_the_result_is_the_same_kind_of_frame():
    """Lazy, pandas and Arrow frames give the same values."""
    frame = steady(5, 400, tx_fee_reward_wei=Decimal(2**66))
    expected = analysis.income(frame)

    assert expected.equals(analysis.income(frame.lazy()).collect())
    assert expected.equals(
        pl.from_pandas(analysis.income(to_pandas(frame)), schema_overrides=expected.schema)
    )
    assert expected.equals(
        pl.from_arrow(analysis.income(frame.to_arrow()), schema_overrides=expected.schema)
    )


def test_wrong_frames_are_explained():
    """A missing column is named with its loader; text in place of times is refused."""
    frame = steady(1, 2)
    with pytest.raises(UsageError, match=r"no column epoch.*bf\.load_income_history"):
        analysis.income(frame.drop("epoch"))
    text = frame.with_columns(pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
    with pytest.raises(UsageError, match="column time holds String") as caught:
        analysis.income(text)
    assert str(caught.value).endswith('pl.col("time").str.to_datetime(time_zone="UTC") in polars.')
    parsed = text.with_columns(pl.col("time").str.to_datetime(time_zone="UTC"))
    assert analysis.income(parsed).equals(analysis.income(frame))
    with pytest.raises(UsageError, match="expected a frame, not dict"):
        analysis.income({"epoch": [1]})
