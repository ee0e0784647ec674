"""Segments: Parquet files that are written once and never changed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset.parquet_footer import find_invalid_claim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

ROW_GROUP = 131_072
WIDE_ROW_GROUP = 2_048  # for rows that are mostly text: reading a few of them unpacks little
WIDE = 8  # more text columns make a row wide
ROWS = 2 * ROW_GROUP  # rows of a full segment, which a writer holds in memory
BYTES = 2**26  # memory of a full segment: with wide rows it has fewer rows

_TABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PATH = re.compile(r"[a-z][a-z0-9_]{0,63}/[0-9]{6,}-[0-9a-f]{12}\.parquet")
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

_LEADING = 2  # first columns whose range the ledger stores


@dataclass(frozen=True)
class Segment:
    """One file of a table, as the ledger lists it.

    ``path`` is relative to the dataset, with forward slashes. ``ranges`` has the lowest and the
    highest value of the first two columns, and of the grid's columns, where these are integers or
    text.
    """

    table: str
    path: str
    rows: int
    bytes: int
    sha256: str
    ranges: Mapping[str, tuple[int | str, int | str]] = field(default_factory=dict)

    def may_contain(self, bounds: Mapping[str, tuple[int, int]]) -> bool:
        """Return whether there may be rows whose columns are within these *bounds*."""
        for name, (low, high) in bounds.items():
            least, greatest = self.ranges.get(name, (low, high))
            known = isinstance(least, int) and isinstance(greatest, int)
            if known and (greatest < low or least > high):  # type: ignore[operator]
                return False
        return True

    def is_within(self, column: str, parts: Iterable[tuple[int, int]]) -> bool:
        """Return whether *column* of all rows is certainly inside one of *parts*."""
        least, greatest = self.ranges.get(column, ("", ""))
        if not isinstance(least, int) or not isinstance(greatest, int):
            return False
        return any(first <= least and greatest <= last for first, last in parts)

    def find_damage(
        self, folder: Path, *, thorough: bool, is_valid: Callable[[str], object] = _PATH.fullmatch
    ) -> str | None:
        """Return what is wrong with the file, None if nothing is; *thorough* reads all of it."""
        if not is_valid(self.path):
            return "is not a valid path of a segment"
        if any((folder / above).is_symlink() for above in PurePosixPath(self.path).parents[:-1]):
            return "is behind a symbolic link"
        try:
            status = (folder / self.path).lstat()
        except FileNotFoundError:
            return "is missing"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        if not stat.S_ISREG(status.st_mode):
            return "is not a regular file"
        if status.st_size != self.bytes:
            return f"has {status.st_size:,} bytes instead of {self.bytes:,}"
        if thorough:
            try:
                if digest(folder / self.path) != self.sha256:
                    return "does not have the content that was written"
            except OSError as error:
                return f"cannot be read: {error.strerror}"
            return self.find_invalid_claim(folder)
        return None

    def find_invalid_claim(self, folder: Path) -> str | None:
        """Return what is wrong with the metadata in a Parquet file, None if nothing is."""
        if not self.path.endswith(".parquet"):
            return None
        return find_invalid_claim(folder / self.path, self.rows)


def is_table_name(name: object) -> bool:
    """Return whether *name* is valid for a table: lower-case words joined by underscores."""
    return isinstance(name, str) and _TABLE.fullmatch(name) is not None


def write_segment(
    folder: Path, table: str, number: int, frame: pl.DataFrame, range_columns: Iterable[str] = ()
) -> Segment:
    """Write a frame as a segment and make it durable; the caller lists it in the ledger.

    The ranges are those of *range_columns*, and of the first two columns.
    """
    home = folder / table
    private = is_private(folder)
    if not home.is_dir():
        home.mkdir(mode=PRIVATE_FOLDER if private else 0o777)
        sync(folder)
    draft = home / f".{number:06d}.tmp"
    texts = sum(dtype == pl.String for dtype in frame.schema.values())
    # One chunk: the bytes of the file must not depend on how the rows were split into frames.
    frame.rechunk().write_parquet(
        draft,
        compression="zstd",
        compression_level=1,  # higher: four times slower, and random hex gets no smaller
        statistics=True,
        row_group_size=WIDE_ROW_GROUP if texts > WIDE else ROW_GROUP,
    )
    if private:
        draft.chmod(PRIVATE_FILE)
    sync(draft)
    sha256 = digest(draft)
    path = f"{table}/{number:06d}-{sha256[:12]}.parquet"
    draft.replace(folder / path)
    sync(home)
    size = (folder / path).stat().st_size
    return Segment(table, path, frame.height, size, sha256, _find_ranges(frame, range_columns))


def read_schema(folder: Path, segments: Iterable[Segment]) -> pl.Schema | None:
    """Return the schema of the first readable one of *segments*, None if there is none."""
    for segment in segments:
        try:
            return pl.Schema(pl.read_parquet_schema(folder / segment.path))
        except (OSError, pl.exceptions.PolarsError):
            # Reading its rows reports the damage.
            continue
    return None


def is_private(folder: Path) -> bool:
    """Return whether only the owner may read *folder*, and so its files."""
    return stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0


def delete_unlisted(folder: Path, listed: Collection[str]) -> None:
    """Delete the files of unfinished commits: drafts, and segments that are not *listed*."""
    for home in folder.iterdir():
        if home.is_symlink() or not home.is_dir() or not is_table_name(home.name):
            continue
        for file in home.iterdir():
            path = f"{home.name}/{file.name}"
            draft = file.name.startswith(".") and file.name.endswith(".tmp")
            if draft or (_PATH.fullmatch(path) and path not in listed):
                file.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Write a file or a folder to the disk with fsync."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # some systems cannot open folders, and need no fsync for them
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _find_ranges(
    frame: pl.DataFrame, range_columns: Iterable[str]
) -> dict[str, tuple[int | str, int | str]]:
    columns = [
        name
        for name in dict.fromkeys([*frame.columns[:_LEADING], *range_columns])
        if frame.schema[name].is_integer() or frame.schema[name] == pl.String
    ]
    ranges = {name: (frame[name].min(), frame[name].max()) for name in columns}
    return {
        name: (low, high)
        for name, (low, high) in ranges.items()
        if isinstance(low, int | str) and isinstance(high, int | str)
    }
