"""The dataset: one folder, its tables, and what may be asked of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from beaconframes.dataset import ledger, maintenance, published, segments
from beaconframes.dataset.covering import Covering, Damage
from beaconframes.dataset.writing import Writer
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from beaconframes.dataset.segments import Segment

Schema: TypeAlias = "Mapping[str, pl.DataType | type[pl.DataType]]"


@dataclass(frozen=True)
class TableSize:
    """How much a table holds."""

    rows: int
    bytes: int
    segments: int


class Dataset(Covering):
    """A folder of tables at rest; made by ``Dataset.create``, found again by ``Dataset.open``.

    Nothing is kept open, so it can be used from several threads and processes at once: readers
    never wait, writers come one after the other.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._swept = False
        self._sound: dict[str, tuple[int, ...]] = {}

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r})"

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, meta: Mapping[str, Any], private: bool = False
    ) -> Dataset:
        """Create an empty dataset in a folder that is new or empty.

        *meta* says what the data is (service, chain, simulated or real, finalized epoch, ...);
        its values are what JSON can hold. With *private* nobody else on the machine may read it.
        """
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if private:
                folder.chmod(segments.PRIVATE_FOLDER)
            if (folder / ledger.NAME).exists():
                raise DatasetError(f"{folder} is a dataset already", hint="Choose another folder")
            if any(folder.iterdir()):
                raise DatasetError(f"{folder} is not empty", hint="Choose another folder")
            ledger.create(folder, meta)
            segments.sync(folder)
        except FileExistsError as error:
            raise DatasetError(f"{folder} is a file", hint="Choose another folder") from error
        except OSError as error:
            raise DatasetError(
                f"no dataset can be made in {folder}: {error.strerror or error}",
                hint="Choose a folder that can be written to",
            ) from error
        return cls(folder)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Dataset:
        """Open a dataset that exists, an export too; a DatasetError says why it cannot be used."""
        folder = Path(path)
        if (folder / published.NAME).is_file() and not (folder / ledger.NAME).exists():
            from beaconframes.dataset.manifested import Published

            export = Published(folder)
            export.segments()
            return export
        ledger.check(folder)
        return cls(folder)

    @property
    def meta(self) -> dict[str, Any]:
        """Return what is known about the data: whose it is, and up to when."""
        with ledger.reading(self.path) as connection:
            return {"format_version": ledger.FORMAT, **ledger.get_meta(connection)}

    @property
    def is_sound(self) -> bool:
        """Whether the ledger holds together; `verify` tells that of the segments."""
        return ledger.is_sound(self.path)

    def tables(self) -> dict[str, TableSize]:
        """Return rows, bytes and number of segments of each table, by name."""
        sizes: dict[str, TableSize] = {}
        for segment in sorted(self.segments(), key=lambda segment: segment.table):
            size = sizes.get(segment.table, TableSize(0, 0, 0))
            sizes[segment.table] = TableSize(
                size.rows + segment.rows, size.bytes + segment.bytes, size.segments + 1
            )
        return sizes

    def segments(self, table: str | None = None) -> list[Segment]:
        """Return the segments of one table, or of all, in the order in which they were written."""
        with ledger.reading(self.path) as connection:
            return ledger.get_segments(connection, table)

    def schema(self, table: str) -> pl.Schema | None:
        """Return the columns of a table; None if it is not there, or nothing of it can be read."""
        return segments.schema_of(self.path, self.segments(table))

    def scan(self, table: str, *, schema: Schema | None = None) -> pl.LazyFrame:
        """Return a table as a LazyFrame over its segments, in the order of writing.

        A table that is not there has no rows when *schema* says which columns it would have, and
        is a DatasetError otherwise. So is a segment that is missing or has changed its size.
        """
        named = self.segments(table)
        if not named:
            if schema is not None:
                return pl.LazyFrame(schema=schema)
            raise DatasetError(
                f"{self.path} has no table {table!r}",
                hint=f"It has: {', '.join(self.tables()) or 'none'}",
            )
        for segment in named:
            if reason := segment.damage(self.path, thorough=False):
                raise DatasetError(
                    f"table {table} of {self.path} is damaged: {segment.path} {reason}",
                    hint="Restore the file from a copy, or make the dataset anew",
                )
        return pl.scan_parquet([self.path / segment.path for segment in named], glob=False)

    def read(self, segment: Segment) -> pl.LazyFrame:
        """Return the rows of one segment, or raise a DatasetError if it is not what was written."""
        return maintenance.scan(self.path, [segment])

    def vet(self) -> None:
        """Hold every file against what it says of itself, before a reader takes its word.

        Raises a DatasetError for one that claims rows, pages or places that are not there. It is
        quick, and for datasets of others; `verify` reads all that was written.
        """
        for segment in self.segments():
            if reason := segment.damage(self.path, thorough=False) or segment.lie(self.path):
                raise DatasetError(
                    f"table {segment.table} of {self.path} is damaged: {segment.path} {reason}",
                    hint="Restore the file from a copy, or make the dataset anew",
                )

    def write(
        self,
        table: str,
        frames: Iterable[pl.DataFrame],
        *,
        schema: Schema | None = None,
    ) -> None:
        """Add rows to a table in one commit, streaming: memory holds one segment at a time.

        *schema* makes a table with these columns also when there are no frames. A new table that
        has neither frames nor a schema is a UsageError.
        """
        with self.writing() as writer:
            if schema is not None:
                writer.add(table, pl.DataFrame(schema=schema))
            for frame in frames:
                writer.add(table, frame)
            if not writer.has(table):
                raise UsageError(
                    f"no frame was given for table {table}",
                    hint="Give schema= to make a table without rows",
                )

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Open a commit: everything added in the block exists at its end, or none of it does.

        ::

            with dataset.writing() as writer:
                writer.add("blocks", blocks)
                writer.add("epochs", epochs)
                writer.describe({"finalized_epoch": 1574})
        """
        with ledger.writing(self.path) as connection:
            if not self._swept:
                named = {segment.path for segment in ledger.get_segments(connection)}
                segments.sweep(self.path, named | maintenance.still_read(connection))
                self._swept = True
            writer = Writer(self.path, connection)
            yield writer
            writer.finish()

    def verify(self) -> list[Damage]:
        """Read every segment and return those that are not what was written; none is good."""
        return [
            Damage(segment.table, segment.path, reason)
            for segment in self.segments()
            if (reason := segment.damage(self.path, thorough=True))
        ]
