"""The memory of an export does not grow with the number of rows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ..support.peak_memory import READ_PEAK, needs_peak

EXPORT = f"""
import sys
import polars as pl
from polars.io.plugins import register_io_source
import beaconframes as bf

def page(first, size=100_000):
    epoch = pl.int_range(first, first + size, eager=True) // 1000
    return pl.select(
        validator_index=pl.int_range(size) % 1000, epoch=epoch,
        time=pl.datetime(2026, 1, 1, time_zone="UTC") + pl.duration(seconds=384) * epoch,
        reward_gwei=pl.int_range(first, first + size), fee_wei=pl.lit(None, pl.Decimal(28, 0)),
    )

def pages(columns, *_):
    for first in range(0, int(sys.argv[1]), 100_000):
        yield page(first).select(columns or pl.all())

rows = register_io_source(pages, schema=page(0).schema)
made = bf.export(rows, sys.argv[2], name="rewards")
assert made.rows == int(sys.argv[1])
print({READ_PEAK})
"""


@pytest.mark.long
@needs_peak
def test_memory_is_bounded(tmp_path):
    """K19: an export of ten million rows in pages needs at most 400 MB."""
    done = subprocess.run(
        [sys.executable, "-c", EXPORT, "10000000", str(tmp_path / "out")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert int(done.stdout) <= 400
