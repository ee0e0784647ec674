"""A dataset that a manifest names: an export, opened like any other dataset."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl

from beaconframes.dataset import published
from beaconframes.dataset.covering import Damage
from beaconframes.dataset.folder import Dataset
from beaconframes.errors import DatasetError
from beaconframes.schema import type_name
from beaconframes.text import visible

if TYPE_CHECKING:
    from beaconframes.dataset.coverage import Grid
    from beaconframes.dataset.folder import Schema
    from beaconframes.dataset.segments import Segment


class Published(Dataset):
    """An export as a dataset: it can be read and served, and does not change."""

    @cached_property
    def told(self) -> dict[str, Any]:
        """Return what the manifest says; it is read once."""
        return published.read(self.path)

    @property
    def meta(self) -> dict[str, Any]:
        """Return what is known about the data: whose it is, and up to when."""
        facts = dict(self.told["provenance"])
        chain = facts.get("chain")
        if isinstance(chain, dict):
            size = chain["slots_per_epoch"]
            if facts.get("finalized_epoch") is None:
                facts["finalized_epoch"] = self._last_epoch(size)
            if facts.get("latest_epoch") is None:
                facts["latest_epoch"] = facts["finalized_epoch"]
            if facts.get("latest_slot") is None and facts["latest_epoch"] is not None:
                facts["latest_slot"] = (facts["latest_epoch"] + 1) * size - 1
        return {"format_version": published.FORMAT_VERSION, **facts}

    def grids(self) -> dict[str, Grid]:
        """Return nothing: what is complete is told in the manifest's own words."""
        return {}

    def segments(self, table: str | None = None) -> list[Segment]:
        """Return the files of one table, or of all, by path."""
        return [segment for segment in self._named if table in (None, segment.table)]

    @cached_property
    def _named(self) -> list[Segment]:
        return published.segments(self.told, self.path / published.NAME)

    def scan(self, table: str, *, schema: Schema | None = None) -> pl.LazyFrame:
        """Return a table as a LazyFrame over its files; see `Dataset.scan`."""
        named = self.segments(table)
        if not named:
            if schema is not None:
                return pl.LazyFrame(schema=schema)
            raise DatasetError(
                f"{self.path} has no table {table!r}",
                hint=f"It has: {', '.join(self.tables()) or 'none'}",
            )
        form = self.told["tables"][table]["format"]
        if form != "parquet":
            raise DatasetError(
                f"table {table} of {self.path} is in {form}, and only Parquet can be opened",
                hint='Export it with format="parquet", or read it with another library',
            )
        for segment in named:
            self._check(segment)
        paths = [self.path / segment.path for segment in named]
        return pl.scan_parquet(paths, glob=False, hive_partitioning=False)

    def read(self, segment: Segment) -> pl.LazyFrame:
        """Return the rows of one file, or raise a DatasetError if it is not what was written."""
        self._check(segment)
        if reason := published.damage(segment, self.path, thorough=True):
            raise self._damaged(segment, reason)
        return pl.scan_parquet(self.path / segment.path, glob=False, hive_partitioning=False)

    def _check(self, segment: Segment) -> None:
        """Raise a DatasetError unless a file is as large, and has the rows, that are told."""
        reason = published.damage(segment, self.path, thorough=False)
        if reason is None:
            path = self.path / segment.path
            status = path.stat()
            now = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if self._sound.get(segment.path) == now:
                return
            reason = segment.lie(self.path) or self._other_columns(segment)
            self._sound[segment.path] = now
        if reason is not None:
            self._sound.pop(segment.path, None)
            raise self._damaged(segment, reason)

    def _other_columns(self, segment: Segment) -> str | None:
        """Say which columns of a file are others than those that are told."""
        told = {c["name"]: c["type"] for c in self.told["tables"][segment.table]["columns"]}
        try:
            found = pl.read_parquet_schema(self.path / segment.path)
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            return f"cannot be read: {visible(str(error).splitlines()[0], 100)}"
        types = {name: type_name(dtype) for name, dtype in found.items()}
        if types == told:
            return None
        name = next((n for n in [*told, *types] if told.get(n) != types.get(n)), "")
        return f"has {types.get(name, 'no column')} where {name} is {told.get(name, 'nothing')}"

    def writing(self) -> NoReturn:
        """Refuse: what was published does not change."""
        raise DatasetError(
            f"{self.path} is published: it does not change",
            hint="bf.export() adds to it what has become final since",
        )

    def vet(self) -> None:
        """Hold every file against what is told of it, as `Dataset.vet` does."""
        for segment in self.segments():
            if self.told["tables"][segment.table]["format"] == "parquet":
                self._check(segment)

    def verify(self) -> list[Damage]:
        """Read every file and return those that are not what was written; none is good."""
        return [
            Damage(segment.table, segment.path, reason)
            for segment in self.segments()
            if (reason := published.damage(segment, self.path, thorough=True))
        ]

    def _damaged(self, segment: Segment, reason: str) -> DatasetError:
        return DatasetError(
            f"table {segment.table} of {self.path} is damaged: {segment.path} {reason}",
            hint="Restore the file from a copy, or export the dataset anew",
        )

    def _last_epoch(self, slots_per_epoch: int) -> int | None:
        """Return the last epoch that any row is of, as far as keys tell."""
        found: list[int] = []
        for table in self.told["tables"].values():
            ends = {name: last for name, (_, last) in table["ranges"].items()}
            units = (("epoch", 1), ("slot", slots_per_epoch), ("block_slot", slots_per_epoch))
            found += [ends[name] // size for name, size in units if isinstance(ends.get(name), int)]
        return max(found, default=None)
