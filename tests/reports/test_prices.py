"""Value at receipt: prices of a frame or a CSV file, by day and by tax year."""

import dataclasses
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from beaconframes.errors import DatasetError, UsageError
from beaconframes.reports.formats import show_value
from beaconframes.reports.inputs import Input
from beaconframes.reports.parts.over_time import build_income, build_value
from beaconframes.reports.prices import find_year, read_prices


def test_value_of_each_day_and_year(made, no_charts):
    """Net income times the last price of its day, rounded to eight decimals, and its time."""
    days = made.report.frames["days"]
    value = made.report.frames["value"]

    first = days.filter(pl.col("date") == value["date"][0])
    by_hand = [
        (Decimal(int(wei)) * Decimal("2612.5") / 10**18).quantize(Decimal("1e-8"))
        for wei in first["net_income_wei"]
    ]
    assert sum(by_hand) == value["income_value"][0]
    assert Decimal("2612.5") == value["eur"][0]
    assert datetime(2026, 10, 1, 20, tzinfo=UTC) == value["price_time"][0]
    # The second day has no price: its value is unknown, and not in the total.
    assert [None] == value["income_value"].to_list()[1:]
    (year,) = made.report.frames["years"].rows(named=True)
    assert (2026, 1, value["income_value"][0]) == (
        year["year"],
        year["days_without_price"],
        year["income_value"],
    )
    assert f">{show_value(year['income_value'])} EUR</td>" in made.report.to_html()


def test_a_day_of_the_chain_has_its_own_last_price(made, tables):
    """Day 1 begins at noon: a price of the date before noon is older, that of the end is later."""
    begin, end = (made.inputs.chain.time_of("day", day) for day in (1, 2))
    assert datetime(2026, 10, 1, 12, tzinfo=UTC) == begin.replace(second=0)
    hours = [-1, 8, 23, 24]
    times = [begin + timedelta(hours=hour) for hour in hours]
    prices = pl.DataFrame({"time": times, "eur": [1.0, 2.0, 3.0, 4.0]})
    stats = tables["validator_stats"].filter(pl.col("day") == 1)
    items = {"stats": Input("stats", "", stats)}
    inputs = dataclasses.replace(made.inputs, detail="days", items=items)

    found = []
    for known in (prices, prices.filter(eur=1), prices.filter(eur=4)):
        inputs.prices = known
        frames = build_income(inputs, {})
        found += build_value(inputs, frames)["value"].select("date", "eur", "price_time").rows()

    assert times[3] == end
    today = date(2026, 10, 1)
    assert [(today, 3, times[2]), (today, None, None), (today, None, None)] == found


def test_prices_of_a_file(tmp_path):
    """Times as dates, with a time, or with a zone; prices keep all digits."""
    file = tmp_path / "prices.csv"
    file.write_text(
        "time,eur\n2026-10-01,2500.12345678\n2026-10-02 12:30:00,1\n2026-10-03T02:00:00+02:00,0.1\n"
    )

    rows = read_prices(file, "eur")

    assert [
        (datetime(2026, 10, 1, tzinfo=UTC), Decimal("2500.12345678")),
        (datetime(2026, 10, 2, 12, 30, tzinfo=UTC), Decimal(1)),
        (datetime(2026, 10, 3, tzinfo=UTC), Decimal("0.1")),
    ] == rows.rows()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,usd\n2026-10-01,1\n", "has no column eur; its columns are time, usd"),
        ("time;eur\n2026-10-01;2500,10\n", "the columns of .* are separated by semicolons"),
        ("time,eur\n", "prices.csv has no rows"),
        ("time,eur\n2026-10-01,2500,10\n", "line 2 of .* has 3 values, and the header has 2"),
        ("time,eur\n2026-10-01,1\n\nyesterday,2\n", "line 4 of .*: 'yesterday' is not a valid t"),
        ("time,eur\n05/10/2026,1\n", "line 2 of .*: '05/10/2026' is not a valid time"),
        ("time,eur\n2026-10-01,many\n", "line 2 of .*: 'many' is not a valid eur"),
        ("time,eur\n2026-10-01,-1\n", "line 2 of .*: '-1' is not a valid eur"),
        ("time,eur\n2026-10-01,NaN\n", "line 2 of .*: 'NaN' is not a valid eur"),
        ("time,eur\n2026-10-01,inf\n", "line 2 of .*: 'inf' is not a valid eur"),
        ("time,eur\n2026-10-01,\n", "line 2 of .*: '' is not a valid eur"),
        (
            "time,eur\n2026-10-01,1\n2026-10-01T00:00:00Z,1\n2026-10-02,1\n2026-10-01,2.50\n",
            "lines 2 and 5 of .* have two prices for 2026-10-01 00:00:00 UTC: 1 and 2.5",
        ),
    ],
)
def test_invalid_prices_are_explained(tmp_path, text, message):
    file = tmp_path / "prices.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_prices(file, "eur")


@pytest.mark.parametrize("content", [None, b"time,eur\n\xff\xff,1\n", b'time,eur\n"2026,1\n'])
def test_a_file_of_prices_that_cannot_be_read(tmp_path, content):
    """Exit code 9 of the command line, as for other files."""
    file = tmp_path / "prices.csv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DatasetError, match=r"does not exist|is not a CSV file in UTF-8"):
        read_prices(file, "eur")


def test_a_year_in_a_time_zone():
    """2026 in Berlin begins at 23:00 UTC of the day before."""
    known = {
        "genesis": datetime(2020, 12, 1, 12, tzinfo=UTC),
        "now": datetime(2026, 3, 1, tzinfo=UTC),
    }
    since, until = find_year("2026", "Europe/Berlin", None, None, **known)

    assert datetime(2025, 12, 31, 23, tzinfo=UTC) == since
    assert datetime(2026, 12, 31, 22, 59, 59, 999_999, tzinfo=UTC) == until
    # The year of the genesis begins with it.
    assert known["genesis"] == find_year(2020, "UTC", None, None, **known)[0]
    for arguments, message in (
        (("26", "UTC", None, None), "year='26' is not a year"),
        ((2026, "UTC", "30d", None), "year=2026 is a range already"),
        ((2019, "UTC", None, None), "year='2019' has no epoch: the chain is from 2020-12-01 to"),
        ((2027, "UTC", None, None), "year='2027' has no epoch"),
        ((2026, "Berlin", None, None), "tz='Berlin' is not a time zone"),
    ):
        with pytest.raises(UsageError, match=message):
            find_year(*arguments, **known)
