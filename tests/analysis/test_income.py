"""Income by calendar, by beacon day, and by group."""

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import beaconframes as bf
from beaconframes import analysis
from beaconframes.calendar import Chain
from beaconframes.errors import UsageError

from ..support.income_columns import PENALTIES, REWARDS

GENESIS = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)
EPOCH = timedelta(seconds=384)
SCHEMA = (
    {"validator_index": pl.Int64, "epoch": pl.Int64, "time": pl.Datetime("us", "UTC")}
    | dict.fromkeys([*REWARDS, *PENALTIES, "proposals_missed"], pl.Int64)
    | {"tx_fee_reward_wei": pl.Decimal(28, 0)}
)
UNITS = ("day", "week", "month", "year", "all")


def history(*rows):
    """An income history from (validator, epoch, amounts); other amounts are 0."""
    zero = dict.fromkeys([*REWARDS, *PENALTIES, "proposals_missed"], 0)
    return pl.DataFrame(
        [
            {
                "validator_index": validator,
                "epoch": epoch,
                "time": GENESIS + EPOCH * epoch,
                **zero,
                "tx_fee_reward_wei": Decimal(0),
                **amounts,
            }
            for validator, epoch, amounts in rows
        ],
        schema=SCHEMA,
    )


def varied(validators, epochs):
    """An income history in which all amounts differ."""
    return history(
        *(
            (
                validator,
                epoch,
                {
                    name: (validator * 7 + epoch * 13 + turn * 101) % 9973
                    for turn, name in enumerate((*REWARDS, *PENALTIES))
                }
                | {
                    "proposals_missed": (validator + epoch) % 2,
                    "tx_fee_reward_wei": Decimal((validator + 1) * 10**22 + epoch),
                },
            )
            for validator in validators
            for epoch in epochs
        )
    )


def compute_expected(frame, key):
    """Net income in wei by *key*, in plain Python."""
    sums = defaultdict(int)
    for row in frame.iter_rows(named=True):
        gwei = sum(row[name] for name in REWARDS) - sum(row[name] for name in PENALTIES)
        sums[key(row)] += gwei * 10**9 + int(row["tx_fee_reward_wei"])
    return dict(sums)


def start(moment, every):
    """The first day of a calendar unit, in plain Python."""
    day = moment.date()
    return {
        "day": day,
        "week": day - timedelta(days=day.weekday()),
        "month": day.replace(day=1),
        "year": day.replace(month=1, day=1),
    }[every]


def labeled(frame):
    """The same with labels, one of which is unknown."""
    return frame.with_columns(
        operator=pl.col("validator_index").replace_strict({1: None}, default="a"),
        big=pl.col("validator_index") > 1,
    )


@pytest.mark.parametrize("every", UNITS[:-1])
@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/Los_Angeles"])
def test_income_by_calendar_matches_plain_python(every, tz):
    """Days, weeks, months and years in four zones, over both clock changes."""
    frame = varied(range(2), range(25_000, 75_000, 97))

    rows = analysis.income(frame, every=every, by="validator_index", tz=tz)

    found = {(day, who): int(wei) for day, who, wei in rows.select(KEYS).iter_rows()}
    assert found == compute_expected(
        frame,
        lambda row: (start(row["time"].astimezone(ZoneInfo(tz)), every), row["validator_index"]),
    )
    assert rows.height == len(found)


KEYS = ["date", "validator_index", "net_income_wei"]


def test_a_day_of_23_hours_and_one_of_25():
    """In Berlin 28 March 2021 has 23 hours and 31 October 2021 has 25; 225 epochs are 24 hours."""
    epochs = [*range(26_100, 26_700), *range(40_500, 48_000), *range(74_900, 75_600)]
    frame = history(*((1, epoch, {"slashing_reward_gwei": 1}) for epoch in epochs))

    rows = analysis.income(frame, tz="Europe/Berlin")

    lengths = dict(rows.select("date", "validator_epochs").iter_rows())
    hours = {day: round(lengths[day] * 384 / 3600) for day in lengths}
    assert 23 == hours[date(2021, 3, 28)]
    assert 25 == hours[date(2021, 10, 31)]
    assert {24} == {hours[date(2021, 6, day)] for day in range(1, 31)}


