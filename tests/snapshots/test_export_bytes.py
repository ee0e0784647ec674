"""The bytes of small exports, compared with the SHA-256 of each data file in export_bytes.json.

One frame is exported as a dataset of Parquet partitions and as one file of each format. Left out
are ``history.jsonl``, which holds the clock, and the manifest and the documents of a dataset, which
hold the version of this package and sentences that may be reworded.

A Parquet file names the version of Polars, and compressed bytes depend on the compressor. So the
snapshot names the versions that wrote it, and files that depend on a version are skipped with
another one. After an intended change, write the file again and read its difference::

    UPDATE_SNAPSHOTS=1 pytest -n 0 tests/snapshots/test_export_bytes.py
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pytest

import beaconframes as bf

SNAPSHOT = Path(__file__).with_name("export_bytes.json")
UPDATE = bool(os.environ.get("UPDATE_SNAPSHOTS"))
WRITERS = {"parquet": ["polars"], "arrow": ["polars"], "xlsx": ["xlsxwriter", "zlib"]}
TARGETS = ["days", "validators", "whole", "rows.parquet", "rows.arrow", "rows.csv", "rows.jsonl"]
TARGETS += ["rows.xlsx"]
FIRST = datetime(2026, 10, 1, 23, 53, 35, tzinfo=UTC)


def rows():
    """Return eight rows with columns of all types: two days, extremes, nulls, text to escape."""
    return pl.DataFrame(
        {
            "validator_index": [1, 2, 999, 1000] * 2,
            "epoch": [n // 4 + 400_000 for n in range(8)],
            "time": [FIRST + timedelta(seconds=384 * (n // 4 + 1)) for n in range(8)],
            "reward_gwei": [2**53 + 1, -(2**63), 2**63 - 1, 0, None, 1, 2, 3],
            "fee_wei": [Decimal(n) for n in (10**28 - 1, 10**18, 0, 1, 2, 3)] + [None, Decimal(4)],
            "graffiti": ["=1+1", 'a,b\n"q"', "\t=x☃", "", None, "'quoted", "🎲", " -cmd"],
            "slashed": [True, False, None, True, False, False, True, None],
            "rate": [0.1, 1e300, None, -0.0, 1 / 3, 5e-324, 1.0, 2.0],
            "committee": [[1, 2], [], None, [3], [4], [5], [6], [7]],
        },
        schema={
            "validator_index": pl.Int64,
            "epoch": pl.Int64,
            "time": pl.Datetime("us", "UTC"),
            "reward_gwei": pl.Int64,
            "fee_wei": pl.Decimal(28, 0),
            "graffiti": pl.String,
            "slashed": pl.Boolean,
            "rate": pl.Float64,
            "committee": pl.List(pl.Int64),
        },
    )


def export(target, folder):
    """Return the SHA-256 of every data file of an export of the rows."""
    divisions = {"days": "day", "validators": "validators", "whole": None}
    options = {"by": divisions[target]} if target in divisions else {}
    bf.export(rows(), folder / target, table="snapshot", **options)
    pattern = "snapshot/**/*.parquet" if target in divisions else "rows.*"
    root = folder / target if target in divisions else folder
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.glob(pattern))
    }


def writers_of(target):
    """Return the versions that the bytes of a target depend on."""
    names = WRITERS.get(target.partition(".")[2] or "parquet", [])
    return {name: zlib.ZLIB_RUNTIME_VERSION if name == "zlib" else version(name) for name in names}


def read_snapshot():
    """Return the writer versions and the file hashes of each target."""
    return json.loads(SNAPSHOT.read_text()) if SNAPSHOT.exists() else {}


@pytest.mark.parametrize("target", TARGETS)
def test_an_export_has_the_bytes_of_the_snapshot(target, tmp_path):
    """The files are those of the snapshot, byte for byte."""
    found = {"made_with": writers_of(target), "sha256": export(target, tmp_path)}
    if UPDATE:
        SNAPSHOT.write_text(json.dumps(read_snapshot() | {target: found}, indent=1) + "\n")
    expected = read_snapshot()[target]
    if expected["made_with"] != found["made_with"]:
        pytest.skip(f"written with {expected['made_with']}, and here is {found['made_with']}")

    assert expected["sha256"] == found["sha256"]
