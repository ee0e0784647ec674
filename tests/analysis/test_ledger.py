"""The ledger: days of any time zone, exact totals, daily prices."""

from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError
from beaconframes.frames import to_polars

from ..support.engines import assert_equal, each_engine, make
from .test_income import EPOCH, GENESIS, PENALTIES, REWARDS, history, varied

ETH = 10**9
BERLIN = ZoneInfo("Europe/Berlin")


def paid(*rows):
    """Withdrawals from (validator, time, gwei)."""
    return pl.DataFrame(
        list(rows),
        schema={
            "validator_index": pl.Int64,
            "time": pl.Datetime("us", "UTC"),
            "amount_gwei": pl.Int64,
        },
        orient="row",
    )


def priced(*rows, name="eur"):
    return pl.DataFrame(
        list(rows),
        schema={"time": pl.Datetime("us", "UTC"), name: pl.Float64},
        orient="row",
    )


# Epoch 112 begins at 23:57 UTC of 1 December 2020, which is the 2nd in Berlin already.
EARNED = history(
    (1, 112, {"attestation_head_reward_gwei": 5, "tx_fee_reward_wei": Decimal(10**18)}),
    (1, 113, {"attestation_source_penalty_gwei": 2}),
    (2, 10, {"sync_committee_reward_gwei": 7}),
)
PAID = paid(
    (1, datetime(2020, 12, 1, 23, 30, tzinfo=UTC), 3),
    (2, datetime(2020, 12, 2, 23, 30, tzinfo=UTC), 2 * ETH),
)
PRICES = priced(
    (datetime(2020, 12, 2, 22, 59, tzinfo=UTC), 600.5),
    (datetime(2020, 12, 1, 23, 10, tzinfo=UTC), 500.0),  # the 2nd in Berlin, and not its latest
    (datetime(2020, 12, 1, 22, 59, tzinfo=UTC), 400.0),
)
SECOND, FIRST, THIRD = date(2020, 12, 2), date(2020, 12, 1), date(2020, 12, 3)


def test_a_ledger_by_hand():
    """In Berlin: income, fees and withdrawals by day, at the latest price of each day.

    The latest price of a day is not that of the last line: prices are in any order.
    """
    whole = analysis.ledger(EARNED, PAID, PRICES, tz="Europe/Berlin", price="eur")

    names = ["date", "validator_index", "net_income_wei", "withdrawals_gwei", "eur"]
    values = ["price_time", "income_value", "withdrawals_value"]
    # 1.000000003 ETH at 600.5 are 600.5000018015, rounded to eight decimals.
    known = datetime(2020, 12, 1, 22, 59, tzinfo=UTC), datetime(2020, 12, 2, 22, 59, tzinfo=UTC)
    first = Decimal(400), known[0], Decimal("0.0000028"), Decimal(0)
    second = Decimal("600.5"), known[1], Decimal("600.50000180"), Decimal("0.00000180")
    rows = pl.DataFrame(
        [
            (FIRST, 2, Decimal(7 * 10**9), 0, *first),
            (SECOND, 1, Decimal(10**18 + 3 * 10**9), 3, *second),
            (THIRD, 2, Decimal(0), 2 * ETH, None, None, None, None),
        ],
        schema=dict(
            zip(
                [*names, *values],
                [
                    *(pl.Date, pl.Int64, pl.Decimal(28, 0), pl.Int64, pl.Decimal(38, 8)),
                    *(pl.Datetime("us", "UTC"), pl.Decimal(38, 8), pl.Decimal(38, 8)),
                ],
                strict=True,
            )
        ),
        orient="row",
    )
    assert_equal(rows, whole.select(*names, *values))


