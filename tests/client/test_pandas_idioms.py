"""Step 12, 7: what people write in pandas works on the frames of loaders and of analysis."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pandas as pd
import polars as pl
import pytest

import beaconframes as bf
from beaconframes.errors import UsageError

ODD = 2**53 + 1
"""A number that a float cannot have."""
MOST = 10**27 + 1
START = datetime(2026, 10, 1, 12, tzinfo=UTC)
ROWS = pl.DataFrame(
    {
        "validator_index": [1, 2, 1, 2],
        "time": [START + timedelta(hours=hours) for hours in (0, 1, 24, 25)],
        "date": [date(2026, 10, 1)] * 2 + [date(2026, 10, 2)] * 2,
        "reward_gwei": [ODD, None, 5, 6],
        "fee_wei": pl.Series([MOST, 1, None, 2], dtype=pl.Decimal(28, 0)),
    },
    schema_overrides={"time": pl.Datetime("us", "UTC")},
)
PRICES = pd.DataFrame(
    {"time": pd.to_datetime(["2026-10-01", "2026-10-02"], utc=True), "eur": [2000.0, 2100.0]}
)
backends = pytest.mark.parametrize("backend", ["pyarrow", "numpy_nullable"])


@backends
def test_prices_are_joined_without_a_cast(backend):
    """`merge_asof` and `merge` with plain pandas frames; times have the type that pandas reads."""
    rows = bf.to_pandas(ROWS, dtype_backend=backend)

    priced = pd.merge_asof(rows, PRICES, on="time")
    daily = rows.merge(PRICES.assign(date=PRICES["time"].dt.tz_localize(None)), on="date")

    assert priced["eur"].tolist() == daily["eur"].tolist() == [2000.0, 2000.0, 2100.0, 2100.0]


@backends
def test_groups_and_days_are_exact(backend):
    """`groupby`, `resample` and slices by a date keep integers beside nulls."""
    rows = bf.to_pandas(ROWS, dtype_backend=backend)
    by_time = rows.set_index("time")

    assert rows.groupby("validator_index")["reward_gwei"].sum().tolist() == [ODD + 5, 6]
    assert [int(wei) for wei in rows.groupby("validator_index")["fee_wei"].sum()] == [MOST, 3]
    assert by_time.resample("D")["reward_gwei"].sum().tolist() == [ODD, 11]
    assert by_time.loc["2026-10-02", "reward_gwei"].tolist() == [5, 6]
    assert rows[rows["date"] >= "2026-10-02"]["reward_gwei"].tolist() == [5, 6]
    assert rows.set_index("date").resample("W")["reward_gwei"].sum().tolist() == [ODD + 11]


@backends
def test_no_digit_is_lost(backend):
    """There and back: integers, wei, times and nulls are those of polars."""
    rows = bf.to_pandas(ROWS, dtype_backend=backend)

    back = pl.from_pandas(rows).cast(dict(ROWS.schema))

    assert ROWS.equals(back)
    ether = bf.to_eth(rows, exact=True)
    assert bf.to_eth(ROWS, exact=True)["fee_eth"].to_list() == [
        None if pd.isna(value) else value for value in ether["fee_eth"]
    ]


def test_nullable_types_offer_what_arrow_does_not():
    """Arrow has no `cumsum` of decimals; objects do, and stay exact."""
    rows = bf.to_pandas(bf.to_pandas(ROWS), dtype_backend="numpy_nullable")

    assert str(rows["reward_gwei"].dtype) == "Int64"
    assert rows["fee_wei"].dropna().cumsum().tolist() == [
        Decimal(MOST), Decimal(MOST + 1), Decimal(MOST + 3),
    ]  # fmt: skip
    with pytest.raises(UsageError, match='"pyarrow", "numpy_nullable"'):
        bf.to_pandas(ROWS, dtype_backend="numpy")


def test_an_index_is_kept():
    """A conversion of a pandas frame keeps its index."""
    rows = bf.to_pandas(ROWS).set_axis([3, 1, 4, 2])

    assert bf.to_pandas(rows, dtype_backend="numpy_nullable").index.tolist() == [3, 1, 4, 2]


@backends
def test_excel_takes_times_without_a_zone(backend, tmp_path):
    """Pandas refuses times with a zone; `bf.export` writes them, and both read back the same."""
    rows = bf.to_pandas(ROWS.drop("fee_wei"), dtype_backend=backend)
    first, second = tmp_path / "first.xlsx", tmp_path / "second.xlsx"

    rows.assign(time=rows["time"].dt.tz_localize(None)).to_excel(first, index=False)
    bf.export(rows, second)

    expected = [time.replace(tzinfo=None) for time in ROWS["time"]]
    assert pd.read_excel(first)["time"].tolist() == expected
    read = pd.to_datetime(pd.read_excel(second)["time"], utc=True)
    assert read.dt.tz_localize(None).tolist() == expected


def test_connections_return_pandas(running, chain):
    """`bf.connect(frame=)` and `bf.open(frame=)`, as `bf.local(frame=)` and the settings."""
    bf.connect(running.url, frame="pandas")
    connected = bf.load_income_history([1], since=460, until=461)
    with bf.open(chain.path, frame="pandas"):
        opened = bf.load_income_history([1], since=460, until=461)

    assert isinstance(connected, pd.DataFrame)
    assert isinstance(bf.analysis.income(opened), pd.DataFrame)
    assert connected.equals(opened)
    assert str(connected["time"].dtype) == "datetime64[us, UTC]"
