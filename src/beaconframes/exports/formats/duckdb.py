"""DuckDB: a database file, for SQL. Versions of DuckDB older than the writer may not read it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import UsageError, require_package
from beaconframes.exports.atomic_files import errors_as_os_error
from beaconframes.exports.formats.arrow import UNSUPPORTED_TYPES
from beaconframes.exports.formats.json_values import check_types, convert_columns, is_nested

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions

TABLE = "rows"


class DuckDBWriter:
    """Write a DuckDB file with one table, ``rows``.

    The same rows do not make the same bytes, because DuckDB gives every file an identifier. A
    duration is a whole number of its unit, because the intervals of DuckDB have no unit.
    """

    def __init__(self, path: Path, _options: CellOptions) -> None:
        require_package("duckdb", "a DuckDB file", "'beaconframes[duckdb]'")
        import duckdb

        path.unlink(missing_ok=True)
        self._error = duckdb.Error
        with errors_as_os_error(self._error):
            # One thread, so that rows are stored in their order.
            self._database: Any = duckdb.connect(str(path), config={"threads": 1})
            self._database.execute("SET TimeZone = 'UTC'")
        self._has_table = False

    def add(self, rows: pl.DataFrame) -> None:
        """Append *rows*."""
        check_columns(rows)
        added = rows.with_columns(pl.selectors.duration().cast(pl.Int64))
        into = "INSERT INTO rows" if self._has_table else "CREATE TABLE rows AS"
        with errors_as_os_error(self._error):
            self._database.register("added", added.to_arrow(compat_level=pl.CompatLevel.oldest()))
            self._database.execute(f"{into} SELECT * FROM added")  # noqa: S608 - constants only
            self._database.unregister("added")
        self._has_table = True

    def close(self) -> None:
        """Write all rows of the write-ahead log into the file."""
        with errors_as_os_error(self._error), closing(self._database):
            self._database.execute("CHECKPOINT")


def check_columns(rows: pl.DataFrame) -> None:
    """Raise a UsageError for columns that a DuckDB table cannot have."""
    if not rows.columns:
        raise UsageError(
            "the rows have no columns, and a DuckDB table needs one", hint="Choose Parquet"
        )
    names: dict[str, str] = {}
    for name in rows.columns:
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise UsageError(
                f"the columns {other} and {name} have the same name in DuckDB",
                hint="Rename one of them, or choose Parquet",
            )
    check_types(rows.schema, "DuckDB", (*UNSUPPORTED_TYPES, pl.Float16))
    nested = {name: dtype for name, dtype in rows.schema.items() if is_nested(dtype)}
    check_types(pl.Schema(nested), "DuckDB", (pl.Duration,))


def read(path: Path, schema: pl.Schema, _options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file that `DuckDBWriter` wrote."""
    import duckdb

    with duckdb.connect(str(path), read_only=True) as database:
        database.execute("SET TimeZone = 'UTC'")
        rows: Any = pl.from_arrow(database.table(TABLE).to_arrow_table())
    return convert_columns(pl.DataFrame(rows), schema, pl.Expr.cast)
