"""What the handlers of requests see of a dataset: its rows as of one head, and caches of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextvars import ContextVar
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.server.table_cache import TableCache
from beaconframes.simulator.old_attestations import OldAttestations
from beaconframes.v1.attestations import Attestations

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.dataset import Dataset, Grid
    from beaconframes.server.head_clock import HeadClock

SCANNED_TABLES: ContextVar[set[str] | None] = ContextVar("scanned_tables", default=None)
"""The tables from which the answer in this context is computed so far."""

MAX_VIEWS = 4
"""Heads of a live chain whose rows are cached; pages of a list need the head of its first page."""


class DatasetView:
    """A dataset whose head does not move; all handlers share it."""

    def __init__(
        self, dataset: Dataset, *, public: bool, cache_bytes: int, drops_old_units: bool = False
    ) -> None:
        """Answer from *dataset*, and cache up to *cache_bytes* of its rows.

        With *drops_old_units*, units that the public service does not have any more are refused.
        """
        self.dataset = dataset
        self.drops_old_units = drops_old_units
        metadata = ChainMetadata.parse(dataset.meta)
        self.chain, self.head = metadata.chain, metadata.head
        self.table_cache = TableCache(dataset, public=public, max_bytes=cache_bytes)
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

    def index_of(self, pubkey: str) -> int | None:
        """Return the validator index of a public key, or None."""
        return self.indices.get(pubkey)

    @cached_property
    def pubkeys(self) -> dict[int, str]:
        """Return the public key of every validator index."""
        return {index: pubkey for pubkey, index in self.indices.items()}

    def pubkey_of(self, index: int) -> str | None:
        """Return the public key of a validator index, or None."""
        return self.pubkeys.get(index)

    @cached_property
    def old_attestations(self) -> OldAttestations:
        """Return the attestations of epochs that a simulated dataset does not store."""
        return OldAttestations(self.dataset)

    def with_old_duties(self, slot: int) -> DatasetView:
        """Return this view, with the attestation duties of *slot* also if they are not stored."""
        epoch = slot // self.chain.slots_per_epoch
        if epoch not in self.old_attestations.epochs:
            return self
        view = copy(self)
        duties = self.old_attestations.draw_duties(epoch)
        view.drawn = {Attestations.table_name: duties}
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


class DatasetViews:
    """The views of a dataset: one, or one for each head of a live chain."""

    def __init__(
        self,
        dataset: Dataset,
        clock: HeadClock | None,
        *,
        public: bool,
        cache_bytes: int,
        drops_old_units: bool = False,
    ) -> None:
        """Show *dataset* as of its own head, or as of the head of *clock*."""
        self.dataset, self.clock = dataset, clock
        self.drops_old_units = drops_old_units
        self._public = public
        self._views: OrderedDict[int, DatasetView] = OrderedDict()
        self._lock = threading.Lock()
        if clock is None:
            self._cache_bytes = cache_bytes
            self.refresh()
        else:
            # Half for the whole dataset, and the rest for the heads.
            self._whole = TableCache(dataset, max_bytes=cache_bytes // 2)
            self._view_bytes = cache_bytes // 2 // MAX_VIEWS

    def refresh(self) -> None:
        """Show the dataset as it is now: another program or a node has extended it."""
        self._fixed = DatasetView(
            self.dataset,
            public=self._public,
            cache_bytes=self._cache_bytes,
            drops_old_units=self.drops_old_units,
        )

    def current(self) -> DatasetView:
        """Return the view of the present head."""
        return self._fixed if self.clock is None else self.at(self.clock.head().slot)

    def at(self, slot: int) -> DatasetView:
        """Return the view of the head at *slot*."""
        if self.clock is None:
            return self._fixed
        from beaconframes.simulator.dataset_at import DatasetAt

        with self._lock:
            view = self._views.get(slot)
            if view is None:
                shown = DatasetAt(self.dataset, self.clock.head_at(slot), self._whole.scan)
                view = DatasetView(
                    shown,
                    public=self._public,
                    cache_bytes=self._view_bytes,
                    drops_old_units=self.drops_old_units,
                )
                self._views[slot] = view
                if len(self._views) > MAX_VIEWS:
                    self._views.popitem(last=False)
            self._views.move_to_end(slot)
        return view
