"""What the handlers of requests see of a dataset: its rows as of one head, and caches of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextvars import ContextVar
from copy import copy
from functools import cached_property, partial
from math import ceil
from typing import TYPE_CHECKING, Protocol, TypeVar

import polars as pl

from beaconframes.answers.memory_cache import CACHE_BYTES, MemoryCache
from beaconframes.answers.table_cache import TableCache, find_kind
from beaconframes.dataset import ledger
from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.v1.attestations import Attestations

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.client.explorer import ChainClock
    from beaconframes.dataset import Dataset, Grid
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Head

SCANNED_TABLES: ContextVar[set[str] | None] = ContextVar("scanned_tables", default=None)
"""The tables from which the answer in this context is computed so far."""

MAX_DERIVED_ROWS = 10_000_000
"""Rows of the tables from which others are derived as a whole."""

PART_ROWS = 120_000
"""Rows of the tables from which a part of a table is derived at a time."""

MAX_REPEATS = 4
"""Answers that are computed for one request while the dataset changes."""

MAX_HEADS = 100
"""Heads of a dataset that grows: pages of a list need that of its first page."""
MAX_VIEWS = 4
"""Heads of a live chain whose rows are cached; pages of a list need the head of its first page."""


Result = TypeVar("Result")


class DrawnAttestations(Protocol):
    """The attestations of epochs that a simulated dataset does not store."""

    @property
    def epochs(self) -> range:
        """Return the epochs whose attestations in blocks are not stored."""

    @property
    def duty_epochs(self) -> range:
        """Return the epochs whose attestation duties are not stored."""

    def draw(self, epoch: int) -> pl.DataFrame:
        """Return the attestations in the blocks of an epoch, one row per aggregate."""

    def draw_duties(self, epoch: int) -> pl.DataFrame:
        """Return the attestation duties of an epoch, one row per validator."""


class Simulation(Protocol):
    """What a simulated chain adds to the rows of its dataset."""

    @property
    def clock(self) -> ChainClock | None:
        """Return the clock of a live chain."""

    def draw_attestations(self, dataset: Dataset) -> DrawnAttestations:
        """Return the attestations of epochs that *dataset* does not store."""

    def show_at(self, dataset: Dataset, slot: int, scan: Callable[[str], pl.LazyFrame]) -> Dataset:
        """Return *dataset* as of the live head at *slot*; *scan* reads its tables."""


class DatasetView:
    """A dataset whose head does not move; all handlers share it."""

    def __init__(
        self,
        dataset: Dataset,
        simulation: Simulation | None = None,
        *,
        memory: MemoryCache,
        public: bool,
        drops_old_units: bool = False,
    ) -> None:
        """Answer from *dataset* and its *simulation*, and cache its rows in *memory*.

        With *drops_old_units*, units that the public service does not have any more are refused.
        """
        self.dataset, self.simulation = dataset, simulation
        self.drops_old_units = drops_old_units
        is_live = simulation is not None and simulation.clock is not None
        self.table_cache = TableCache(dataset, memory, public=public, is_computed=is_live)
        self.is_simulated = self.table_cache.kind == "simulation"
        # To read the metadata takes a millisecond: once for all requests.
        meta = dataset.meta
        self.first_epoch: int = meta.get("first_epoch", 0) if self.is_simulated else 0
        """First epoch that a simulated chain has rows of."""
        metadata = ChainMetadata.parse(meta)
        self.chain, self.head = metadata.chain, metadata.head
        self.version = 0
        """Changes of the dataset before this view."""
        self.drawn: dict[str, pl.DataFrame] = {}

    @cached_property
    def grids(self) -> dict[str, Grid]:
        """Return the columns by which tables are covered, for tables that may be incomplete."""
        return self.dataset.grids()

    @cached_property
    def indices(self) -> dict[str, int]:
        """Return the validator index of every public key."""
        self.table_cache.require("validators")
        keys = self.dataset.scan("validators").select("pubkey", "validator_index").collect()
        return dict(keys.iter_rows())

    @cached_property
    def pubkeys(self) -> dict[int, str]:
        """Return the public key of every validator index."""
        return {index: pubkey for pubkey, index in self.indices.items()}

    @cached_property
    def old_attestations(self) -> DrawnAttestations | None:
        """Return the attestations of epochs that a simulated dataset does not store, if any."""
        if self.simulation is None:
            return None
        drawn = self.simulation.draw_attestations(self.dataset)
        return drawn if drawn.epochs else None

    def with_old_duties(self, epoch: int) -> DatasetView:
        """Return this view, with the attestation duties of an *epoch* that are not stored."""
        assert self.old_attestations is not None
        view = copy(self)
        view.drawn = {Attestations.table_name: self.old_attestations.draw_duties(epoch)}
        return view

    def scan(self, table: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of a table, for answers that are derived from several tables.

        A table that does not exist is an error, or has no rows if its *schema* is given.
        """
        if (scanned := SCANNED_TABLES.get()) is not None:
            scanned.add(table)
        if table in self.drawn:
            return self.drawn[table].lazy()
        return self.table_cache.scan(table, schema)

    def derive(
        self,
        make_rows: Callable[[View], pl.LazyFrame],
        *,
        days: str | None = None,
        needs_all: bool = False,
    ) -> pl.LazyFrame:
        """Return the rows that *make_rows* makes of other tables.

        They are computed once for all requests, unless the dataset has many rows. The first request
        reads only what it needs of them, unless it *needs_all*. With a column of *days*, memory
        holds some days at a time.
        """
        cache, name = self.table_cache, (make_rows, self.head.slot, self.version)
        outer = SCANNED_TABLES.get()
        found = None if self.drawn else cache.find(name)
        if found is None:
            token = SCANNED_TABLES.set(set())
            try:
                rows = make_rows(self)
                tables = SCANNED_TABLES.get() or set()
            finally:
                SCANNED_TABLES.reset(token)
            is_first = not cache.count_earlier_requests(name) and not needs_all
            count = cache.count_rows(tables)
            if not (is_first or self.drawn or count > MAX_DERIVED_ROWS):

                def compute() -> tuple[int, tuple[pl.LazyFrame, set[str]]]:
                    # Requested a second time, the tables that it is made of are computed once.
                    frames = self._read_parts(make_rows(self), days, count)
                    return int(frames.estimated_size()), (frames.lazy(), tables)

                found = cache.get_or_compute(name, compute)
        if found is not None:
            rows, tables = found
        if outer is not None:
            outer |= tables
        return rows

    def _read_parts(self, rows: pl.LazyFrame, days: str | None, count: int) -> pl.DataFrame:
        """Return *rows*, made of *count* others; read some *days* at a time if that is a column.

        A day with many rows is read in shares of the validators.
        """
        if days is None:
            return rows.collect(engine="streaming")
        last, size = self.head.finalized_epoch, self.chain.epochs_per_day
        oldest = self.scan("income_history").select(pl.col("epoch").min()).collect().item()
        first = last if oldest is None else oldest
        # Whole days, counted back from the finalized epoch.
        length = max(PART_ROWS * (last - first + 1) // max(count, 1) // size, 1) * size
        shares = ceil(count * length / (last - first + 1) / PART_ROWS)
        in_part = [
            pl.col(days).is_between(end - length + 1, end)
            & (pl.col("validator_index") % shares == share)
            for end in range(last, first - 1, -length)
            for share in range(shares)
        ]
        frames = [rows.filter(part).collect(engine="streaming") for part in in_part]
        return pl.concat(frames).rechunk()

    def has_table(self, table: str) -> bool:
        """Return whether the dataset has a table."""
        return self.table_cache.has(table)


class DatasetViews:
    """The views of a dataset: one for each state of its files, or for each head of a live chain."""

    def __init__(
        self,
        dataset: Dataset,
        simulation: Simulation | None = None,
        *,
        public: bool = False,
        cache_bytes: int = CACHE_BYTES,
        drops_old_units: bool = False,
    ) -> None:
        """Show *dataset* as of its own head, or as of the live head of its *simulation*."""
        self.dataset, self.simulation = dataset, simulation
        self.clock = clock = None if simulation is None else simulation.clock
        self.version = 0
        """Changes of the dataset that were read so far."""
        self.may_change = clock is None and find_kind(dataset) == "dataset"
        """Whether another process may change the dataset."""
        self.memory = MemoryCache(cache_bytes)
        self._show = partial(
            DatasetView,
            simulation=simulation,
            memory=self.memory,
            public=public,
            drops_old_units=drops_old_units,
        )
        self._views: OrderedDict[int, DatasetView] = OrderedDict()
        self._lock = threading.Lock()
        if clock is None:
            self._heads: OrderedDict[int, tuple[Head, int]] = OrderedDict()
            self._read()
        else:
            self._whole = TableCache(dataset, self.memory)

    def _read(self) -> None:
        state = ledger.read_file_states(self.dataset.path)
        self._ledger_version = ledger.read_version(self.dataset.path) if state else None
        view = self._show(self.dataset)
        view.version = self.version + 1
        self._heads[view.head.slot] = view.head, view.version
        while len(self._heads) > MAX_HEADS:
            self._heads.popitem(last=False)
        self._fixed, self.version = view, view.version
        # Last: a thread that finds this state takes the new view.
        self._state = state

    def refresh(self) -> None:
        """Show the dataset as it is now, if another process or a node has changed it.

        Without a change of its files, nothing is read. A simulation does not change.
        """
        if not self.may_change or ledger.read_file_states(self.dataset.path) == self._state:
            return
        with self._lock:
            state = ledger.read_file_states(self.dataset.path)
            if state == self._state:
                return
            if ledger.read_version(self.dataset.path) == self._ledger_version:
                self._state = state
            else:
                self._read()

    def read_unchanged(self, read: Callable[[DatasetView], Result]) -> Result:
        """Return what *read* finds in the present view: rows and coverage of one state."""
        for _ in range(MAX_REPEATS):
            version = self.version
            result = read(self.current())
            self.refresh()
            if self.version == version:
                break
        return result

    def current(self) -> DatasetView:
        """Return the view of the present head."""
        if self.clock is not None:
            return self.at(self.clock.head().slot)
        self.refresh()
        return self._fixed

    def at(self, slot: int) -> DatasetView:
        """Return the view of the head at *slot*: that of the first page of a list."""
        if self.simulation is None or self.clock is None:
            view = self._fixed
            if slot != view.head.slot and slot in self._heads:
                # The dataset has grown since.
                view = copy(view)
                view.head, view.version = self._heads[slot]
            return view
        with self._lock:
            if slot not in self._views:
                shown = self.simulation.show_at(self.dataset, slot, self._whole.scan)
                self._views[slot] = self._show(shown)
                if len(self._views) > MAX_VIEWS:
                    self._views.popitem(last=False)
            self._views.move_to_end(slot)
            return self._views[slot]
