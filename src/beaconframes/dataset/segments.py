"""Segments: Parquet files that are written once, durably, and never changed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset.parquet import lie

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

ROW_GROUP = 131_072
WIDE_ROW_GROUP = 2_048  # of rows that are mostly text, so that a few of them are soon unpacked
WIDE = 8  # columns of text that make a row wide
ROWS = 2 * ROW_GROUP  # of a full segment: what a writer keeps in memory
BYTES = 2**26  # in memory: a segment of wide rows is full earlier

_TABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PATH = re.compile(r"[a-z][a-z0-9_]{0,63}/[0-9]{6,}-[0-9a-f]{12}\.parquet")
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

_RANGED = 2  # leading columns whose range the ledger keeps


@dataclass(frozen=True)
class Segment:
    """One file of a table, as the ledger knows it.

    ``path`` is relative to the dataset, with forward slashes. ``ranges`` has the least and the
    greatest value of the first two columns and of those that coverage goes by, where these are
    integers or text.
    """

    table: str
    path: str
    rows: int
    bytes: int
    sha256: str
    ranges: Mapping[str, tuple[int | str, int | str]] = field(default_factory=dict)

    def may_have(self, within: Mapping[str, tuple[int, int]]) -> bool:
        """Tell whether there may be rows whose columns are *within* these bounds."""
        for name, (low, high) in within.items():
            least, greatest = self.ranges.get(name, (low, high))
            known = isinstance(least, int) and isinstance(greatest, int)
            if known and (greatest < low or least > high):  # type: ignore[operator]
                return False
        return True

    def is_within(self, column: str, parts: Iterable[tuple[int, int]]) -> bool:
        """Tell whether all rows certainly have a *column* in one of *parts*."""
        least, greatest = self.ranges.get(column, ("", ""))
        if not isinstance(least, int) or not isinstance(greatest, int):
            return False
        return any(first <= least and greatest <= last for first, last in parts)

    def damage(
        self, folder: Path, *, thorough: bool, named: Callable[[str], object] = _PATH.fullmatch
    ) -> str | None:
        """Say what is wrong with the file, if anything; *thorough* reads all of it."""
        if not named(self.path):
            return "is no path of a segment"
        if any((folder / above).is_symlink() for above in PurePosixPath(self.path).parents[:-1]):
            return "lies behind a symbolic link"
        try:
            status = (folder / self.path).lstat()
        except FileNotFoundError:
            return "is missing"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        if not stat.S_ISREG(status.st_mode):
            return "is not a plain file"
        if status.st_size != self.bytes:
            return f"has {status.st_size:,} bytes instead of {self.bytes:,}"
        if thorough:
            try:
                if digest(folder / self.path) != self.sha256:
                    return "does not have the content that was written"
            except OSError as error:
                return f"cannot be read: {error.strerror}"
            return self.lie(folder)
        return None

    def lie(self, folder: Path) -> str | None:
        """Say what is wrong with what the file says of itself, if anything."""
        if not self.path.endswith(".parquet"):
            return None
        return lie(folder / self.path, self.rows)


def is_table(name: object) -> bool:
    """Tell whether a table can have this name: lower-case words joined by underscores."""
    return isinstance(name, str) and _TABLE.fullmatch(name) is not None


def write(
    folder: Path, table: str, number: int, frame: pl.DataFrame, ranged: Iterable[str] = ()
) -> Segment:
    """Write a frame as a segment and make it durable; it exists when the ledger names it.

    The ledger is to know the ranges of the columns *ranged*, besides those of the first two.
    """
    home = folder / table
    private = is_private(folder)
    if not home.is_dir():
        home.mkdir(mode=PRIVATE_FOLDER if private else 0o777)
        sync(folder)
    draft = home / f".{number:06d}.tmp"
    texts = sum(dtype == pl.String for dtype in frame.schema.values())
    # One chunk: the cut into pages, and with it every byte, must not depend on how rows came in.
    frame.rechunk().write_parquet(
        draft,
        compression="zstd",
        compression_level=1,  # random hex gets no smaller with more, and takes four times as long
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
    return Segment(table, path, frame.height, size, sha256, _ranges(frame, ranged))


def schema_of(folder: Path, named: Iterable[Segment]) -> pl.Schema | None:
    """Return the columns of a table by the first of its segments that can be read."""
    for segment in named:
        try:
            return pl.Schema(pl.read_parquet_schema(folder / segment.path))
        except (OSError, pl.exceptions.PolarsError):
            # It is found damaged when its rows are asked for.
            continue
    return None


def is_private(folder: Path) -> bool:
    """Tell whether only the owner may look into *folder*; then that goes for its files too."""
    return stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0


def sweep(folder: Path, named: Collection[str]) -> None:
    """Remove what unfinished commits left behind: drafts, and segments that nobody names."""
    for home in folder.iterdir():
        if home.is_symlink() or not home.is_dir() or not is_table(home.name):
            continue
        for file in home.iterdir():
            path = f"{home.name}/{file.name}"
            draft = file.name.startswith(".") and file.name.endswith(".tmp")
            if draft or (_PATH.fullmatch(path) and path not in named):
                file.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Make a file or a folder survive a power cut."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # some systems do not open folders; there the file system keeps order by itself
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ranges(frame: pl.DataFrame, ranged: Iterable[str]) -> dict[str, tuple[int | str, int | str]]:
    leading = [
        name
        for name in dict.fromkeys([*frame.columns[:_RANGED], *ranged])
        if frame.schema[name].is_integer() or frame.schema[name] == pl.String
    ]
    ranges = {name: (frame[name].min(), frame[name].max()) for name in leading}
    return {
        name: (low, high)
        for name, (low, high) in ranges.items()
        if isinstance(low, int | str) and isinstance(high, int | str)
    }
