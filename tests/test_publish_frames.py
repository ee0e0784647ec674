"""Frames of any kind: what is exported is what was given, or it is refused by name."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import beaconframes as bf
from beaconframes.calendar import HOODI, MAINNET
from beaconframes.errors import DatasetError, UsageError
from beaconframes.publish.sources import of_frame, of_frames

from .test_publish import income

REWARD = "attestation_head_reward_gwei"
NOT_A_COLUMN = {
    "objects": (pl.DataFrame({"epoch": [0], "odd": [object()]}), "column odd holds Object"),
    "no name": (pl.DataFrame({"epoch": [0], "": [1]}), "a column is called ''"),
    "a name with an end": (pl.DataFrame({"a\0b": [1]}), "which is no name"),
    "periods": (
        pd.DataFrame({"odd": pd.period_range("2026", periods=2, freq="D")}),
        "column odd holds",
    ),
    "twice": (pd.DataFrame([[1, 2]], columns=["odd", "odd"]), "are called 'odd'"),
    "twice in Arrow": (pa.table([[1], [2]], names=["odd", "odd"]), "are called 'odd'"),
    "complex numbers": (pd.DataFrame({"epoch": [0], "odd": [1j]}), "column odd cannot be read"),
    "long numbers": (
        pd.DataFrame({"odd": np.array([1], dtype=np.longdouble)}),
        "column odd cannot be read",
    ),
    "long decimals": (
        pa.table({"odd": pa.array([1], pa.decimal256(60, 0))}),
        "column odd cannot be read",
    ),
    "intervals": (
        pa.table({"odd": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}),
        "column odd cannot be read",
    ),
    "runs": (
        pa.table({"odd": pa.RunEndEncodedArray.from_arrays([2, 4], [1, 2])}),
        "column odd cannot be read",
    ),
    "index and column": (
        pd.DataFrame({"epoch": [0]}, index=pd.Index([1], name="epoch")),
        "'epoch' is the name of a column and of the index",
    ),
}


@pytest.mark.parametrize("kind", NOT_A_COLUMN)
def test_what_no_file_can_hold_is_refused_by_name(tmp_path, kind):
    """Objects, types that polars does not have, names that are none or two: one word about it."""
    frame, words = NOT_A_COLUMN[kind]
    with pytest.raises(UsageError, match=words):
        bf.export(frame, tmp_path / "out.parquet")


def test_a_frame_keeps_its_types_where_a_value_would_change():
    """Pandas makes floats of integers; only those that are whole numbers become integers again."""
    rows = income(0, 3)
    frame = bf.to_pandas(rows)
    frame[REWARD] = [None, *range(1, rows.height)]
    whole = next(iter(of_frame(frame, None).frames()))
    assert rows.schema == whole.schema
    assert [None, *range(1, rows.height)] == whole[REWARD].to_list()
    frame.loc[1, REWARD] = 3.75
    kept = of_frame(frame, None)
    assert ("rows", pl.Float64) == (kept.table.name, kept.table.schema[REWARD])
    assert [None, 3.75, 2.0] == next(iter(kept.frames()))[REWARD].head(3).to_list()


def test_times_of_pandas_keep_their_nanoseconds(tmp_path):
    """Times become microseconds where that is all there is, and stay nanoseconds elsewhere."""
    times = {"exact": "2026-10-01T00:00:00.000001Z", "fine": "2026-10-01T00:00:00.000000001Z"}
    frame = pd.DataFrame({name: pd.to_datetime([t]).as_unit("ns") for name, t in times.items()})
    bf.export(frame, tmp_path / "out.parquet")
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert [pl.Datetime("us", "UTC"), pl.Datetime("ns", "UTC")] == found.dtypes
    assert frame["fine"][0].value == found["fine"].to_physical()[0]


def test_the_index_of_pandas_is_exported():
    """An index that has a name is a column; one that only counts rows is none."""
    rows = income(0, 3)
    frame = bf.to_pandas(rows)
    indexed = of_frame(frame.set_index(["validator_index", "epoch"]), None)
    assert rows.equals(next(iter(indexed.frames())))
    assert rows.equals(next(iter(of_frame(frame, None).frames())))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (pl.scan_parquet("nowhere.parquet"), "No such file"),
        (pl.LazyFrame({"epoch": [0]}).select("slot"), 'unable to find column "slot"'),
        (
            pl.LazyFrame({"epoch": ["x"], "time": [MAINNET.genesis]}).cast({"epoch": pl.Int64}),
            "conversion from `str`",
        ),
    ],
)
def test_a_lazy_frame_that_fails_is_an_error_of_ours(tmp_path, rows, words):
    """Files that are not there, columns that are not, casts that fail: what polars says of it."""
    with pytest.raises(DatasetError, match=f"the rows cannot be read: {words}"):
        bf.export(rows, tmp_path / "out")


def test_the_chain_is_told_by_the_times_in_any_order():
    """Slots and their times tell the chain, whichever row comes first, and so do epochs."""
    slots = [100, 5, 31]
    for chain in (MAINNET, HOODI):
        rows = pl.DataFrame(
            {
                "epoch": [slot // 32 for slot in slots],
                "slot": slots,
                "time": [chain.time_of("slot", slot) for slot in slots],
            }
        )
        for given in (rows, rows.reverse(), rows.drop("slot"), rows.drop("slot").reverse()):
            sources = (
                of_frame(given, None),
                of_frame(given.lazy(), None),
                of_frames([given], None),
            )
            assert [chain] * 3 == [source.chain for source in sources]


@pytest.mark.parametrize(
    "epoch",
    [[1.5], [-1], ["x"], [None], [2**64 - 1], [[1]]],
)
def test_numbers_that_are_of_no_chain_tell_none(tmp_path, epoch):
    """What is no epoch is exported as it is: that it tells no chain is no error."""
    rows = pl.DataFrame({"epoch": epoch, "time": [datetime(2020, 12, 1, 12, tzinfo=UTC)]})
    assert bf.export(rows, tmp_path / "out").complete
    assert of_frame(rows, None).chain is None
