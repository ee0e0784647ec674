"""The local store: the dataset with the final rows of one service. Its errors stop no load."""

from __future__ import annotations

import logging
import re
import secrets
import shutil
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

import platformdirs
import polars as pl

from beaconframes.cache import empty_responses
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Dataset, Selection, ledger
from beaconframes.dataset.eviction import count_bytes
from beaconframes.endpoint.chain_metadata import describe_chain, parse_chain
from beaconframes.errors import DatasetBusy, DatasetError, StoreUnavailable, find_caller_level

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Covered, Grid
    from beaconframes.dataset.coverage import PruneMark
    from beaconframes.endpoint.intervals import Intervals

log = logging.getLogger("beaconframes.store")

CHOOSE_FOLDER = "Choose another folder: store=..."

COARSEST_SHARE = 8
"""With a limit, a table is compacted only if it is at most this part of the limit."""

MAX_SMALL_SEGMENTS = 16
"""Compact a table that has more segments than this."""

P = ParamSpec("P")
T = TypeVar("T")


def store_folder(root: Path | None, url: str, chain: Chain) -> Path:
    """Return the folder for rows of *chain* from the service at *url*.

    A *root* that is a dataset is returned as it is.
    """
    if root is not None and (root / ledger.NAME).exists():
        return root
    folder = platformdirs.user_data_path("beaconframes") / "store" if root is None else root
    address = urlsplit(url)
    readable = re.sub(r"[^a-z0-9.]+", "-", f"{address.netloc}{address.path}-{chain.name}".lower())
    identity = f"{url.lower()} {sorted((n, str(v)) for n, v in vars(chain).items())}"
    return folder / f"{readable[:60]}-{blake2b(identity.encode(), digest_size=4).hexdigest()}"


def find_stored_chain(root: Path | None, url: str) -> Chain | None:
    """Return the chain of the rows from *url* in the folder *root*, or of *root* as a dataset."""
    any_chain = store_folder(root, url, MAINNET)
    name = any_chain.name.rpartition(MAINNET.name)[0]
    folders = [any_chain] if any_chain == root else sorted(any_chain.parent.glob(f"{name}*"))
    for folder in folders:
        with suppress(DatasetError, KeyError, TypeError, ValueError):
            meta = Dataset.open(folder).meta
            if folder == root or str(meta["service"]).lower() == url.lower():
                return parse_chain(meta["chain"])
    return None


@dataclass
class StoreUse:
    """The use of the store by one load."""

    started_at: int
    removals: tuple[int, PruneMark | None]
    """`LocalStore.removals` at the start; removals by the load itself are added."""
    is_full: bool = False
    """Whether some rows of the load did not fit."""


