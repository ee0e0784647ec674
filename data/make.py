"""Make the sample dataset: ``python data/make.py``, or ``make sample``.

It simulates the chain and writes it again in the smallest files. The same version of beaconframes
and of its libraries makes the same files, and a table whose rows are the same keeps its bytes.

The file ``fingerprint.txt`` of the sample has a hash of what determines its rows. While it is
that of the present sources, nothing is written.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa
from pyarrow import parquet

from beaconframes.dataset import Dataset
from beaconframes.dataset.segments import ROW_GROUP, digest
from beaconframes.simulator import SAMPLE, fingerprint_rows, simulate
from beaconframes.simulator.drawn_hex import state_columns

TARGET = Path(__file__).with_name("sample")
FINGERPRINT = TARGET / "fingerprint.txt"

LEVEL, TRIAL_LEVEL = 19, 9
TRIAL_ROWS = 131_072
PAGE_BYTES = 2**20
DICTIONARY = "DICTIONARY"
NUMBER_ENCODINGS = (DICTIONARY, "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
TEXT_ENCODINGS = (DICTIONARY, "PLAIN", "DELTA_BYTE_ARRAY")
OTHER_ENCODINGS = (DICTIONARY, "PLAIN")


def make_sample(target: Path) -> None:
    """Simulate the sample chain, and write it to the folder *target*, which must not exist."""
    with tempfile.TemporaryDirectory() as folder:
        chain = simulate(Path(folder, "chain"), **SAMPLE)
        facts = {name: value for name, value in chain.meta.items() if name != "format_version"}
        merged = Dataset.create(Path(folder, "merged"), meta={})
        with merged.writing() as writer:
            for table in chain.tables():
                # As stored: hex columns are numbers.
                files = [chain.path / segment.path for segment in chain.segments(table)]
                writer.add(table, pl.read_parquet(files, glob=False))
        sample = Dataset.create(target, meta=facts | state_columns(SAMPLE["seed"]))
        copy_smallest(merged, sample)


def copy_smallest(dataset: Dataset, copy: Dataset) -> None:
    """Add the tables of a dataset to its *copy*, in files as small as possible."""
    with tempfile.TemporaryDirectory() as folder, copy.writing() as writer:
        file = Path(folder, "smallest.parquet")
        for segment in dataset.segments():
            source = dataset.path / segment.path
            if segment.rows:  # pyarrow writes no pages for no rows
                write_smallest(pl.read_parquet(source, glob=False), file)
                source = file
            size, sha256 = source.stat().st_size, digest(source)
            writer.add_file(replace(segment, bytes=size, sha256=sha256), source)
            file.unlink(missing_ok=True)


def write_smallest(frame: pl.DataFrame, file: Path) -> None:
    """Write a frame with the encoding of each column that makes its first rows smallest.

    The same rows and libraries give the same bytes. It takes ten times as long as a usual segment.
    """
    rows = frame.rechunk().to_arrow().combine_chunks()
    encodings = {
        name: find_smallest(rows.select([name]).slice(0, TRIAL_ROWS), list_encodings(dtype))
        for name, dtype in frame.schema.items()
    }
    write(rows, file, encodings, LEVEL, ROW_GROUP)


def list_encodings(dtype: pl.DataType) -> tuple[str, ...]:
    """Return the encodings that may be smallest for a column."""
    if dtype.is_integer() or dtype.is_temporal():
        return NUMBER_ENCODINGS
    return TEXT_ENCODINGS if dtype == pl.String else OTHER_ENCODINGS


def find_smallest(column: pa.Table, encodings: tuple[str, ...]) -> str:
    """Return the encoding with which a table of one column is smallest."""

    def measure(encoding: str) -> int:
        file = io.BytesIO()
        write(column, file, {column.column_names[0]: encoding}, TRIAL_LEVEL, TRIAL_ROWS)
        return len(file.getvalue())

    return min(encodings, key=measure)


def write(
    rows: pa.Table,
    file: Path | io.BytesIO,
    encodings: dict[str, str],
    level: int,
    row_group_size: int,
) -> None:
    """Write a table with an encoding for each column."""
    others = {name: chosen for name, chosen in encodings.items() if chosen not in OTHER_ENCODINGS}
    parquet.write_table(
        rows,
        file,
        compression="zstd",
        compression_level=level,
        row_group_size=row_group_size,
        data_page_size=PAGE_BYTES,
        dictionary_pagesize_limit=PAGE_BYTES,
        use_dictionary=[name for name, chosen in encodings.items() if chosen == DICTIONARY],
        column_encoding=others or None,
        store_schema=False,
    )


def is_current() -> bool:
    """Return whether the sample has the rows that the present sources make."""
    return FINGERPRINT.is_file() and FINGERPRINT.read_text("utf-8").strip() == fingerprint_rows()


if __name__ == "__main__":
    if is_current():
        sys.exit()
    shutil.rmtree(TARGET, ignore_errors=True)
    make_sample(TARGET)
    FINGERPRINT.write_text(f"{fingerprint_rows()}\n", "utf-8")
    size = sum(file.stat().st_size for file in TARGET.rglob("*.parquet"))
    sys.stdout.write(f"{TARGET}: {size / 1e6:.1f} MB\n")