@pytest.mark.parametrize(
    "kind",
    [
        *("polars", "duckdb"),
        *(pytest.param(kind, marks=pytest.mark.more) for kind in ("pandas-arrow", "dask")),
        pytest.param("pyspark", marks=pytest.mark.long),
    ],
)
def test_a_withdrawal_counts_for_the_day_in_which_its_epoch_begins(kind):
    """Epoch 112 begins at 23:57 UTC of December 1; the withdrawal in it is after midnight.

    Income of the epoch is that of December 1, too. A frame without epochs has the day of its time.
    """
    midnight = datetime(2020, 12, 2, 0, 1, tzinfo=UTC)
    late = paid((1, midnight, 3), (1, midnight, 4))
    after = late.with_columns(epoch=pl.Series([112, None], dtype=pl.Int64))

    rows = to_polars(analysis.ledger(make(kind, EARNED), make(kind, after)))

    rows = rows.filter(validator_index=1).select(pl.col("date").cast(pl.Date), "withdrawals_gwei")
    assert [(FIRST, 3), (SECOND, 4)] == rows.sort("date").rows()
    unchanged = analysis.ledger(EARNED, late)
    assert [0, 0, 7] == unchanged["withdrawals_gwei"].to_list()


def test_values_are_rounded_half_up():
    """15 gwei at a price of 1 are 0.000000015: the half of the eighth decimal is rounded up."""
    earned = history((1, 10, {"attestation_head_reward_gwei": 15}))
    prices = priced((datetime(2020, 12, 1, 13, tzinfo=UTC), 1.0))

    values = analysis.ledger(earned, prices=prices, price="eur")["income_value"]

    assert [Decimal("0.00000002")] == values.to_list()


def test_kinds_of_income_have_columns():
    """Each column is the sum of its kind; penalties are positive amounts."""
    rows = analysis.ledger(EARNED)

    columns = [
        "date",
        "attestation_reward_gwei",
        "attestation_penalty_gwei",
        "consensus_income_gwei",
        "execution_income_wei",
    ]
    assert [(FIRST, 5, 0, 5, Decimal(10**18)), (FIRST, 0, 0, 7, 0), (SECOND, 0, 2, -2, 0)] == (
        rows.select(columns).rows()
    )


def test_totals_are_those_of_the_raw_rows(chain):
    """In any zone, every wei of 60 validators is in the ledger once."""
    mine = pl.col("validator_index") < 60
    income = chain.scan("income_history").filter(mine).collect()
    withdrawals = chain.scan("validator_withdrawals").filter(mine).collect()
    gwei = sum(income[name].sum() for name in REWARDS) - sum(
        income[name].sum() for name in PENALTIES
    )

    for tz in ("UTC", "Asia/Kathmandu", "America/New_York"):
        rows = analysis.ledger(income, withdrawals, tz=tz)
        net = sum(map(int, rows["net_income_wei"]))
        assert gwei * 10**9 + sum(map(int, income["tx_fee_reward_wei"])) == net
        assert withdrawals["amount_gwei"].sum() == rows["withdrawals_gwei"].sum()
        assert rows.height == rows.select("date", "validator_index").unique().height


@pytest.mark.parametrize(
    ("first", "day"), [(26_150, date(2021, 3, 28)), (74_950, date(2021, 10, 31))]
)
def test_days_on_which_clocks_change(first, day):
    """The days of 23 and of 25 hours have the epochs that plain Python puts there."""
    frame = varied([1], range(first, first + 700))
    hand = defaultdict(int)
    for epoch, fee in frame.select("epoch", "tx_fee_reward_wei").iter_rows():
        hand[(GENESIS + EPOCH * epoch).astimezone(BERLIN).date()] += int(fee)

    rows = analysis.ledger(frame, tz="Europe/Berlin")

    assert day in hand
    assert dict(hand) == {
        found: int(fee) for found, fee in rows.select("date", "execution_income_wei").iter_rows()
    }


