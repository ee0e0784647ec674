"""The store of final rows: its contents, and the operations on it."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.cache import pubkey_index
from beaconframes.client.connection import get_explorer
from beaconframes.dataset import Dataset, ledger
from beaconframes.dataset.coverage import MAX_UNIT, WHOLE_CHAIN, filter_covered
from beaconframes.endpoint.identifiers import is_pubkey, normalize_validators
from beaconframes.errors import ConfigError, DatasetError, UsageError
from beaconframes.intervals import clip_intervals, merge_intervals, subtract_intervals
from beaconframes.setting_rules import parse_size
from beaconframes.time_range import instants

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beaconframes.client.explorer import Explorer
    from beaconframes.dataset import Damage
    from beaconframes.time_range import Moment


class Store:
    """The final rows of earlier loads: one dataset for each service and chain.

    It needs no maintenance. If its folder, ``path``, is deleted, rows are requested again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the store in the folder *path*, which need not exist yet."""
        self.path = Path(path)

    @property
    def dataset(self) -> Dataset | None:
        """Return the dataset of the store; None if nothing was stored yet."""
        return Dataset.open(self.path) if ledger.exists(self.path) else None

    @property
    def size(self) -> int:
        """Return the size on disk in bytes."""
        size = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                # Another process may remove a file, such as the write-ahead log.
                with suppress(OSError):
                    size += Path(folder, name).stat().st_size
        return size

    def tables(self) -> pl.DataFrame:
        """Return the stored tables, one row per table.

        ``subjects`` is the number of validators (1 for a table of the whole chain). ``first`` and
        ``last`` are the ends of the stored range, in epochs, slots or days (``unit``).
        """
        schema = {
            "table": pl.String, "rows": pl.Int64, "bytes": pl.Int64, "segments": pl.Int64,
            "subjects": pl.Int64, "unit": pl.String, "first": pl.Int64, "last": pl.Int64,
        }  # fmt: skip
        dataset = self.dataset
        if dataset is None:
            return pl.DataFrame(schema=schema)
        sizes, rows = dataset.tables(), []
        for table, grid in dataset.grids().items():
            covered = dataset.coverage(table)
            ends = [end for parts in covered.values() for end in (parts[0][0], parts[-1][1])]
            size = sizes.get(table)
            cells = (size.rows, size.bytes, size.segments) if size else (0, 0, 0)
            span = (min(ends), max(ends)) if ends else (None, None)
            rows.append((table, *cells, len(covered), grid.unit, *span))
        return pl.DataFrame(rows, schema=schema, orient="row").sort("table")

    def coverage(
        self, table: str, subjects: int | str | Iterable[int | str] | None = None
    ) -> pl.DataFrame:
        """Return the complete parts of *table*, one row per subject and interval of units."""
        dataset = self.dataset
        names = None if subjects is None else normalize_validators(subjects)
        covered = {} if dataset is None else dataset.coverage(table, names)
        intervals = [(subject, *ends) for subject, parts in covered.items() for ends in parts]
        schema = {"subject": pl.String, "first": pl.Int64, "last": pl.Int64}
        return pl.DataFrame(intervals, schema=schema, orient="row")

    def verify(self) -> list[Damage]:
        """Read all files, and return the damaged ones."""
        dataset = self.dataset
        return [] if dataset is None else dataset.verify()

    def mend(self) -> list[Damage]:
        """Remove the rows of damaged files, so that they are requested again; return the files."""
        dataset = self.dataset
        return [] if dataset is None else dataset.mend()

    def check(self) -> pl.DataFrame:
        """Compare the stored proposals with the stored slots of their epochs; send no request.

        ::

            bf.load_epoch_slots(since=300_000, until=300_224)
            bf.store().check()

        A service may leave out proposals, but no slot of a final epoch. There is one row per
        validator and epoch whose proposals differ from `load_epoch_slots`, sorted by validator.
        Epochs whose slots are not stored follow, one row per interval. ``prune`` deletes proposals,
        so that the next load requests them.
        """
        dataset = self.dataset
        found = None if dataset is None else compare_proposals(dataset)
        return pl.DataFrame(schema=CHECK_SCHEMA) if found is None else found

    def compact(self) -> None:
        """Merge the small files of many loads into a few large ones, sorted by key."""
        dataset = self.dataset
        if dataset is not None:
            dataset.compact()

    def prune(
        self,
        table: str | None = None,
        subjects: int | str | Iterable[int | str] | None = None,
        *,
        first: int = 0,
        last: int = MAX_UNIT,
        older_than: Moment | None = None,
        to: int | str | None = None,
    ) -> None:
        """Delete a table, or some of its validators (*subjects*) and units.

        Without *table*, this is for all tables, or for those with validators.

        ::

            bf.store().prune("attestations_slim", last=300_000)
            bf.store().prune(older_than="90d")      # what was stored before that time
            bf.store().prune(to="2GB")              # what was stored first, until this size

        *older_than* and *to* remove whole files, of any table. Files of the store are deleted an
        hour later, because other processes may still read them.
        """
        dataset = self.dataset
        if older_than is not None or to is not None:
            if table is not None or subjects is not None or (first, last) != (0, MAX_UNIT):
                raise UsageError(
                    "older_than= and to= exclude all other arguments", hint="Call prune twice"
                )
            before = None
            if older_than is not None:
                since, _ = instants("older_than", older_than, lambda: datetime.now(UTC))
                before = since.timestamp()
            size = parse_size(to)
            if to is not None and size is None:
                raise UsageError(
                    f"to={to!r} is not a size", hint='Give bytes, or a size such as "2GB"'
                )
            if dataset is not None:
                dataset.prune_oldest(to=size, before=before)
            return
        if first > last:
            raise UsageError(f"first={first} is after last={last}", hint="Swap them")
        if dataset is None:
            return
        texts = None if subjects is None else normalize_validators(subjects)
        if texts and table is not None:
            texts = resolve_subjects(dataset, table, texts)
        for name in [table] if table is not None else list(dataset.grids()):
            dataset.prune(name, texts, first=first, last=last)

    def __repr__(self) -> str:
        """Return the path, the size and the tables, or why they cannot be read."""
        try:
            tables = self.tables()
        except DatasetError as error:
            return f"Store({str(self.path)!r}: {error})"
        rows = int(tables["rows"].sum())
        head = f"Store({str(self.path)!r}: {rows:,} rows, {self.size / 1e6:,.1f} MB)"
        lines = [
            f"  {t['table']:<28}{t['rows']:>14,} rows"
            + (f"  {t['unit']} {t['first']} to {t['last']}" if t["first"] is not None else "")
            + (f", {t['subjects']:,} subjects" if t["subjects"] > 1 else "")
            for t in tables.iter_rows(named=True)
        ]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str | None:
        """Return the tables for a notebook; None if they cannot be read, which shows the text."""
        try:
            return self.tables()._repr_html_()
        except DatasetError:
            return None


def resolve_subjects(dataset: Dataset, table: str, texts: list[str]) -> list[str]:
    """Return validators as *table* names them: by index, or by public key."""
    grid = dataset.grids().get(table)
    if grid is not None and grid.subject is None:
        raise UsageError(f"{table} has no validators", hint="Leave the validators out")
    if grid is None or grid.subject == "pubkey" or not any(map(is_pubkey, texts)):
        return texts
    rows = dataset.scan(pubkey_index.TABLE, schema=pubkey_index.SCHEMA).collect()
    index_by_pubkey = dict(rows.select("pubkey", "validator_index").iter_rows())
    for text in texts:
        if is_pubkey(text) and text not in index_by_pubkey:
            raise UsageError(
                f"the store does not have the index of {text}", hint="Give the index instead"
            )
    return [str(index_by_pubkey.get(text, text)) for text in texts]


CHECK_SCHEMA = pl.Schema(
    {
        "finding": pl.String,
        "validator_index": pl.Int64,
        "first_epoch": pl.Int64,
        "last_epoch": pl.Int64,
    }
)
COMPARED = pl.Schema(
    {
        "proposer_index": pl.Int64,
        "epoch": pl.Int64,
        "slot": pl.Int64,
        "block_root": pl.String,
        "status": pl.String,
    }
)
"""The columns of a block by which stored proposals are compared with stored slots."""


def compare_proposals(dataset: Dataset) -> pl.DataFrame | None:
    """Return the rows of `Store.check`; None if no proposals are stored."""
    grid = dataset.grids().get("proposals")
    if grid is None:
        return None
    covered = dataset.coverage("proposals")
    covered_slots = dataset.coverage("epoch_slots").get(WHOLE_CHAIN, ())
    checked = {
        subject: tuple(part for ends in covered_slots for part in clip_intervals(parts, *ends))
        for subject, parts in covered.items()
    }
    proposals, blocks = (
        filter_covered(
            dataset.scan(table, schema=COMPARED).select(COMPARED.names()).collect(), grid, checked
        )
        for table in ("proposals", "epoch_slots")
    )
    differing = pl.concat(
        one.join(other, on=COMPARED.names(), how="anti", nulls_equal=True)
        for one, other in ((proposals, blocks), (blocks, proposals))
    )
    cells = differing.select("proposer_index", "epoch").unique().sort("proposer_index", "epoch")
    rows = [("differs from epoch_slots", index, epoch, epoch) for index, epoch in cells.rows()]
    stored = merge_intervals(part for parts in covered.values() for part in parts)
    not_checked = subtract_intervals(stored, covered_slots)
    rows += [("epoch_slots not stored", None, *part) for part in not_checked]
    return pl.DataFrame(rows, schema=CHECK_SCHEMA, orient="row")


def store(explorer: Explorer | None = None) -> Store:
    """Return the store of *explorer*, or of the connected one.

    ::

        bf.store()                # path, size and tables
        bf.store().tables()       # the tables as a frame
        bf.store().prune("attestations_slim", last=300_000)
    """
    used_explorer = get_explorer(explorer, needs_key=False)
    path = used_explorer.store_path
    if path is None:
        raise ConfigError(
            "the explorer has no store",
            hint="Connect with store=True, or with the folder of the store: store=...",
        )
    return Store(path)
