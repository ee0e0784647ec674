"""The store as users see it: what it holds, and how to look after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.client.connection import current
from beaconframes.dataset import Dataset
from beaconframes.dataset.coverage import MAX_UNIT
from beaconframes.errors import ConfigError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from beaconframes.client.explorer import Explorer
    from beaconframes.dataset import Damage


class Store:
    """What was loaded and is final: one dataset for each service and chain.

    It needs no care. Deleting its folder, ``path``, costs nothing but the requests to load again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Look at the store in the folder *path*; it need not be there yet."""
        self.path = Path(path)

    @property
    def dataset(self) -> Dataset | None:
        """Return the dataset that the store is; None while nothing was kept."""
        return Dataset.open(self.path) if (self.path / "ledger.sqlite").exists() else None

    @property
    def size(self) -> int:
        """Return the bytes that it takes on disk."""
        files = self.path.rglob("*") if self.path.exists() else ()
        return sum(file.stat().st_size for file in files if file.is_file())

    def tables(self) -> pl.DataFrame:
        """Return what there is, one row per table.

        ``subjects`` counts the validators that it is of (1 for what is of the chain), and
        ``first`` and ``last`` are the ends of what is covered, in epochs, slots or days (``unit``).
        """
        schema = {
            "table": pl.String, "rows": pl.Int64, "bytes": pl.Int64, "segments": pl.Int64,
            "subjects": pl.Int64, "unit": pl.String, "first": pl.Int64, "last": pl.Int64,
        }  # fmt: skip
        dataset = self.dataset
        if dataset is None:
            return pl.DataFrame(schema=schema)
        sizes, found = dataset.tables(), []
        for table, grid in dataset.grids().items():
            told = dataset.coverage(table)
            ends = [end for parts in told.values() for end in (parts[0][0], parts[-1][1])]
            size = sizes.get(table)
            cells = (size.rows, size.bytes, size.segments) if size else (0, 0, 0)
            span = (min(ends), max(ends)) if ends else (None, None)
            found.append((table, *cells, len(told), grid.unit, *span))
        return pl.DataFrame(found, schema=schema, orient="row").sort("table")

    def coverage(self, table: str, subjects: Iterable[int | str] | None = None) -> pl.DataFrame:
        """Return what of *table* is there in full, one row per subject and run of units."""
        dataset = self.dataset
        names = None if subjects is None else [str(subject) for subject in subjects]
        told = {} if dataset is None else dataset.coverage(table, names)
        runs = [(subject, *run) for subject, parts in told.items() for run in parts]
        schema = {"subject": pl.String, "first": pl.Int64, "last": pl.Int64}
        return pl.DataFrame(runs, schema=schema, orient="row")

    def verify(self) -> list[Damage]:
        """Read everything, and return the files that are not what was written."""
        dataset = self.dataset
        return [] if dataset is None else dataset.verify()

    def mend(self) -> list[Damage]:
        """Forget what damaged files held, so that loaders ask for it again; return the files."""
        dataset = self.dataset
        return [] if dataset is None else dataset.mend()

    def compact(self) -> None:
        """Make the many small files of many loads into few large ones, sorted by key."""
        dataset = self.dataset
        if dataset is not None:
            dataset.compact()

    def prune(
        self,
        table: str | None = None,
        subjects: Iterable[int | str] | None = None,
        *,
        first: int = 0,
        last: int = MAX_UNIT,
    ) -> None:
        """Forget a table, or some of its *subjects* and units, or with no table everything."""
        dataset = self.dataset
        if dataset is None:
            return
        names = None if subjects is None else [str(subject) for subject in subjects]
        for each in [table] if table is not None else list(dataset.grids()):
            dataset.prune(each, names, first=first, last=last)

    def __repr__(self) -> str:
        """Return where it is, how large, and what there is."""
        tables = self.tables()
        rows = int(tables["rows"].sum())
        head = f"Store({str(self.path)!r}: {rows:,} rows, {self.size / 1e6:,.1f} MB)"
        lines = [
            f"  {t['table']:<28}{t['rows']:>14,} rows  {t['unit']} {t['first']} to {t['last']}"
            + (f", {t['subjects']:,} subjects" if t["subjects"] > 1 else "")
            for t in tables.iter_rows(named=True)
        ]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        return self.tables()._repr_html_()


def store(explorer: Explorer | None = None) -> Store:
    """Return the store of *explorer*, or of the connected one.

    ::

        bf.store()                # where it is, how large, what there is
        bf.store().tables()       # the same as a frame
        bf.store().prune("attestations_slim", last=300_000)
    """
    asked = explorer if explorer is not None else current()
    if asked.local_store is None:
        raise ConfigError(
            f"{asked!r} keeps nothing",
            hint="Connect with store=True, or with the folder that it is to keep things in",
        )
    return Store(asked.local_store.path)
