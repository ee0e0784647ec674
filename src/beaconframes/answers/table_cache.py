"""A cache of tables and of the rows that repeated requests select from them."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from beaconframes.answers.row_index import NumberIndex, Window
from beaconframes.dataset.dataset import PublishedDataset
from beaconframes.endpoint import Role
from beaconframes.endpoint.absent_table import (
    DAY_TABLES,
    EXECUTION_TABLES,
    AbsentTable,
    TableAbsent,
)
from beaconframes.schema.encode import compact
from beaconframes.v1.validator_stats import ValidatorStats

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import polars as pl
    from numpy.typing import NDArray

    from beaconframes.dataset import Dataset
    from beaconframes.endpoint import Endpoint, Fields, Parameter, View
    from beaconframes.endpoint.absent_table import DatasetKind

Cached = TypeVar("Cached")

MAX_TABLE_CELLS = 16_000_000
"""Cells up to which a whole table is cached."""

MAX_RARE_CELLS = 1_000_000
"""Cells up to which a whole table is cached although few answers need it so far."""

MAX_WINDOW_ROWS = 2_000_000
"""Rows up to which a window of all validators is cached: the batches of one load share it."""

GROUP_ROWS = 64
"""Rows whose records are encoded and cached together."""

MAX_GROUPS = 2
"""Groups from which an answer is made; one of more groups encodes only its own rows."""

POSITION = "position in the table"
"""The column with the position of each row."""

CACHE_BYTES = 128 * 2**20
"""Default size of all cached tables, windows, indices and records."""

MAX_RECENT_WINDOWS = 1_000
"""Number of requested windows that are remembered."""


class TableCache:
    """Reads the tables of a dataset, which must not change, and caches what is read repeatedly."""

    def __init__(
        self, dataset: Dataset, *, public: bool = False, max_bytes: int = CACHE_BYTES
    ) -> None:
        """Cache up to *max_bytes* of the rows of *dataset*."""
        self.dataset = dataset
        self.public = public
        self.max_bytes = max_bytes
        self._table_sizes = dataset.tables()
        self._kind = find_kind(dataset)
        self._cached: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._recent_windows: OrderedDict[Hashable, None] = OrderedDict()
        self._lock = threading.Lock()
        self._compute_lock = threading.RLock()

    def select_records(
        self, endpoint: Endpoint, fields: Fields, view: View, rows: pl.LazyFrame | None = None
    ) -> list[bytes]:
        """Return the JSON texts of the records that *fields* select.

        They are selected from the *rows*, or from the table of the endpoint.
        """
        subject = find_windowed_subject(endpoint)
        if subject is not None and rows is None:
            validators = subject.resolve(fields, view)
            window = self._get_window(endpoint, subject, fields, view)
            if window is not None:
                return self._encode(endpoint, window.select(validators), fields, view)
        if rows is None:
            self.require(endpoint.table.table_name)
            positions = self._find_positions(endpoint, fields, view)
            if positions is not None:
                return self._read_records(endpoint, positions, fields, view)
            rows = self.scan(endpoint.table.table_name)
        return self._encode(endpoint, endpoint.select(rows, fields, view).collect(), fields, view)

    def scan(
        self, name: str, schema: pl.Schema | None = None, *, is_rare: bool = False
    ) -> pl.LazyFrame:
        """Return the rows of the table *name*: from memory, unless it is a large table.

        A table that does not exist raises TableAbsent, or has no rows if its *schema* is given.
        With *is_rare*, few answers need the table: of one that is not small, a query then reads
        only its columns.
        """
        if is_rare and self.has(name) and self._find(name) is None:
            rows = self.dataset.scan(name, schema=schema)
            if self._count_cells(name, rows) > MAX_RARE_CELLS:
                return rows
        table = self._get_table(name, schema)
        return self.dataset.scan(name, schema=schema) if table is None else table.lazy()

    def _get_table(self, name: str, schema: pl.Schema | None = None) -> pl.DataFrame | None:
        """Return the rows of the table *name*, or None for a large table."""
        if schema is None:
            self.require(name)

        def read() -> tuple[int, pl.DataFrame | None]:
            rows = self.dataset.scan(name, schema=schema)
            if self._count_cells(name, rows) > MAX_TABLE_CELLS:
                return 0, None
            # A frame has as many chunks as files were read, and each chunk slows every request.
            table = rows.collect().rechunk()
            return self._skip_if_large(int(table.estimated_size()), table)

        table: pl.DataFrame | None = self.get_or_compute(name, read)
        return table

    def _count_cells(self, name: str, rows: pl.LazyFrame) -> int:
        """Return the number of cells of the *rows* of the table *name*; 0 if it does not exist."""
        if not self.has(name) or not (height := self._table_sizes[name].rows):
            return 0
        return height * len(rows.collect_schema())

    def _find_positions(
        self, endpoint: Endpoint, fields: Fields, view: View
    ) -> NDArray[np.uint32] | None:
        """Return the positions of the rows that *fields* select, in the order of an answer.

        Returns None for rows that only a query can find, or of a large table.
        """
        parameters = endpoint.all_parameters
        if not parameters:
            table = self._get_table(endpoint.table.table_name)
            return None if table is None else np.arange(table.height, dtype=np.uint32)
        if len(parameters) > 1 or not parameters[0].selects_numbers:
            return None
        numbers = parameters[0].find_numbers(fields, view)
        index = None if numbers is None else self._get_index(endpoint, parameters[0])
        return None if numbers is None or index is None else index.find(numbers)

    def _get_index(self, endpoint: Endpoint, parameter: Parameter) -> NumberIndex | None:
        """Return the positions of the endpoint's rows by number, or None for a large table."""

        def read() -> tuple[int, NumberIndex | None]:
            table = self._get_table(endpoint.table.table_name)
            if table is None:
                return 0, None
            assert parameter.rows_column is not None
            column = parameter.rows_column.name
            rows = parameter.select_eligible(table.lazy().with_row_index(POSITION))
            index = NumberIndex.build(rows.select(column, POSITION).drop_nulls(column).collect())
            return self._skip_if_large(index.size, index)

        index: NumberIndex | None = self.get_or_compute(("index", endpoint.name), read)
        return index

    def _read_records(
        self, endpoint: Endpoint, positions: NDArray[np.uint32], fields: Fields, view: View
    ) -> list[bytes]:
        """Return the JSON texts of the rows at these *positions* of the endpoint's table."""
        places = [divmod(position, GROUP_ROWS) for position in positions.tolist()]
        groups = {group for group, _ in places}
        if endpoint.table.spec.list_columns or len(groups) > MAX_GROUPS:
            return self._encode(endpoint, self._get_indexed(endpoint)[positions], fields, view)
        records = {group: self._read_group(endpoint, group, fields, view) for group in groups}
        return [records[group][place] for group, place in places]

    def _read_group(
        self, endpoint: Endpoint, group: int, fields: Fields, view: View
    ) -> list[bytes]:
        """Return the JSON texts of a *group* of consecutive rows, and cache them.

        Encoding them takes hardly longer than one row, and clients request one unit after another.
        """

        def read() -> tuple[int, list[bytes]]:
            rows = self._get_indexed(endpoint).slice(group * GROUP_ROWS, GROUP_ROWS)
            records = self._encode(endpoint, rows, fields, view)
            return sum(map(sys.getsizeof, records)), records

        name = (endpoint.table, frozenset(endpoint.omitted_fields(fields)), group)
        records: list[bytes] = self.get_or_compute(name, read)
        return records

    def _get_indexed(self, endpoint: Endpoint) -> pl.DataFrame:
        """Return the endpoint's table, which has an index and so is not a large one."""
        table = self._get_table(endpoint.table.table_name)
        assert table is not None
        return table

    def has(self, name: str) -> bool:
        """Return whether the dataset has the table *name*."""
        return name in self._table_sizes

    def require(self, name: str) -> None:
        """Raise TableAbsent if the dataset does not have the table *name*."""
        if (absent := self.find_absence(name)) is not None:
            raise TableAbsent(absent)

    def find_absence(self, name: str) -> AbsentTable | None:
        """Return the table *name* if the dataset does not have it: how to add it, otherwise None.

        A table of days is absent as long as it has no rows.
        """
        if not self.has(name):
            return AbsentTable(name, self._kind)
        if name not in DAY_TABLES or self._kind != "dataset" or self._table_sizes[name].rows:
            return None
        days = self._table_sizes.get(ValidatorStats.table_name)
        # Without priority fees there is no yield index, however long the chain is.
        has_fees = name not in EXECUTION_TABLES or self.dataset.meta.get("execution", True)
        is_short = has_fees and not (days and days.rows)
        return AbsentTable(name, "short" if is_short else self._kind)

    def _get_window(
        self, endpoint: Endpoint, subject: Parameter, fields: Fields, view: View
    ) -> Window | None:
        """Return the rows that *fields* select for all validators, or None.

        Returns None for a window that is too large, and for the first request of a window:
        reading all validators takes less time only if other requests follow.
        """
        own = subject.field_schemas()
        shared = {name: text for name, text in fields.items() if name not in own}
        name = (endpoint.name, *sorted(shared.items()))

        def read() -> tuple[int, Window | None]:
            rows = self.scan(endpoint.table.table_name)
            for parameter in endpoint.all_parameters[1:]:
                rows = parameter.apply(rows, shared, view)
            collected = rows.head(MAX_WINDOW_ROWS + 1).collect()
            if collected.height > MAX_WINDOW_ROWS:
                return 0, None
            assert subject.rows_column is not None
            ordered = endpoint.sort(collected.lazy().with_row_index(POSITION))
            places = ordered.select(subject.rows_column.name, POSITION).collect()
            compacted = compact(endpoint.table.spec, collected, view.chain)
            window = Window(compacted, NumberIndex.build(places))
            return self._skip_if_large(window.size, window)

        if not self._was_requested(name):
            return None
        window: Window | None = self.get_or_compute(name, read)
        return window

    def _encode(
        self, endpoint: Endpoint, rows: pl.DataFrame, fields: Fields, view: View
    ) -> list[bytes]:
        """Return the JSON texts of the records of *rows*."""
        without = endpoint.omitted_fields(fields)
        return endpoint.table.encode_records(rows, view.chain, without=without, public=self.public)

    def _was_requested(self, name: Hashable) -> bool:
        """Return whether the window *name* was requested recently, and remember this request."""
        with self._lock:
            was_requested = name in self._recent_windows
            self._recent_windows[name] = None
            self._recent_windows.move_to_end(name)
            if len(self._recent_windows) > MAX_RECENT_WINDOWS:
                self._recent_windows.popitem(last=False)
        return was_requested

    def get_or_compute(self, name: Hashable, compute: Callable[[], tuple[int, Any]]) -> Any:
        """Return the cached value of *name*; compute it if missing, and evict the oldest values."""
        if (entry := self._find(name)) is not None:
            return entry[1]
        # Simultaneous requests for the same value wait for the first.
        with self._compute_lock:
            if (entry := self._find(name)) is not None:
                return entry[1]
            computed = compute()
            with self._lock:
                self._cached[name] = computed
                while len(self._cached) > 1 and self._total_size() > self.max_bytes:
                    self._cached.popitem(last=False)
        return computed[1]

    def _skip_if_large(self, size: int, value: Cached) -> tuple[int, Cached | None]:
        """Return size and value to cache: no value if it alone exceeds the limit."""
        return (0, None) if size > self.max_bytes else (size, value)

    def _total_size(self) -> int:
        return sum(size for size, _ in self._cached.values())

    def _find(self, name: Hashable) -> tuple[int, Any] | None:
        with self._lock:
            if name not in self._cached:
                return None
            self._cached.move_to_end(name)
            return self._cached[name]


def find_kind(dataset: Dataset) -> DatasetKind:
    """Return the kind of *dataset*, on which depends how a table can be added."""
    if isinstance(dataset, PublishedDataset):
        return "export"
    return "simulation" if dataset.meta.get("simulated") else "dataset"


def find_windowed_subject(endpoint: Endpoint) -> Parameter | None:
    """Return the validator parameter of an endpoint with windows of epochs or days, or None."""
    epochs = endpoint.pagination
    if epochs is None or epochs.role is not Role.RANGE or epochs.window == 1:
        return None
    subject = endpoint.all_parameters[0]
    by_index = subject.resolves_pubkeys or subject.selects_numbers
    return subject if subject.role is Role.SUBJECT and by_index else None
