"""The rows that the local explorer answers from, what is asked for again kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from beaconframes.endpoint import EpochTail, EpochWindow, RecentEpochs

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import polars as pl

    from beaconframes.dataset import Dataset
    from beaconframes.endpoint import Endpoint, Fields, View

SMALL = 4_000_000
"""Cells up to which a table is kept whole."""

WINDOWS = 8
"""Windows of large tables that are kept: the batches of one call share theirs."""


class Rows:
    """The tables of a dataset, which never change while they are served."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._sizes = dataset.tables()
        self._tables: OrderedDict[Hashable, pl.DataFrame] = OrderedDict()
        self._windows: OrderedDict[Hashable, pl.DataFrame] = OrderedDict()
        self._lock = threading.Lock()

    def select(self, endpoint: Endpoint, fields: Fields, view: View) -> pl.DataFrame:
        """Return the rows of *endpoint* that *fields* select: what ``endpoint.select`` would."""
        table, window = endpoint.table, endpoint.paging
        name = table.table_name
        rows = self.scan(name, table.schema())
        in_memory = name in self._tables
        if in_memory or not isinstance(window, EpochWindow | EpochTail | RecentEpochs):
            return endpoint.select(rows, fields, view).collect()
        asked = (name, *(fields.get(field) for field in window.fields))
        kept = self._kept(
            self._windows, asked, window.apply(rows, fields, view).collect, most=WINDOWS
        )
        rows = kept.lazy()
        for selector in endpoint.where:
            rows = selector.apply(rows, fields, view)
        return endpoint.in_order(rows).collect()

    def scan(self, name: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of the table called *name*: from memory, unless there are many."""
        with self._lock:
            if name in self._tables:
                return self._tables[name].lazy()
        rows = self.dataset.scan(name, schema=schema)
        height = self._sizes[name].rows if name in self._sizes else 0
        if height * len(schema or rows.collect_schema()) > SMALL:
            return rows
        return self._kept(self._tables, name, rows.collect, most=len(self._sizes) + 1).lazy()

    def _kept(
        self,
        shelf: OrderedDict[Hashable, pl.DataFrame],
        name: Hashable,
        make: Callable[[], pl.DataFrame],
        *,
        most: int,
    ) -> pl.DataFrame:
        with self._lock:
            if name in shelf:
                shelf.move_to_end(name)
                return shelf[name]
        made = make()
        with self._lock:
            shelf[name] = made
            while len(shelf) > most:
                shelf.popitem(last=False)
        return made
