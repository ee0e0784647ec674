"""The rows and records of one dataset that repeated requests select, from memory or from files."""

from __future__ import annotations

import sys
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.answers.row_index import NumberIndex, Window
from beaconframes.answers.selectors import (
    choose,
    find_bounds,
    find_numbers,
    find_selector,
    select,
    select_list,
    select_page,
    sort,
)
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
    from collections.abc import Callable, Collection, Hashable, Iterable

    from numpy.typing import NDArray

    from beaconframes.answers.memory_cache import MemoryCache
    from beaconframes.answers.selectors import Bounds
    from beaconframes.dataset import Dataset, Segment
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Endpoint, Fields, Parameter
    from beaconframes.endpoint.absent_table import DatasetKind

MAX_TABLE_BYTES = 12 * 2**20
"""Bytes up to which a whole table is cached. Of a larger one, each query reads what it needs."""

NUMBER_BYTES, TEXT_BYTES = 8, 64
"""The memory that a number and a text or list take, approximately."""

MAX_ROWS = 2_000_000
"""Rows up to which a window of all validators is cached, or the positions of a table's rows."""

WINDOW_ROWS = 2**19
"""Rows of two full files: to read those of a window takes about as long as one more request."""

MAX_LIST_ROWS = 20_000
"""Rows up to which a list that is read by page is cached."""

CHUNK_ROWS = 2_048
"""Consecutive rows of a large table that are read and cached together."""

PIECE_ROWS = 64
"""Consecutive rows that are compressed and encoded together; they divide a chunk."""

READ_AHEAD = 256
"""Consecutive rows of a window that are encoded together, if a validator has a few of them."""

MAX_PIECES = 2
"""Pieces from whose records an answer is made; one of more pieces encodes only its own rows."""

POSITION = "position in the table"
"""The column with the position of each row."""

NAME_BYTES = 500
"""The memory that the name of a requested window or derived table takes, approximately, and that
of a column beside its values.
"""


