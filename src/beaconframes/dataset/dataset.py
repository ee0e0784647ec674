"""Datasets: a folder of tables, listed by a ledger (`Dataset`) or a manifest (an export)."""

from __future__ import annotations

import secrets
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import polars as pl

from beaconframes.dataset import (
    coverage,
    hex_columns,
    ledger,
    maintenance,
    merging,
    parquet_footer,
    published,
    segments,
)
from beaconframes.dataset.maintenance import Damage, MaintainedTables
from beaconframes.dataset.segments import Writer
from beaconframes.errors import DatasetBusy, DatasetError, UsageError
from beaconframes.summary import format_bytes, render_html
from beaconframes.text import visible

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from beaconframes.dataset.coverage import Grid, Schema
    from beaconframes.dataset.hex_columns import HexColumn
    from beaconframes.dataset.ledger import Segment

RESTORE = "Restore the file from a copy, or create the dataset again"


@dataclass(frozen=True)
class TableSize:
    """The size of a table."""

    rows: int
    bytes: int
    segments: int


class Dataset(MaintainedTables):
    """A folder of tables; ``Dataset.create`` creates one, ``Dataset.open`` opens one.

    It keeps no file open, so threads and processes can use it at the same time. Readers never
    wait; there is one writer at a time.
    """

    _damage_hint: ClassVar = "Run mend() to remove the damaged rows"

    def __init__(self, path: Path) -> None:
        if not isinstance(path, Path):
            raise UsageError(
                f"Dataset({path!r}) does not open a folder",
                hint=f"Call Dataset.open({path!r}), or Dataset.create(...) for a new one",
            )
        self.path = path
        self._cleaned = False
        self._verified: dict[str, tuple[int, ...]] = {}
        """The state of each file whose content this process has checked or written."""

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r})"

    def _repr_html_(self) -> str | None:
        """Return origin and tables for a notebook; None if they cannot be read."""
        try:
            meta, tables = self.meta, self.tables()
        except DatasetError:
            return None
        lines = [*describe_origin(meta)]
        lines += [
            (name, f"{size.rows:,} rows, {format_bytes(size.bytes)}")
            for name, size in tables.items()
        ]
        return render_html(f"Dataset {self.path}", lines)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, meta: Mapping[str, Any], private: bool = False
    ) -> Dataset:
        """Create an empty dataset in a folder that is new or empty.

        *meta* states where the data is from (service, chain, simulated or real, finalized epoch,
        ...), in values that JSON can hold. With *private* only the owner of the files can read it.
        """
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if private:
                folder.chmod(ledger.PRIVATE_FOLDER)
            if (folder / ledger.NAME).exists():
                raise FileExistsError
            # A process that was killed leaves a draft.
            if any(not path.name.startswith(ledger.DRAFT) for path in folder.iterdir()):
                raise DatasetError(f"{folder} is not empty", hint="Choose another folder")
            ledger.create(folder, meta)
            segments.sync(folder)
        except FileExistsError as error:
            reason = "already a dataset" if folder.is_dir() else "a file"
            raise DatasetError(f"{folder} is {reason}", hint="Choose another folder") from error
        except OSError as error:
            raise DatasetError(
                f"cannot create a dataset in {folder}: {error.strerror or error}",
                hint="Choose a writable folder",
            ) from error
        return cls(folder)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Dataset:
        """Open an existing dataset or export; raise DatasetError for one that cannot be used."""
        folder = Path(path)
        try:
            if (folder / published.NAME).is_file() and not ledger.exists(folder):
                export = PublishedDataset(folder)
                export.segments()
                return export
            ledger.check_format(folder)
        except PermissionError as error:
            raise DatasetError(
                f"{folder} cannot be read: {error.strerror}",
                hint="Check its owner and permissions",
            ) from error
        return cls(folder)

    @classmethod
    def merge(
        cls, folders: Iterable[str | os.PathLike[str]], target: str | os.PathLike[str]
    ) -> Dataset:
        """Create a dataset in *target* from the rows of several ones, such as parts of an index.

        ::

            bf.Dataset.merge(["index-2025", "index-2026"], "index")

        Files are linked, or copied to another disk: rows are not written again. Units that several
        datasets have are merged if their rows are equal. Tables without coverage, such as those of
        the head and those that follow from others, are left out: the next run of `index` adds them.

        Raises
        ------
        DatasetError
            The datasets are of different chains, one is damaged or not final, or they have
            different rows of the same units. *target* is not created.
        """
        path, sources = Path(target), [cls.open(folder) for folder in folders]
        if not sources:
            raise UsageError("merge needs at least one folder")
        for source in sources:
            if not source.grids():
                raise DatasetError(
                    f"{source.path} has no table with coverage",
                    hint="Merge stores, or indexes of a node",
                )
        if path.exists():
            raise DatasetError(f"{path} exists already", hint="Choose another folder")
        meta = merging.merge_meta({source.path: source.meta for source in sources})
        draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        private = any(ledger.is_private(source.path) for source in sources)
        try:
            with cls.create(draft, meta=meta, private=private).writing() as writer:
                for source in sources:
                    merging.add_tables(writer, source.path)
            draft.rename(path)
        except OSError as error:
            raise DatasetError(f"{path} cannot be created: {error.strerror}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        segments.sync(path.parent)
        return cls(path)

    @property
    def meta(self) -> dict[str, Any]:
        """Return the metadata: the origin of the data, and its last epoch."""
        with ledger.read_transaction(self.path) as connection:
            return {"format_version": ledger.FORMAT, **ledger.get_meta(connection)}

    @property
    def has_intact_ledger(self) -> bool:
        """Whether the ledger is intact, which reads all of it; `verify` checks the segments."""
        try:
            with ledger.read_transaction(self.path) as connection:
                coverage.decode_grids(ledger.get_meta(connection, inner=True))
                ledger.get_segments(connection)
                # An empty dataset has metadata, too.
                return bool(ledger.get_meta(connection)) and connection.is_sound()
        except DatasetBusy:
            return True
        except DatasetError:
            return False

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
        """Return the segments of one table, or of all, in the order of writing."""
        with ledger.read_transaction(self.path) as connection:
            return ledger.get_segments(connection, table)

    def schema(self, table: str) -> pl.Schema | None:
        """Return the columns of a table, None if it does not exist or cannot be read."""
        schema = self.stored_schema(table)
        if schema is not None:
            schema.update(dict.fromkeys(self._hex_columns.get(table, {}), pl.String()))
        return schema

    def stored_schema(self, table: str) -> pl.Schema | None:
        """Return the columns of a table as its files have them; see `schema`."""
        return segments.read_schema(self.path, self.segments(table))

    @cached_property
    def _hex_columns(self) -> dict[str, dict[str, HexColumn]]:
        """The columns that the files store as numbers, and readers see as texts; by table."""
        with ledger.read_transaction(self.path) as connection:
            stated = ledger.get_meta(connection, inner=True).get(hex_columns.META)
        return hex_columns.parse(stated) if stated else {}

    def scan(self, table: str, *, schema: Schema | None = None) -> pl.LazyFrame:
        """Return a table as a LazyFrame over its segments, in the order of writing.

        If the table does not exist, return no rows with the given *schema*; without it, raise
        DatasetError. A segment that is missing or has another size raises DatasetError too.
        """
        listed = self.segments(table)
        if not listed and schema is not None:
            return pl.LazyFrame(schema=schema)
        if not listed:
            raise DatasetError(
                f"{self.path} has no table {table!r}",
                hint=f"It has: {', '.join(self.tables()) or 'none'}",
            )
        self._check(listed)
        return self.scan_segments(listed)

    def read(self, segment: Segment) -> pl.LazyFrame:
        """Return the rows of one segment; raise DatasetError if it is damaged."""
        self._check([segment], thorough=True)
        return self.scan_segments([segment])

    def scan_segments(self, listed: Sequence[Segment]) -> pl.LazyFrame:
        """Return the rows of some segments of a table, which `scan` has checked."""
        paths = [self.path / segment.path for segment in listed]
        rows = pl.scan_parquet(paths, glob=False, hive_partitioning=False)
        columns = self._hex_columns.get(listed[0].table)
        return hex_columns.decode(rows, columns) if columns else rows

    def check_files(self) -> None:
        """Raise DatasetError for a file with invalid metadata, before a library reads it.

        This is for datasets from untrusted sources, and fast: it reads the footers and the page
        headers. `verify` reads whole files.
        """
        for segment in self.segments():
            reason = self._find_damage(segment, thorough=False)
            path = self.path / segment.path
            if reason := reason or parquet_footer.find_invalid_claim(path, segment.rows):
                raise self._damage_error(segment, reason, RESTORE)

    def write(
        self,
        table: str,
        frames: Iterable[pl.DataFrame],
        *,
        schema: Schema | None = None,
    ) -> None:
        """Add rows to a table in one commit, streaming: memory holds one segment at a time.

        With *schema* the table is created even without frames. A new table with neither frames nor
        a schema raises UsageError.
        """
        with self.writing() as writer:
            if schema is not None:
                writer.add(table, pl.DataFrame(schema=schema))
            for frame in frames:
                writer.add(table, frame)
            if not writer.has_table(table):
                raise UsageError(
                    f"no frame was given for table {table}",
                    hint="Pass schema= to create an empty table",
                )

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Open a commit, which adds all that the block wrote, or nothing after an exception.

        ::

            with dataset.writing() as writer:
                writer.add("blocks", blocks)
                writer.add("epochs", epochs)
                writer.set_meta({"finalized_epoch": 1574})
        """
        with ledger.write_transaction(self.path) as connection:
            if not self._cleaned:
                maintenance.delete_unlisted(self.path, connection)
                self._cleaned = True
            writer = Writer(self.path, connection)
            yield writer
            writer.flush()
            for segment in writer.written:
                self._verified[segment.path] = file_state(self.path / segment.path)

    def verify(self) -> list[Damage]:
        """Read every segment and return the damaged ones."""
        return [
            Damage(segment.table, segment.path, reason)
            for segment in self.segments()
            if (reason := self._find_damage(segment, thorough=True))
        ]

    def _check_segment(self, segment: Segment) -> None:
        """Raise DatasetError for a damaged segment; read a file only when it has changed."""
        reason = self._find_damage(segment, thorough=False)
        if reason is None:
            now = file_state(self.path / segment.path)
            if self._verified.get(segment.path) == now:
                return
            reason = self._find_damaged_content(segment)
            self._verified[segment.path] = now
        if reason is not None:
            self._verified.pop(segment.path, None)
            raise self._damage_error(segment, reason, self._damage_hint)

    def _check(self, listed: Sequence[Segment], *, thorough: bool = False) -> None:
        """Raise DatasetError for a damaged segment; *thorough* reads all of its file."""
        for segment in listed:
            if reason := self._find_damage(segment, thorough=thorough):
                raise self._damage_error(segment, reason, RESTORE)

    def _find_damage(self, segment: Segment, *, thorough: bool) -> str | None:
        return segments.find_damage(segment, self.path, thorough=thorough)

    def _find_damaged_content(self, segment: Segment) -> str | None:
        return self._find_damage(segment, thorough=True)

    def _damage_error(self, segment: Segment, reason: str, hint: str) -> DatasetError:
        return DatasetError(
            f"table {segment.table} of {self.path} is damaged: {segment.path} {reason}", hint=hint
        )


class PublishedDataset(Dataset):
    """An export as a read-only dataset, which can be read and served."""

    _damage_hint = "Restore the file from a copy, or export the dataset again"

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Return the manifest, which is read once."""
        return published.read_manifest(self.path)

    @cached_property
    def _files(self) -> list[Segment]:
        return published.list_segments(self.manifest, self.path / published.NAME)

    @property
    def meta(self) -> dict[str, Any]:
        """Return the metadata: the origin of the data, and its last epoch."""
        facts = dict(self.manifest["provenance"])
        chain = facts.get("chain")
        if isinstance(chain, dict):
            size = chain["slots_per_epoch"]
            if facts.get("finalized_epoch") is None:
                facts["finalized_epoch"] = published.find_last_epoch(self.manifest, size)
            if facts.get("latest_epoch") is None:
                facts["latest_epoch"] = facts["finalized_epoch"]
            if facts.get("latest_slot") is None and facts["latest_epoch"] is not None:
                facts["latest_slot"] = (facts["latest_epoch"] + 1) * size - 1
        return {"format_version": published.FORMAT_VERSION, **facts}

    @cached_property
    def _hex_columns(self) -> dict[str, dict[str, HexColumn]]:
        return {}

    def grids(self) -> dict[str, Grid]:
        """Return no grids: the manifest lists gaps instead of coverage."""
        return {}

    def segments(self, table: str | None = None) -> list[Segment]:
        """Return the files of one table, or of all, by path."""
        return [segment for segment in self._files if table in (None, segment.table)]

    def _check(self, listed: Sequence[Segment], *, thorough: bool = False) -> None:
        """Raise DatasetError for a table that is not Parquet, and for a damaged file."""
        table = listed[0].table
        form = self.manifest["tables"][table]["format"]
        if form != "parquet":
            raise DatasetError(
                f"table {table} of {self.path} has the format {form}; only Parquet can be opened",
                hint='Export it with format="parquet", or read it with another library',
            )
        for segment in listed:
            self._check_segment(segment)
        super()._check(listed, thorough=thorough)

    def writing(self) -> NoReturn:
        """Raise DatasetError: an export is read-only."""
        raise DatasetError(
            f"{self.path} is an export, which is read-only",
            hint="Use bf.export() to add newly finalized rows to it",
        )

    def check_files(self) -> None:
        """Raise DatasetError for a file that does not match the manifest; see `Dataset`."""
        for segment in self.segments():
            if self.manifest["tables"][segment.table]["format"] == "parquet":
                self._check_segment(segment)

    def _find_damage(self, segment: Segment, *, thorough: bool) -> str | None:
        return published.find_damage(segment, self.path, thorough=thorough)

    def _find_damaged_content(self, segment: Segment) -> str | None:
        path = self.path / segment.path
        reason = parquet_footer.find_invalid_claim(path, segment.rows)
        return reason or published.find_column_difference(self.manifest, segment, self.path)


def describe_origin(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the metadata *meta* states about the origin of the data, each with its name."""
    chain, is_simulated = meta.get("chain"), meta.get("simulated")
    origin = None
    if isinstance(is_simulated, bool):
        origin = "simulated" if is_simulated else "of a real chain"
    facts = {
        "service": meta.get("service"),
        "chain": chain.get("name") if isinstance(chain, dict) else chain,
        "data": origin,
        "latest epoch": meta.get("latest_epoch"),
        "finalized epoch": meta.get("finalized_epoch"),
    }
    return [
        (name, f"{value:,}" if isinstance(value, int) else visible(value))
        for name, value in facts.items()
        if value is not None
    ]


def file_state(path: Path) -> tuple[int, ...]:
    """Return the times, the size and the identity of a file, which change with its content."""
    status = path.stat()
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
