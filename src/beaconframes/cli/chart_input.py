"""Rows of a loader: loaded, or read from a file that ``load`` has written."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import connection_options as connection
from beaconframes.cli.common_options import FILE, refuse_options
from beaconframes.cli.from_signature import pop_arguments
from beaconframes.cli.loader_options import list_arguments, require_loader
from beaconframes.column_errors import format_command, recognize_frame
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import polars as pl

    from beaconframes.cli.from_signature import Argument
    from beaconframes.cli.loader_options import Loader

UNCHANGED_HINT = "Load it without --unit and --columns"


@dataclass(frozen=True)
class RowsInput:
    """The rows of a picture: the argument FILE, or the options to load them instead."""

    name: str
    """The loader of the rows."""
    without: Sequence[str] = ()
    """Its arguments that have no option here."""

    @cached_property
    def loader(self) -> Loader:
        """Return the loader."""
        return require_loader(self.name)

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """Return the arguments of the loader that are options."""
        return list_arguments(self.loader, self.without)

    def options(self) -> list[click.Parameter]:
        """Return the argument and the options; none is required."""
        loading = [argument.build() for argument in self.arguments.values()]
        for option in loading:
            option.required = False
        file = click.Argument(["file"], required=False, type=FILE)
        return [file, *loading, *connection.connection_options()]

    @contextlib.contextmanager
    def open(
        self, values: dict[str, Any], **given: Any
    ) -> Iterator[tuple[pl.DataFrame, dict[str, Any]]]:
        """Remove the options from *values*; yield the rows, and facts about their chain.

        The loader gets the *given* arguments as well. The facts are the name of the chain and
        whether it is simulated: pictures contain them. An error for a missing column of a file
        names the file, and the file to give instead.
        """
        file: Path | None = values.pop("file")
        arguments = given | pop_arguments(self.arguments, values)
        if file is None:
            yield self.load(arguments, values)
            return
        hint = "Leave one of them out: rows come from the file, or are loaded"
        refuse_options([*self.arguments, *connection.NAMES], str(file), hint=hint)
        rows = read_file(file, self.name)
        try:
            yield rows, {}
        except UsageError as error:
            absent = [column for column in schema_of(self.name) if column not in rows.columns]
            if not any(column in error.message for column in absent):
                raise
            message = f"{file} has no column {absent[0]}"
            if others := recognize_frame(rows.columns):
                message += f"; it looks like a file of {' or '.join(map(format_command, others))}"
            raise UsageError(message, hint=f"{UNCHANGED_HINT}, with load {self.name}") from error

    def load(
        self, arguments: dict[str, Any], values: dict[str, Any]
    ) -> tuple[pl.DataFrame, dict[str, Any]]:
        """Return the rows for *arguments*, and facts about their chain."""
        for name, argument in self.arguments.items():
            if argument.is_required and name not in arguments:
                raise UsageError(
                    f"a file or {argument.option} is required",
                    hint=f"Give a file of load {self.name}, or the options of the rows to load",
                )
        with connection.open_explorer(values) as explorer:
            rows: pl.DataFrame = self.loader(**arguments, explorer=explorer)
            about = {"chain": explorer.chain.name, "simulated": explorer.about.get("simulated")}
            return rows, about


def schema_of(name: str) -> pl.Schema:
    """Return the columns of a loader."""
    import polars as pl

    from beaconframes.dictionary import ENDPOINTS_BY_NAME

    return pl.Schema(ENDPOINTS_BY_NAME[name.replace("-", "_")].table.schema())


def read_file(file: Path, name: str | None) -> pl.DataFrame:
    """Read a file that ``load`` has written, with the types of its columns.

    Without the *name* of its loader, columns have the types that the format stores.
    """
    import polars as pl

    from beaconframes.exports.formats import CellOptions, require_format
    from beaconframes.exports.formats.parquet import states_simulation
    from beaconframes.frames import first_line

    form = require_format(file.name, is_read=True)
    assert form.read is not None
    if not file.is_file():
        hint = f"Write it with load {name} --out" if name else None
        raise DatasetError(f"the file {file} does not exist", hint=hint)
    try:
        # Both formats contain the types of their columns, and may have fewer columns.
        if form.name == "parquet":
            rows = pl.read_parquet(file, hive_partitioning=False, glob=False)
            rows.attrs = {"simulated": states_simulation(file)}  # type: ignore[attr-defined]
        elif form.name == "arrow":
            rows = pl.scan_ipc(file, glob=False).collect()
        elif name is None and form.name == "csv":
            rows = pl.read_csv(file, try_parse_dates=True, glob=False)
        elif name is None:
            rows = pl.read_ndjson(file.read_bytes())
        else:
            schema = schema_of(name)
            if (
                form.name == "jsonl"
                and (first := pl.read_ndjson(file.read_bytes(), n_rows=1)).height
            ):
                # With a schema, this reader fills missing columns with null.
                first.select(schema.names())
            rows = form.read(file, schema, CellOptions())
    except (pl.exceptions.ColumnNotFoundError, KeyError) as error:
        absent = re.search(r"(?<=[\"'])\w+", str(error))
        raise UsageError(
            f"{file} does not have all columns of load {name}"
            + (f", such as {absent[0]}" if absent else ""),
            hint=UNCHANGED_HINT,
        ) from None
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        rows_of = f" as rows of load {name}" if name else ""
        raise DatasetError(f"{file} cannot be read{rows_of}: {first_line(error)}") from error
    # A day is its first instant in UTC.
    return rows if name else rows.with_columns(pl.col(pl.Date).cast(pl.Datetime("us", "UTC")))
