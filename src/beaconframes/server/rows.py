"""The records that the local explorer answers with, what is asked for again kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.endpoint import EpochTail, EpochWindow, Identifiers, RecentEpochs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from numpy.typing import NDArray

    from beaconframes.dataset import Dataset
    from beaconframes.endpoint import Endpoint, Fields, View

SMALL = 16_000_000
"""Cells up to which a table is kept whole."""

LARGEST_WINDOW = 2_000_000
"""Rows up to which a window is kept for all validators: the batches of one call share it."""

MEMORY = 512 * 2**20
"""Bytes of everything that is kept."""

NAMES = 1_000
"""Windows that are remembered to have been asked for."""


@dataclass(frozen=True)
class Window:
    """The records of one window, found by validator."""

    records: pl.DataFrame
    turns: NDArray[np.int64]
    """The place of each record among all when they are sent."""
    validators: NDArray[np.int64]
    """The validator of each record, sorted."""
    places: NDArray[np.int64]
    """Where the record of each of these stands."""

    def select(self, wanted: Collection[int]) -> pl.DataFrame:
        """Return the records of the *wanted* validators, in the order in which they are sent."""
        numbers = np.array(sorted(wanted), dtype=np.int64)
        first = np.searchsorted(self.validators, numbers, "left")
        last = np.searchsorted(self.validators, numbers, "right")
        ranges = zip(first, last, strict=True)
        found = np.concatenate([self.places[begin:end] for begin, end in ranges])
        return self.records[found[np.argsort(self.turns[found])]]

    @property
    def size(self) -> int:
        """Return the bytes that it takes."""
        index = self.turns.nbytes + self.validators.nbytes + self.places.nbytes
        return int(self.records.estimated_size()) + index


class Rows:
    """The tables of a dataset, which never change while they are served, in one spelling."""

    def __init__(self, dataset: Dataset, *, public: bool = False) -> None:
        self.dataset = dataset
        self.public = public
        self._sizes = dataset.tables()
        self._kept: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._asked: OrderedDict[Hashable, None] = OrderedDict()
        self._lock = threading.Lock()
        self._making = threading.RLock()

    def records(self, endpoint: Endpoint, fields: Fields, view: View) -> pl.DataFrame:
        """Return the records with which *endpoint* answers *fields*, ready to be written."""
        subject = endpoint.all_parameters[0] if endpoint.all_parameters else None
        windowed = isinstance(endpoint.pagination, EpochTail | EpochWindow | RecentEpochs)
        if windowed and isinstance(subject, Identifiers):
            validators = subject.found(fields, view)
            window = self._window(endpoint, subject, fields, view)
            if window is not None:
                return window.select(validators)
        rows = self.scan(endpoint.table.table_name, endpoint.table.schema())
        return self._spelled(endpoint, endpoint.select(rows, fields, view).collect(), fields, view)

    def scan(self, name: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of the table called *name*: from memory, unless there are many."""

        def make() -> tuple[int, pl.DataFrame | None]:
            rows = self.dataset.scan(name, schema=schema)
            height = self._sizes[name].rows if name in self._sizes else 0
            if height * len(schema or rows.collect_schema()) > SMALL:
                return 0, None
            # It comes in as many pieces as it has files, and each costs every request something.
            table = rows.collect().rechunk()
            return int(table.estimated_size()), table

        table: pl.DataFrame | None = self._keep(name, make)
        return self.dataset.scan(name, schema=schema) if table is None else table.lazy()

    def _window(
        self, endpoint: Endpoint, subject: Identifiers, fields: Fields, view: View
    ) -> Window | None:
        """Return what *fields* select for all validators, or None.

        It is None the first time, since reading all for the sake of one is worth it only when
        others follow; and when it is too much to keep.
        """
        shared = {name: text for name, text in fields.items() if name != subject.arg}
        name = (endpoint.name, *sorted(shared.items()))

        def make() -> tuple[int, Window | None]:
            rows = self.scan(endpoint.table.table_name, endpoint.table.schema())
            for parameter in endpoint.all_parameters[1:]:
                rows = parameter.apply(rows, shared, view)
            if rows.select(pl.len()).collect().item() > LARGEST_WINDOW:
                return 0, None
            found = rows.collect().rechunk()
            key = found.select(endpoint.table.key()).with_row_index("place")
            sent = endpoint.in_order(key.lazy()).collect()["place"].to_numpy()
            column = found[subject.column.name].to_numpy()
            places = np.argsort(column, kind="stable")
            records = self._spelled(endpoint, found, fields, view)
            window = Window(records, np.argsort(sent), column[places], places)
            return window.size, window

        if not self._asked_before(name):
            return None
        window: Window | None = self._keep(name, make)
        return window

    def _spelled(
        self, endpoint: Endpoint, rows: pl.DataFrame, fields: Fields, view: View
    ) -> pl.DataFrame:
        without = endpoint.leaves_out(fields)
        return endpoint.table.build_records(rows, view.chain, without=without, public=self.public)

    def _asked_before(self, name: Hashable) -> bool:
        """Tell whether *name* was asked for lately, and remember that it was now."""
        with self._lock:
            before = name in self._asked
            self._asked[name] = None
            self._asked.move_to_end(name)
            if len(self._asked) > NAMES:
                self._asked.popitem(last=False)
        return before

    def _keep(self, name: Hashable, make: Callable[[], tuple[int, Any]]) -> Any:
        """Return what is kept under *name*; what was used longest ago makes room."""
        if (found := self._find(name)) is not None:
            return found[1]
        # Those who ask for the same at once wait for the first.
        with self._making:
            if (found := self._find(name)) is not None:
                return found[1]
            made = make()
            with self._lock:
                self._kept[name] = made
                while len(self._kept) > 1 and sum(size for size, _ in self._kept.values()) > MEMORY:
                    self._kept.popitem(last=False)
        return made[1]

    def _find(self, name: Hashable) -> tuple[int, Any] | None:
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name]