class LocalStore:
    """One dataset, created when its first row is stored; safe for threads and processes."""

    def __init__(
        self,
        path: Path,
        *,
        url: str,
        chain: Chain,
        simulated: bool = False,
        limit: int | None = None,
    ) -> None:
        """Store rows of *chain* from *url* in the folder *path*; nothing is opened yet.

        *limit* is the largest size of its files in bytes. One commit may exceed it.
        """
        self.path = path
        self.limit = limit
        self._meta = {"service": url, "simulated": simulated, "chain": describe_chain(chain)}
        self._chain = chain
        self._dataset: Dataset | None = None
        self._finalized = -1
        self._has_warned = False
        self._rename_count = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"LocalStore({str(self.path)!r})"

    @property
    def dataset(self) -> Dataset | None:
        """Return the dataset, if it exists."""
        with self._lock:
            if not (self.path / ledger.NAME).exists():
                # The folder may have been deleted since it was opened.
                self._dataset = None
            elif self._dataset is None:
                self._open()
            return self._dataset

    def _open(self) -> None:
        try:
            dataset = Dataset.open(self.path)
            if not dataset.has_intact_ledger:
                raise DatasetError(f"the ledger of {self.path} is damaged")
            meta = dataset.meta
        except DatasetBusy as error:
            self._warn(error.message, error.hint)
            return
        except DatasetError as error:
            self._rename_unreadable(error)
            return
        if meta.get("chain", self._meta["chain"]) != self._meta["chain"]:
            self._warn(f"{self.path} has rows of another chain", CHOOSE_FOLDER)
            return
        self._dataset = dataset
        self._finalized = max(self._finalized, int(meta.get("finalized_epoch", -1)))

    def _rename_unreadable(self, error: DatasetError) -> None:
        """Rename an unreadable dataset, so that a new one can be created."""
        renamed = self.path.with_name(f"{self.path.name}.unreadable-{secrets.token_hex(4)}")
        try:
            self.path.rename(renamed)
        except OSError:
            self._warn(error.message, error.hint)
        else:
            self._rename_count += 1
            self._warn(
                f"{error.message}; it was renamed to {renamed}, and a new store is created",
                "Delete the renamed folder",
                state="the store was replaced",
            )

    @property
    def finalized(self) -> int:
        """Return the last epoch that is known to be final; -1 if none is."""
        return self._finalized if self.dataset else -1

    def coverage(self, table: str, subjects: Collection[str], intervals: Intervals) -> Covered:
        """Return the complete units of *subjects* in *intervals*."""
        if not intervals:
            return {}
        first, last = intervals[0][0], intervals[-1][1]
        return self._try(Dataset.coverage, table, subjects, first=first, last=last) or {}

    def unconfirmed(self, table: str, subjects: Collection[str], intervals: Intervals) -> Covered:
        """Return the units of *subjects* in *intervals* that had no rows in one response."""

        def read(dataset: Dataset) -> Covered:
            first, last = intervals[0][0], intervals[-1][1]
            with ledger.read_transaction(dataset.path) as connection:
                return empty_responses.read(connection, table, subjects, first, last)

        return self._try(read) or {}

    def select(
        self, table: str, subjects: Collection[str] | None, intervals: Intervals, schema: pl.Schema
    ) -> Selection:
        """Return the rows of *subjects* in *intervals*, sorted as they were written.

        Raises
        ------
        DatasetError
            A segment is damaged. It has been removed, so the next call reports its rows as missing.
        """
        dataset = self.dataset
        if dataset is None:
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        try:
            return dataset.selection(table, subjects, intervals, schema=schema)
        except DatasetError as error:
            log.warning("%s; the damaged rows are removed and fetched again", error.message)
            self._try(Dataset.mend)
            raise

    def put(
        self,
        table: str,
        rows: pl.DataFrame,
        grid: Grid,
        complete: Covered,
        finalized: int,
        *,
        empty: Covered | None = None,
        use: StoreUse | None = None,
    ) -> bool:
        """Store *rows* and the *complete* units; return whether that succeeded.

        Units in *empty* had no rows in this response. They are complete if an earlier response had
        no rows either. With a limit, other segments are removed, but not those that *use* needs.
        """

        def commit(dataset: Dataset) -> bool:
            if self.limit is not None and not self._shrink(dataset, self.limit, use):
                return False
            with dataset.writing() as writer:
                writer.add_covered(table, rows, grid, complete)
                if empty:
                    confirmed = empty_responses.confirm(writer.connection, table, empty)
                    writer.add_covered(table, rows, grid, confirmed)
                # Another process may have written a later one, or removed the folder.
                if finalized > (ledger.get_meta(writer.connection).get("finalized_epoch") or -1):
                    writer.set_meta(last_unit_metadata(self._chain, finalized))
            self._finalized = max(self._finalized, finalized)
            if self.limit is not None:
                dataset.touch(writer.written, time.time_ns())
                self._shrink(dataset, self.limit, use)
            return True

        self._create()
        is_stored = self._try(commit)
        if is_stored is False:
            self._warn_full(use)
        return is_stored is True

    def mark_used(
        self, table: str, subjects: Collection[str] | None, intervals: Intervals, seconds: int = 0
    ) -> None:
        """Note that a load uses rows, or that a LazyFrame may for some *seconds*.

        Only a limit needs it.
        """
        self._try(Dataset.mark_used, table, subjects, intervals, seconds=seconds)

    def prune_units(self, table: str, units: Covered) -> None:
        """Remove *units*, so that the next load requests them again."""
        self._try(Dataset.prune_units, table, units)

    @property
    def removals(self) -> tuple[int, PruneMark | None]:
        """Return a value that changes whenever rows are removed, by any process.

        It has no mark if there is no dataset yet.
        """
        mark = None
        with suppress(DatasetError, OSError):
            mark = None if (dataset := self.dataset) is None else dataset.prune_mark
        return self._rename_count, mark

    def newest(self, table: str, unit: str) -> int:
        """Return the last unit with rows in a table; -1 if there are none."""
        segments = self._try(Dataset.segments, table) or []
        return max((int(s.ranges[unit][1]) for s in segments if unit in s.ranges), default=-1)

    def drop_outdated(self, table: str, schema: pl.Schema) -> None:
        """Remove a table that another version of this library stored with other columns.

        Nothing can be added to a table without a readable segment, so it is repaired.
        """
        known = self._try(Dataset.stored_schema, table)
        segments = self._try(Dataset.segments, table)
        if known is None and segments:
            log.warning("no file of table %s can be read; the rows are fetched again", table)
            self._try(Dataset.mend)
        if known is not None and known != schema:
            log.warning("table %s was stored with other columns; it is fetched again", table)
            self._try(Dataset.prune, table)

    def compact_small(self, table: str) -> None:
        """Compact a table that has many small segments."""
        segments = self._try(Dataset.segments, table) or []
        if len(segments) <= MAX_SMALL_SEGMENTS:
            return
        if self.limit is not None:
            # Segments are removed as a whole, so they stay small. Replaced files stay for a while.
            size = sum(segment.bytes for segment in segments)
            if COARSEST_SHARE * size > self.limit or size + count_bytes(self.path) > self.limit:
                return
        self._try(Dataset.compact, table)

    def warn_unusable(self, error: DatasetError) -> None:
        """Warn once that the store cannot be used because of *error*."""
        self._warn(error.message, error.hint)

    def _create(self) -> None:
        """Create the dataset unless it exists; other processes never see an unfinished one."""
        with self._lock:
            if self._dataset is not None:
                return
            # Files before the ledger: another process may rename a complete folder in between.
            has_files = self.has_files()
            if not (self.path / ledger.NAME).exists():
                if has_files:
                    # The segments are useless without their ledger.
                    self._rename_unreadable(DatasetError(f"{self.path} has no ledger"))
                draft = self.path.with_name(f".{self.path.name}-{secrets.token_hex(4)}")
                try:
                    draft.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                    Dataset.create(draft, meta=self._meta, private=True)
                    draft.rename(self.path)
                except (OSError, DatasetError) as error:
                    shutil.rmtree(draft, ignore_errors=True)
                    # Another process may have created it at the same time.
                    if not (self.path / ledger.NAME).exists():
                        self._warn(str(error), CHOOSE_FOLDER)
                        return
            self._open()

    def has_files(self) -> bool:
        """Return whether the folder exists and is not empty."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return any(self.path.iterdir())
        return False

    def _try(
        self, method: Callable[Concatenate[Dataset, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """Call a *method* of the dataset; return None, with one warning, if it cannot be used."""
        dataset = self.dataset
        if dataset is None:
            return None
        try:
            return method(dataset, *args, **kwargs)
        except DatasetError as error:
            if dataset.has_intact_ledger:
                self._warn(error.message, error.hint)
            else:
                with self._lock:
                    self._dataset = None
                    self._rename_unreadable(error)
        except OSError as error:
            self._warn(f"{self.path}: {error.strerror or error}", None)
        return None

    def _shrink(self, dataset: Dataset, limit: int, use: StoreUse | None) -> bool:
        """Remove segments that the load does not need; return whether the limit holds."""
        since = time.time_ns() if use is None else use.started_at
        shrinkage = dataset.shrink(limit, used_since=since)
        if use is not None:
            # What this load removes does not disturb it.
            count, mark = use.removals
            before = shrinkage.mark_before
            if before and (mark == before or (mark is None and not before.token)):
                use.removals = (count, shrinkage.mark_after)
        return shrinkage.fits

    def _warn_full(self, use: StoreUse | None) -> None:
        """Warn once per load that the rest of its rows does not fit."""
        if use is None or not use.is_full:
            if use is not None:
                use.is_full = True
            warnings.warn(
                StoreUnavailable(
                    f"the store has reached its limit of {self.limit:,} bytes, and this load uses "
                    "all of it: the rest of its rows is not stored",
                    hint="Give a larger store_limit, or load less in one call",
                ),
                stacklevel=find_caller_level(),
            )

    def _warn(
        self, message: str, hint: str | None, *, state: str = "the store is not used"
    ) -> None:
        """Warn once about the *state* of the store; log every later reason."""
        if self._has_warned:
            log.debug("%s: %s", state, message)
            return
        self._has_warned = True
        warning = StoreUnavailable(f"{state}: {message}", hint=hint)
        warnings.warn(warning, stacklevel=find_caller_level())


def last_unit_metadata(chain: Chain, finalized: int) -> dict[str, int]:
    """Return the metadata that states the last epoch and slot of a dataset."""
    slot = chain.last_slot_of(finalized)
    return {"finalized_epoch": finalized, "latest_epoch": finalized, "latest_slot": slot}