def test_wrong_frames_are_explained():
    """Prices that are missing or not numbers; an unknown time zone."""
    with pytest.raises(UsageError, match=r"no column price.*Their columns: .*eur"):
        analysis.ledger(EARNED, prices=PRICES)
    with pytest.raises(UsageError, match="eur of prices is not numeric"):
        analysis.ledger(EARNED, prices=PRICES.cast({"eur": pl.String}), price="eur")
    days = PRICES.with_columns(pl.col("time").dt.date())
    with pytest.raises(UsageError, match=r"prices: the column time holds Date.*cast\(pl\.Datetime"):
        analysis.ledger(EARNED, prices=days, price="eur")
    numbers = PRICES.with_columns(pl.col("time").dt.epoch("ms"))
    with pytest.raises(UsageError, match=r"prices: .* Int64, not times.*pl\.from_epoch"):
        analysis.ledger(EARNED, prices=numbers, price="eur")
    negative = PRICES.with_columns(-pl.col("eur"))
    with pytest.raises(UsageError, match="a negative price at 2020-12-01 22:59:00 UTC: -400"):
        analysis.ledger(EARNED, prices=negative, price="eur")
    other = pl.concat([PRICES, PRICES.with_columns(pl.col("eur") + 1)])
    with pytest.raises(UsageError, match="several prices at 2020-12-01 22:59:00 UTC: 400, 401"):
        analysis.ledger(EARNED, prices=other, price="eur")
    with pytest.raises(UsageError, match="price='date' is a column of the ledger"):
        analysis.ledger(EARNED, prices=PRICES.rename({"eur": "date"}), price="date")
    with pytest.raises(UsageError, match="not a time zone"):
        analysis.ledger(EARNED, tz="Berlin")


BOOK_ROWS = {
    "date": [date(2026, 4, 5), date(2026, 4, 6), date(2026, 12, 31), date(2027, 1, 1)],
    "net_income_wei": [10**18, -5, 2 * 10**18, 7],
    "withdrawals_gwei": [1, 0, 3, 0],
    "eur": ["2000", "2100", None, "1"],
    "income_value": ["2000", "0", None, "0"],
    "withdrawals_value": ["0.000002", "0", None, "0"],
}
BOOK = pl.DataFrame(BOOK_ROWS).cast(
    {"net_income_wei": pl.Decimal(28, 0)}
    | dict.fromkeys(["eur", "income_value", "withdrawals_value"], pl.Decimal(38, 8))
)


def test_totals_of_tax_years():
    """A year begins on January 1 or on another day; days without a price are counted."""
    calendar = analysis.yearly_totals(BOOK)
    british = analysis.yearly_totals(BOOK, starts="04-06")

    columns = ["year", "net_income_wei", "withdrawals_gwei", "income_value", "days_without_price"]
    assert [
        (2026, Decimal(3 * 10**18 - 5), 4, Decimal(2000), 1),
        (2027, Decimal(7), 0, Decimal(0), 0),
    ] == calendar.select(columns).rows()
    assert [
        (2025, date(2026, 4, 5), date(2026, 4, 5), Decimal(10**18)),
        (2026, date(2026, 4, 6), date(2027, 1, 1), Decimal(2 * 10**18 + 2)),
    ] == british.select("year", "first_date", "last_date", "net_income_wei").rows()
    with pytest.raises(UsageError, match="starts='13-01' is not a month and a day"):
        analysis.yearly_totals(BOOK, starts="13-01")


def test_rows_for_koinly():
    """The header of Koinly's custom file, with times in UTC and the value as net worth."""
    rows = analysis.tax_rows(BOOK, "koinly", price="eur", tz="Europe/Berlin")
    text = "Staking income of validators"

    assert [
        "Koinly Date,Amount,Currency,Label,Net Worth Amount,Net Worth Currency,Description,TxHash",
        f"2026-04-05 10:00 UTC,1.{'0' * 18},ETH,Reward,2000.00000000,EUR,{text},",
        f"2026-04-06 10:00 UTC,-0.{'0' * 17}5,ETH,Cost,0.00000000,EUR,{text},",
        f"2026-12-31 11:00 UTC,2.{'0' * 18},ETH,Reward,,,{text},",
        f"2027-01-01 11:00 UTC,0.{'0' * 17}7,ETH,Reward,0.00000000,EUR,{text},",
    ] == rows.write_csv().splitlines()


