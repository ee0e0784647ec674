"""Frames of every engine of analysis: how to make them from polars, and how to compare them."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import shutil

import duckdb
import pandas as pd
import polars as pl
import pytest

from beaconframes.frames import to_polars
from beaconframes.pandas_frames import to_pandas

NUMBERS = itertools.count()


@functools.cache
def connection():
    return duckdb.connect()


def in_duckdb(frame):
    """A DuckDB relation, like one of a file."""
    name = f"frame_{next(NUMBERS)}"
    connection().register(name, frame.to_arrow())
    return connection().table(name)


def in_dask(frame):
    import dask
    import dask.dataframe as dd

    # Threads cost more time than these small frames need. A client of a cluster sets its own.
    if dask.config.get("scheduler", None) != "dask.distributed":
        dask.config.set(scheduler="synchronous")
    return dd.from_pandas(to_pandas(frame), npartitions=min(2, max(1, frame.height)))


@functools.cache
def session():
    spark = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    if shutil.which("java") is None:
        pytest.skip("PySpark needs Java")
    builder = spark.SparkSession.builder.master("local[1]")
    quiet = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.log.level": "OFF",
        # Each case runs once: interpreted plans, a fast compiler and a simple collector take less
        # time than generated classes would save.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in quiet.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def in_spark(frame):
    return session().createDataFrame(frame.to_arrow())


KINDS = {
    "polars": lambda frame: frame,
    "polars-lazy": pl.DataFrame.lazy,
    "pandas-numpy": pl.DataFrame.to_pandas,
    "pandas-arrow": to_pandas,
    "pandas-nullable": functools.partial(to_pandas, dtype_backend="numpy_nullable"),
    "duckdb": in_duckdb,
    "dask": in_dask,
}
each_engine = pytest.mark.parametrize(
    "kind",
    [
        *("polars", "duckdb", "dask"),
        # These move into polars, as frames in polars do.
        *(
            pytest.param(kind, marks=pytest.mark.more)
            for kind in ("polars-lazy", "pandas-numpy", "pandas-arrow", "pandas-nullable")
        ),
        # A Spark session takes half a minute to start, and each of its queries seconds.
        pytest.param("pyspark", marks=pytest.mark.long),
    ],
)


def make(kind, frame):
    """The frame in another kind."""
    return in_spark(frame) if kind == "pyspark" else KINDS[kind](frame)


def assert_equal(expected, result, *, like=None):
    """Assert the same rows in the same order: money and text exactly, ratios to 1e-12.

    Dask has no order of rows; then both are sorted by their columns.
    """
    if like is not None:
        assert isinstance(result, type(like))
    found = to_polars(result)
    assert expected.columns == found.columns
    if isinstance(result, pd.DataFrame):
        # pandas has no type for days: they are midnights, and no other times are without a zone.
        days = [name for name, dtype in expected.schema.items() if dtype == pl.Date]
        assert all(str(result[name].dtype) == "datetime64[us]" for name in days)
        found = found.with_columns(pl.col(days).cast(pl.Date))
    assert dict(expected.schema) == dict(found.schema)
    if "dask" in type(result).__module__:
        keys = [name for name, dtype in expected.schema.items() if not dtype.is_float()]
        expected, found = expected.sort(keys), found.sort(keys)
    for name, dtype in expected.schema.items():
        if dtype.is_float():
            for one, other in zip(expected[name], found[name], strict=True):
                assert (one is None) == (other is None), (name, one, other)
                if one is not None:
                    assert math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15), (
                        name,
                        one,
                        other,
                    )
        else:
            assert expected[name].to_list() == found[name].to_list(), name


@contextlib.contextmanager
def in_zone(zone):
    """A DuckDB session whose clock shows another zone than UTC."""
    connection().execute(f"SET TimeZone = '{zone}'")
    try:
        yield
    finally:
        connection().execute("SET TimeZone = 'UTC'")


LIMITS = {
    **{kind: (0, 2**bits - 1) for kind, bits in ((pl.UInt8, 8), (pl.UInt16, 16), (pl.UInt32, 32))},
    **{
        kind: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for kind, bits in ((pl.Int8, 8), (pl.Int32, 32))
    },
    pl.UInt64: (0, 2**64 - 1),
    pl.Int64: (-(2**63), 2**63 - 1),
}
"""The least and the largest number of each type, the smallest first."""


def make_unsigned(frame):
    """Return a frame with each column of whole numbers in 64 bits without a sign, if it can."""
    whole = [column for column in frame if column.dtype == pl.Int64 and (column.min() or 0) >= 0]
    return frame.cast({column.name: pl.UInt64 for column in whole})


def shrink(frame):
    """Return a frame with each column of whole numbers in its smallest type, unsigned if it can."""
    kinds = {}
    for column in frame:
        if column.dtype == pl.Int64:
            least, most = column.min() or 0, column.max() or 0
            kinds[column.name] = next(
                kind for kind, (low, high) in LIMITS.items() if low <= least and most <= high
            )
    return frame.cast(kinds)


def make_categories(frame):
    """Return a frame with all texts as categories."""
    return frame.with_columns(pl.col(pl.String).cast(pl.Categorical))


def compact(frame):
    """Return a frame that takes less memory: small integers, and categories."""
    return make_categories(shrink(frame))
