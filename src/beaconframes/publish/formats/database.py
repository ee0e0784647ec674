"""DuckDB: a database file, for SQL. Which version of DuckDB wrote it decides who can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.publish.formats.cells import Cells

TABLE = "rows"


class DuckFile:
    """A DuckDB file that is being written, of one table called ``rows``.

    It holds the same rows each time, but not the same bytes: DuckDB gives every file a number.
    """

    def __init__(self, path: Path, _cells: Cells) -> None:
        try:
            import duckdb
        except ModuleNotFoundError:
            raise UsageError(
                "DuckDB files need duckdb", hint="pip install 'beaconframes[duckdb]'"
            ) from None
        path.unlink(missing_ok=True)
        # One thread, so that the same rows lie in the same order.
        self._base: Any = duckdb.connect(str(path), config={"threads": 1})
        self._base.execute("SET TimeZone = 'UTC'")
        self._begun = False

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows* after those that were added before."""
        self._base.register("added", rows.to_arrow(compat_level=pl.CompatLevel.oldest()))
        into = "INSERT INTO rows" if self._begun else "CREATE TABLE rows AS"
        self._base.execute(f"{into} SELECT * FROM added")  # noqa: S608 - words of ours
        self._base.unregister("added")
        self._begun = True

    def close(self) -> None:
        """Write everything into the one file."""
        self._base.execute("CHECKPOINT")
        self._base.close()


def read(path: Path, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of a file that `DuckFile` wrote."""
    import duckdb

    with duckdb.connect(str(path), read_only=True) as base:
        base.execute("SET TimeZone = 'UTC'")
        found: Any = pl.from_arrow(base.table(TABLE).to_arrow_table())
    return pl.DataFrame(found).cast(schema)