def test_rows_for_rotki():
    """The header of rotki's generic events, with times in milliseconds."""
    rows = analysis.tax_rows(BOOK, "rotki")

    assert [
        "Type,Location,Currency,Amount,Fee,Fee Currency,Description,Timestamp",
        "Staking,external,ETH,1.000000000000000000,,,Staking income of validators,1775390400000",
        "Loss,external,ETH,0.000000000000000005,,,Staking income of validators,1775476800000",
    ] == rows.write_csv().splitlines()[:3]
    assert datetime(2026, 4, 5, 12, tzinfo=UTC).timestamp() * 1000 == rows["Timestamp"][0]
    with pytest.raises(UsageError, match="tool='excel'"):
        analysis.tax_rows(BOOK, "excel")


def test_a_day_of_one_unknown_income_is_left_out_of_tax_files():
    """The sum of the others would be a part of the day, as if it were all of it."""
    unknown = pl.when(pl.col("date") != date(2026, 4, 5)).then("net_income_wei")
    book = pl.concat([BOOK, BOOK.with_columns(net_income_wei=unknown)])

    rows = analysis.tax_rows(book, "rotki")

    assert analysis.tax_rows(BOOK, "rotki").height - 1 == rows.height
    assert ("Loss", "0.000000000000000010") == rows.row(0)[::3][:2]
    with pytest.raises(UsageError, match="tz='Nowhere/X' is not a time zone"):
        analysis.tax_rows(BOOK, "rotki", tz="Nowhere/X")


def test_values_that_do_not_fit_are_an_error():
    """A value of more than 128 bits is never a wrong number."""
    prices = priced((datetime(2020, 12, 2, 22, 59, tzinfo=UTC), 1e15))
    income = history((1, 113, {"tx_fee_reward_wei": Decimal(10**27)}))
    with pytest.raises(UsageError, match="has too many digits"):
        analysis.ledger(income, prices=prices, price="eur", tz="Europe/Berlin")


@pytest.mark.more
@each_engine
def test_values_in_each_engine(kind):
    """The same values to the last digit, in the kind of frame of the income."""
    expected = analysis.ledger(EARNED, PAID, PRICES, tz="Europe/Berlin", price="eur")

    found = analysis.ledger(make(kind, EARNED), PAID, PRICES, tz="Europe/Berlin", price="eur")

    columns = ["date", "eur", "price_time", "income_value", "withdrawals_value"]
    # A day of pandas is a time.
    rows = to_polars(found).with_columns(pl.col("date").cast(pl.Date)).select(columns).rows()
    assert expected.select(columns).rows() == rows


def test_a_column_of_prices_needs_prices():
    """Step 12: a ledger without the amounts in euro would be a surprise in the tax return."""
    with pytest.raises(UsageError, match=r"^price='eur' is a column of prices, and there are no"):
        analysis.ledger(EARNED, price="eur")


@pytest.mark.parametrize("index", [float("nan"), 1.5, None])
def test_an_index_that_is_no_whole_number_is_refused(index):
    """The error names value and rows, also for a lazy frame; whole indices may be floats."""
    rows = history((1, 10, {}), (2, 10, {})).with_columns(pl.col("validator_index") * 1.0)
    assert [1, 2] == analysis.ledger(rows)["validator_index"].to_list()
    first = pl.int_range(pl.len()) == 0
    wrong = rows.with_columns(
        pl.when(first).then(index).otherwise("validator_index").alias("validator_index")
    )

    for frame in (wrong, wrong.lazy()):
        with pytest.raises(
            UsageError, match=f"validator_index holds {index or 'null'}, which is not .* in 1 of"
        ):
            analysis.ledger(frame)
        with pytest.raises(UsageError, match="which is not an index"):
            analysis.ledger(EARNED, withdrawals=frame.with_columns(amount_gwei=1))