class TableCache:
    """Reads the tables of a dataset, which must not change, and caches what is read repeatedly."""

    def __init__(
        self,
        dataset: Dataset,
        memory: MemoryCache,
        *,
        public: bool = False,
        is_computed: bool = False,
    ) -> None:
        """Cache rows of *dataset* in the *memory* that all caches of an explorer share.

        The rows of a dataset that *is_computed* are no slices of files: a part of a large table
        takes as long to read as all of it.
        """
        self.dataset, self.memory = dataset, memory
        self.public, self.is_computed = public, is_computed
        self._table_sizes = dataset.tables()
        self.kind = find_kind(dataset)
        self._key = object()
        self._scans: dict[str, pl.LazyFrame] = {}
        self._segments: dict[str, list[Segment]] = {}

    def select_records(
        self, endpoint: Endpoint, fields: Fields, view: View, rows: pl.LazyFrame | None = None
    ) -> list[bytes]:
        """Return the JSON texts of the records that *fields* select.

        They are selected from the *rows*, or from the table of the endpoint.
        """
        subject = find_windowed_subject(endpoint)
        if subject is not None and rows is None:
            validators = find_numbers(subject, fields, view) or ()
            window = self._get_window(endpoint, subject, fields, view)
            if window is not None:
                return self._read_window(endpoint, window, validators, fields, view)
        if rows is None:
            self.require(endpoint.table.table_name)
            positions = self._find_positions(endpoint, fields, view)
            if positions is not None:
                return self._read_records(endpoint, positions, fields, view)
            rows = self._get_list(endpoint, fields, view)
        else:
            rows = select_list(endpoint, rows, fields, view)
        page = select_page(endpoint, rows, fields, view)
        return self._encode(endpoint, page.collect(), fields, view)

    def _get_list(self, endpoint: Endpoint, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of all pages; those of a short list are kept.

        Otherwise each page would select and sort the whole list.
        """

        def build_list() -> pl.LazyFrame:
            bounds = find_bounds(endpoint.all_parameters, fields, view)
            table = self.scan(endpoint.table.table_name, bounds=bounds)
            return select_list(endpoint, table, fields, view)

        pages = endpoint.parameters_of(Role.PAGE)
        if not pages:
            return build_list()
        of_page = {name for page in pages for name in page.field_schemas}
        shared = {name: text for name, text in fields.items() if name not in of_page}

        def read() -> tuple[int, pl.DataFrame | None]:
            listed = build_list().head(MAX_LIST_ROWS + 1).collect()
            if listed.height > MAX_LIST_ROWS:
                return 0, None
            # A frame of a few rows takes several times the memory that it states.
            return int(listed.estimated_size()) + listed.width * NAME_BYTES, listed

        name = ("list", endpoint.name, *sorted(shared.items()))
        listed: pl.DataFrame | None = self.get_or_compute(name, read)
        return build_list() if listed is None else listed.lazy()

    def scan(
        self, name: str, schema: pl.Schema | None = None, bounds: Bounds | None = None
    ) -> pl.LazyFrame:
        """Return the rows of the table *name*: of a small one from memory.

        A table that does not exist raises TableAbsent, or has no rows if its *schema* is given.
        Rows outside of *bounds* may be left out.
        """
        if schema is None:
            self.require(name)
        elif not self.has(name):
            return pl.LazyFrame(schema=schema)
        table = self._get_small_table(name)
        return self.scan_files(name, bounds) if table is None else table.lazy()

    def scan_files(self, name: str, bounds: Bounds | None = None) -> pl.LazyFrame:
        """Return the rows of a table that exists, of which a query reads what it needs.

        Files without a row within *bounds* are left out: a scan reads the footer of each file, even
        of one whose rows it skips.
        """
        if name not in self._scans:
            # First the files: another thread reads them once it finds the scan.
            self._segments[name] = [] if self.is_computed else self.dataset.segments(name)
            self._scans[name] = self.dataset.scan(name)
        inside = self._list_files(name, bounds)
        if len(inside) == len(self._segments[name]):
            return self._scans[name]
        return self.dataset.scan_segments(inside or self._segments[name][:1])

    def _list_files(self, name: str, bounds: Bounds | None) -> list[Segment]:
        """Return the files of a scanned table that may have rows within *bounds*."""
        listed = self._segments.get(name, [])
        if not bounds:
            return listed
        return [segment for segment in listed if segment.may_contain(bounds)]

    def _get_small_table(self, name: str) -> pl.DataFrame | None:
        """Return all rows of a small table, or None."""

        def read() -> tuple[int, pl.DataFrame | None]:
            rows = self.scan_files(name)
            dtypes = rows.collect_schema().dtypes()
            row_bytes = sum(
                TEXT_BYTES if dtype == pl.String or dtype.is_nested() else NUMBER_BYTES
                for dtype in dtypes
            )
            limit = min(MAX_TABLE_BYTES, self.memory.max_bytes)
            if self._table_sizes[name].rows * row_bytes > limit:
                return 0, None
            # A frame has as many chunks as files were read, and each chunk slows every request.
            table = rows.collect().rechunk()
            return int(table.estimated_size()), table

        table: pl.DataFrame | None = self.get_or_compute(name, read)
        return table

    def _find_positions(
        self, endpoint: Endpoint, fields: Fields, view: View
    ) -> NDArray[np.uint32] | None:
        """Return the positions of the rows that *fields* select, in the order of an answer.

        Returns None for rows that only a query can find, or of a table with too many rows.
        """
        name, parameters = endpoint.table.table_name, endpoint.all_parameters
        if len(parameters) > 1 or self._table_sizes[name].rows > MAX_ROWS:
            return None
        if not parameters:
            table = self._get_small_table(name)
            return None if table is None else np.arange(table.height, dtype=np.uint32)
        if self.is_computed and self._get_small_table(name) is None:
            return None
        if not find_selector(type(parameters[0])).has_positions:
            return None
        numbers = find_numbers(parameters[0], fields, view)
        return None if numbers is None else self._get_index(endpoint, parameters[0]).find(numbers)

    def _get_index(self, endpoint: Endpoint, parameter: Parameter) -> NumberIndex:
        def read() -> tuple[int, NumberIndex]:
            assert parameter.rows_column is not None
            column = parameter.rows_column.name
            rows = self.scan(endpoint.table.table_name).with_row_index(POSITION)
            rows = choose(parameter, rows).select(column, POSITION)
            index = NumberIndex.build(rows.drop_nulls(column).collect())
            return index.size, index

        index: NumberIndex = self.get_or_compute(("index", endpoint.name), read)
        return index

    def _read_records(
        self, endpoint: Endpoint, positions: NDArray[np.uint32], fields: Fields, view: View
    ) -> list[bytes]:
        """Return the JSON texts of the rows at these *positions* of the endpoint's table."""
        places = [divmod(position, PIECE_ROWS) for position in positions.tolist()]
        pieces = {piece for piece, _ in places}
        if endpoint.table.spec.list_columns or len(pieces) > MAX_PIECES:
            rows = self._gather(endpoint.table.table_name, positions)
            return self._encode(endpoint, rows, fields, view)
        records = {piece: self._encode_piece(endpoint, piece, fields, view) for piece in pieces}
        return [records[piece][place] for piece, place in places]

    def _encode_piece(
        self, endpoint: Endpoint, piece: int, fields: Fields, view: View
    ) -> list[bytes]:
        """Return the JSON texts of a *piece*, and cache them.

        It takes hardly longer than the text of one row, and clients request one unit after another.
        """

        def read() -> tuple[int, list[bytes]]:
            rows = self._read_piece(endpoint.table.table_name, piece)
            records = self._encode(endpoint, rows, fields, view)
            return sum(map(sys.getsizeof, records)), records

        name = (endpoint.table, frozenset(endpoint.omitted_fields(fields)), piece)
        records: list[bytes] = self.get_or_compute(name, read)
        return records

    def _gather(self, name: str, positions: NDArray[np.uint32]) -> pl.DataFrame:
        """Return the rows at these *positions* of a table, in their order."""
        numbers, places = np.divmod(positions, PIECE_ROWS)
        pieces = [
            self._read_piece(name, number)[places[numbers == number]]
            for number in np.unique(numbers).tolist()
        ]
        if not pieces:
            return self._read_piece(name, 0).clear()
        order = np.argsort(np.argsort(numbers, kind="stable"))
        rows: pl.DataFrame = pl.concat(pieces)[order]
        return rows

    def _read_piece(self, name: str, number: int) -> pl.DataFrame:
        """Return consecutive rows of a table; those of a large one are cached, compressed.

        A block of the sample has 2.1 kB of hex digits, and a third of it compressed.
        """
        table = self._get_small_table(name)
        if table is not None:
            return table.slice(number * PIECE_ROWS, PIECE_ROWS)
        chunk, place = divmod(number, CHUNK_ROWS // PIECE_ROWS)

        def read() -> tuple[int, list[bytes]]:
            rows = self.scan_files(name).slice(chunk * CHUNK_ROWS, CHUNK_ROWS).collect()
            pieces = []
            for piece in rows.iter_slices(PIECE_ROWS):
                file = BytesIO()
                piece.write_ipc_stream(file, compression="zstd")
                pieces.append(file.getvalue())
            return sum(map(sys.getsizeof, pieces)), pieces

        pieces: list[bytes] = self.get_or_compute(("chunk", name, chunk), read)
        return pl.read_ipc_stream(BytesIO(pieces[place]))

    def has(self, name: str) -> bool:
        """Return whether the dataset has the table *name*."""
        return name in self._table_sizes

    def count_rows(self, names: Iterable[str]) -> int:
        """Return the number of rows in some tables."""
        return sum(self._table_sizes[name].rows for name in names if self.has(name))

    def require(self, name: str) -> None:
        """Raise TableAbsent if the dataset does not have the table *name*."""
        if (absent := self.find_absence(name)) is not None:
            raise TableAbsent(absent)

    def find_absence(self, name: str) -> AbsentTable | None:
        """Return the table *name* if the dataset does not have it: how to add it, otherwise None.

        A table of days is absent as long as it has no rows.
        """
        if not self.has(name):
            return AbsentTable(name, self.kind)
        if name not in DAY_TABLES or self.kind != "dataset" or self._table_sizes[name].rows:
            return None
        days = self._table_sizes.get(ValidatorStats.table_name)
        # Without priority fees there is no yield index, however long the chain is.
        has_fees = name not in EXECUTION_TABLES or self.dataset.meta.get("execution", True)
        is_short = has_fees and not (days and days.rows)
        return AbsentTable(name, "short" if is_short else self.kind)

    def _get_window(
        self, endpoint: Endpoint, subject: Parameter, fields: Fields, view: View
    ) -> Window | None:
        """Return the rows that *fields* select for all validators, or None.

        Returns None for a window that is too large, and for the first requests of a window:
        reading all validators takes less time only if many requests follow. So it is read once
        these requests together took about as long.
        """
        own = subject.field_schemas
        shared = {name: text for name, text in fields.items() if name not in own}
        name = (endpoint.name, *sorted(shared.items()))

        table, others = endpoint.table.table_name, endpoint.all_parameters[1:]

        def read() -> tuple[int, Window | None]:
            rows = self.scan(table, bounds=bounds)
            for parameter in others:
                rows = select(parameter, rows, shared, view)
            collected = rows.head(MAX_ROWS + 1).collect()
            if collected.height > MAX_ROWS:
                return 0, None
            assert subject.rows_column is not None
            ordered = sort(endpoint, collected.lazy().with_row_index(POSITION), shared)
            places = ordered.select(subject.rows_column.name, POSITION).collect()
            compacted = compact(endpoint.table.spec, collected, view.chain)
            window = Window(name, compacted, NumberIndex.build(places))
            # A window above the limit would be read again by each request.
            return (0, None) if window.size > self.memory.max_bytes else (window.size, window)

        earlier = self.count_earlier_requests(name)
        if earlier == 0:
            return None
        bounds = find_bounds(others, shared, view)
        files = self._list_files(table, bounds)
        if sum(segment.rows for segment in files) > earlier * WINDOW_ROWS:
            return None
        window: Window | None = self.get_or_compute(name, read)
        return window

    def _read_window(
        self,
        endpoint: Endpoint,
        window: Window,
        validators: Collection[int],
        fields: Fields,
        view: View,
    ) -> list[bytes]:
        """Return the JSON texts of the rows of *validators* in a *window*.

        The few rows of one validator are encoded with those of the next ones, and cached: clients
        request one validator after another.
        """
        rows = window.find(validators)
        if isinstance(rows, slice) and rows.stop - rows.start <= PIECE_ROWS:
            piece, first = divmod(rows.start, READ_AHEAD)
            last = first + rows.stop - rows.start
            if last <= READ_AHEAD:

                def read() -> tuple[int, list[bytes]]:
                    ahead = window.rows.slice(piece * READ_AHEAD, READ_AHEAD)
                    records = self._encode(endpoint, ahead, fields, view)
                    return sum(map(sys.getsizeof, records)), records

                records: list[bytes] = self.get_or_compute((*window.name, piece), read)
                return records[first:last]
        return self._encode(endpoint, window.rows[rows], fields, view)

    def _encode(
        self, endpoint: Endpoint, rows: pl.DataFrame, fields: Fields, view: View
    ) -> list[bytes]:
        without = endpoint.omitted_fields(fields)
        return endpoint.table.encode_records(rows, view.chain, without=without, public=self.public)

    def count_earlier_requests(self, name: Hashable) -> int:
        """Return how often *name* was requested recently, and count this request."""
        earlier: int = self.find(("requests", name)) or 0
        self.memory.put((self._key, ("requests", name)), NAME_BYTES, earlier + 1)
        return earlier

    def find(self, name: Hashable) -> Any:
        """Return the cached value of *name* of this dataset, or None."""
        entry = self.memory.find((self._key, name))
        return None if entry is None else entry[1]

    def get_or_compute(self, name: Hashable, compute: Callable[[], tuple[int, Any]]) -> Any:
        """Return the value of *name* of this dataset; *compute* returns its size and itself."""
        return self.memory.get_or_compute((self._key, name), compute)


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
    has_numbers = find_selector(type(subject)).find_numbers is not None
    return subject if subject.role is Role.SUBJECT and has_numbers else None