def test_beacon_days_begin_at_the_hour_of_genesis():
    """Epoch 224 is the last of day 0, epoch 225 the first of day 1; calendar days differ."""
    frame = history(
        *((1, epoch, {"slashing_reward_gwei": epoch}) for epoch in (112, 113, 224, 225))
    )

    beacon = analysis.income(frame, day="beacon")
    calendar = analysis.income(frame)

    assert [(0, 449), (1, 225)] == beacon.select("day", "consensus_income_gwei").rows()
    assert [(date(2020, 12, 1), 112), (date(2020, 12, 2), 562)] == calendar.select(
        "date", "consensus_income_gwei"
    ).rows()


def test_beacon_weeks_and_other_chains():
    """A week is seven beacon days; a chain with shorter slots has other days."""
    frame = history(*((1, epoch, {"slashing_reward_gwei": 1}) for epoch in (0, 1574, 1575)))
    short = Chain("short", genesis=GENESIS, seconds_per_slot=6)

    assert [(0, 2), (1, 1)] == analysis.income(frame, every="week", day="beacon").select(
        "week", "validator_epochs"
    ).rows()
    frame = frame.with_columns(time=short.time_expr("epoch", pl.col("epoch")))
    assert [0, 3] == analysis.income(frame, day="beacon", chain=short)["day"].to_list()


def test_groups_are_any_columns():
    """A joined label, beside another; null is a group of its own."""
    frame = labeled(varied(range(3), range(3)))

    result = analysis.income(frame, every="all", by=["operator", "big"])

    keyed = result.select("operator", "big", "net_income_wei").iter_rows()
    assert compute_expected(frame, lambda row: (row["operator"], row["big"])) == {
        (operator, big): int(wei) for operator, big, wei in keyed
    }


def test_columns_are_the_sums_of_their_parts():
    """Powers of two identify the parts of each sum; a count is never added to an amount."""
    rewards = {name: 2**i for i, name in enumerate(REWARDS)}
    penalties = {name: 2 ** (20 + i) for i, name in enumerate(PENALTIES)}
    amounts = rewards | penalties | {"tx_fee_reward_wei": Decimal(7), "proposals_missed": 3}

    (row,) = analysis.income(history((1, 5, amounts)), every="all").iter_rows(named=True)

    net = 0b11111111 - (0b11111 << 20)
    assert {
        "validator_epochs": 1,
        "first_epoch": 5,
        "last_epoch": 5,
        "attestation_reward_gwei": 0b111,
        "proposal_reward_gwei": 0b111000,
        "sync_committee_reward_gwei": 2**6,
        "slashing_reward_gwei": 2**7,
        "attestation_penalty_gwei": 0b11 << 20,
        "finality_delay_penalty_gwei": 2**22,
        "sync_committee_penalty_gwei": 2**23,
        "slashing_penalty_gwei": 2**24,
        "consensus_income_gwei": net,
        "execution_income_wei": 7,
        "net_income_wei": net * 10**9 + 7,
        "proposals_missed": 3,
        "execution_income_basis": "priority fees, relay payments not included",
    } == row


@pytest.mark.more
@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 999), max_size=6), st.sampled_from(UNITS))
def test_any_partition_adds_up_to_the_total(cuts, every):
    """The parts of any split of the range add up to the whole, to the wei."""
    frame = varied([4], range(0, 1000, 7))
    edges = sorted({0, 1000, *cuts})

    parts = [
        analysis.income(frame.filter(pl.col("epoch").is_between(first, last - 1)), every=every)[
            "net_income_wei"
        ].sum()
        for first, last in pairwise(edges)
    ]

    whole = analysis.income(frame, every="all")["net_income_wei"].item()
    assert int(whole) == sum(int(part or 0) for part in parts)


@pytest.mark.parametrize(
    ("every", "tz"),
    [
        ("day", "UTC"),
        ("day", "America/Havana"),
        ("week", "Europe/Berlin"),
        ("month", "Europe/Berlin"),
    ],
)
def test_complete_units_have_every_epoch(every, tz):
    """In a year without one epoch, the first, the last and one more unit are not complete.

    In Havana clocks skip midnight: 14 March 2021 begins at one o'clock.
    """
    epochs = pl.DataFrame({"epoch": [*range(100, 40_000), *range(40_001, 83_000)]})
    frame = history((1, 0, {})).drop("epoch", "time").join(epochs, how="cross")
    length = pl.duration(seconds=384 * pl.col("epoch"), time_unit="us")
    frame = frame.with_columns(time=pl.lit(GENESIS).dt.cast_time_unit("us") + length)

    rows = analysis.income(frame, every=every, tz=tz, coverage=True)

    gap = start((GENESIS + EPOCH * 40_000).astimezone(ZoneInfo(tz)), every)
    incomplete = rows.filter(~pl.col("complete"))["date"].to_list()
    assert [rows["date"][0], gap, rows["date"][-1]] == incomplete


