"""DuckDB: a database file, for SQL. Which version of DuckDB wrote it decides who can read it."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.exports.formats.arrow import LACKING
from beaconframes.exports.formats.json_values import check, each, is_nested

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from beaconframes.exports.formats.cells import Cells

TABLE = "rows"


class DuckFile:
    """A DuckDB file that is being written, of one table called ``rows``.

    It holds the same rows each time, but not the same bytes: DuckDB gives every file a number. A
    duration is a whole number of its unit, which an interval of DuckDB has not.
    """

    def __init__(self, path: Path, _cells: Cells) -> None:
        try:
            import duckdb
        except ModuleNotFoundError:
            raise UsageError(
                "DuckDB files need duckdb", hint="pip install 'beaconframes[duckdb]'"
            ) from None
        path.unlink(missing_ok=True)
        with told():
            # One thread, so that the same rows lie in the same order.
            self._base: Any = duckdb.connect(str(path), config={"threads": 1})
            self._base.execute("SET TimeZone = 'UTC'")
        self._begun = False

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows* after those that were added before."""
        fit(rows)
        added = rows.with_columns(pl.selectors.duration().cast(pl.Int64))
        into = "INSERT INTO rows" if self._begun else "CREATE TABLE rows AS"
        with told():
            self._base.register("added", added.to_arrow(compat_level=pl.CompatLevel.oldest()))
            self._base.execute(f"{into} SELECT * FROM added")  # noqa: S608 - words of ours
            self._base.unregister("added")
        self._begun = True

    def close(self) -> None:
        """Write everything into the one file."""
        with told(), closing(self._base):
            self._base.execute("CHECKPOINT")


def fit(rows: pl.DataFrame) -> None:
    """Refuse columns that a table of DuckDB cannot have."""
    if not rows.columns:
        raise UsageError("a table of DuckDB has columns, and these rows have none")
    names: dict[str, str] = {}
    for name in rows.columns:
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise UsageError(
                f"the columns {other} and {name} have one name in DuckDB",
                hint="Rename one of them, or choose Parquet",
            )
    check(rows.schema, "DuckDB", (*LACKING, pl.Float16))
    nested = {name: kind for name, kind in rows.schema.items() if is_nested(kind)}
    check(pl.Schema(nested), "DuckDB", (pl.Duration,))


@contextmanager
def told() -> Iterator[None]:
    """Turn what DuckDB says into an error of the system, as a full disk is one."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise OSError(str(error)) from error


def read(path: Path, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of a file that `DuckFile` wrote."""
    import duckdb

    with duckdb.connect(str(path), read_only=True) as base:
        base.execute("SET TimeZone = 'UTC'")
        found: Any = pl.from_arrow(base.table(TABLE).to_arrow_table())
    return each(pl.DataFrame(found), schema, pl.Expr.cast)