def test_coverage_of_beacon_days_epochs_and_all():
    """A beacon day has 225 epochs; without a unit, the range is what has to be complete."""
    frame = varied([1, 2], [*range(225), 300])

    days = analysis.income(frame, day="beacon", coverage=True)
    epochs = analysis.income(frame, every="epoch", coverage=True)
    whole = analysis.income(frame, every="all", coverage=True)
    first = analysis.income(frame.head(225), every="all", coverage=True)

    assert [(0, 450, 225, True), (1, 2, 1, False)] == days.select(
        "day", "validator_epochs", "epochs", "complete"
    ).rows()
    assert [*range(225), 300] == epochs["epoch"].to_list()
    assert frame["time"].unique().sort().to_list() == epochs["time"].to_list()
    assert epochs["complete"].all()
    assert [1] * 226 == epochs["epochs"].to_list()
    assert [(452, 226, False)] == whole.select("validator_epochs", "epochs", "complete").rows()
    assert [True] == first["complete"].to_list()


def test_the_simulated_chain_adds_up(chain):
    """For any unit and group, the sum is that of the raw rows."""
    raw = chain.scan("income_history")
    total = compute_expected(
        raw.filter(pl.col("validator_index") < 50).collect(), lambda row: None
    )[None]
    some = raw.filter(pl.col("validator_index") < 50)

    for options in ({"every": "day"}, {"by": "validator_index"}, {"day": "beacon"}):
        rows = analysis.income(some, **options).collect()
        assert total == int(rows["net_income_wei"].sum())


def test_wrong_arguments_are_explained():
    """Each message has the value and what to do."""
    frame = varied([1], [1])
    with pytest.raises(UsageError, match="every='hour'"):
        analysis.income(frame, every="hour")
    with pytest.raises(UsageError, match="day='local'"):
        analysis.income(frame, day="local")
    with pytest.raises(UsageError, match="tz='Mars/Olympus' is not a time zone"):
        analysis.income(frame, tz="Mars/Olympus")
    with pytest.raises(UsageError, match=r'is an object, not the name.*Pass "Europe/Berlin"'):
        analysis.income(frame, tz=ZoneInfo("Europe/Berlin"))
    with pytest.raises(UsageError, match="every='month' does not exist for beacon days"):
        analysis.income(frame, every="month", day="beacon")
    with pytest.raises(UsageError, match="beacon days have no time zone: tz='Asia/Tokyo'"):
        analysis.income(frame, day="beacon", tz="Asia/Tokyo")
    with pytest.raises(UsageError, match="no column operator"):
        analysis.income(frame, by="operator")
    with pytest.raises(UsageError, match="by='epoch' is a column that the function computes"):
        analysis.income(frame, by="epoch")
    with pytest.raises(UsageError, match="tx_fee_reward_wei holds String"):
        analysis.income(frame.with_columns(pl.col("tx_fee_reward_wei").cast(pl.String)))


def test_a_missing_index_is_refused():
    """In pandas, one missing index makes the column a float: its income was that of validator nan.

    A missing label is a group of its own: its rows belong to no label.
    """
    rows = history((1, 10, {}), (2, 10, {}))
    whole = rows.with_columns(pl.col("validator_index") * 1.0)
    assert [1, 2] == analysis.income(whole, by="validator_index")["validator_index"].to_list()
    wrong = bf.to_pandas(rows).assign(validator_index=[1, float("nan")])
    for frame in (wrong, rows.with_columns(validator_index=pl.Series([1.0, None])).lazy()):
        with pytest.raises(UsageError, match=r"validator_index holds (null|nan), .* in 1 of its"):
            analysis.income(frame, by="validator_index")
        with pytest.raises(UsageError, match="validator_index holds"):
            analysis.income(frame, blocks=frame)
    assert [2] == analysis.income(wrong)["validator_epochs"].tolist()
    labeled_rows = rows.with_columns(label=pl.Series(["a", None]))
    assert [None, "a"] == analysis.income(labeled_rows, by="label")["label"].to_list()
