"""Rows for charts and for the wall: loaded, or read from a file that ``load`` has written."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import connection_options as connection
from beaconframes.cli.common_options import FILE, typed_options
from beaconframes.cli.loader_options import (
    find_loader,
    list_arguments,
    loader_options,
    pop_arguments,
)
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from beaconframes.cli.loader_options import Loader
    from beaconframes.client import Explorer

WITH_OPEN_EPOCH = "attestations"
"""This loader returns future duties of the current epoch, which would count as missed."""

UNCHANGED_HINT = "Load it without --unit and --columns"


def input_options(name: str, shared: Sequence[str] = ()) -> list[click.Parameter]:
    """Return an argument for a file, and the options to load rows instead.

    *shared* options belong to the chart and to the load; they are not repeated.
    """
    loading = [o for o in loader_options(require_loader(name)) if o.name not in shared]
    for option in loading:
        option.required = False
    return [
        click.Argument(["file"], required=False, type=FILE),
        *loading,
        *connection.connection_options(),
    ]


def require_loader(name: str) -> Loader:
    """Return the loader with this name, such as ``income-history`` or ``v2.rewards``."""
    loader = find_loader(name.removeprefix("v2."), 2 if name.startswith("v2.") else 1)
    assert loader is not None
    return loader


def read_input(
    name: str, values: dict[str, Any], shared: Mapping[str, Any]
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Remove the input options from *values*; return the rows, and facts about their chain.

    The facts are the name of the chain and whether it is simulated: pictures contain them.
    """
    file, loader = values.pop("file"), require_loader(name)
    for argument in list_arguments(loader):
        values.setdefault(argument, shared.get(argument))
    arguments = pop_arguments(loader, values)
    if file is not None:
        loading = [n for n in (*list_arguments(loader), *connection.NAMES) if n not in shared]
        if wrong := [option for option in loading if option in typed_options()]:
            raise UsageError(
                f"{file} and --{wrong[0].replace('_', '-')} exclude each other",
                hint="Leave one of them out: rows come from the file, or are loaded",
            )
        return read_file(file, name), {}
    required = [n for n, a in list_arguments(loader).items() if a.is_required]
    if absent := [argument for argument in required if argument not in arguments]:
        raise UsageError(
            f"a file or --{absent[0].replace('_', '-')} is required",
            hint=f"Give a file of load {name}, or the options of the rows to load",
        )
    simulated = connection.is_simulated(values)
    with connection.open_explorer(values) as explorer:
        if name == WITH_OPEN_EPOCH and not arguments.keys() & {"since", "until"}:
            arguments |= finished_epochs(explorer)
        rows: pl.DataFrame = loader(**arguments, explorer=explorer)
        about = {"chain": explorer.chain.name, "simulated": simulated}
    return rows, about


def finished_epochs(explorer: Explorer) -> dict[str, int]:
    """Return the range of epochs that have ended, and that the service still has."""
    from beaconframes.v1.attestations import SERVED_EPOCHS

    latest = explorer.chain_head.latest("epoch")
    return {"since": max(latest - SERVED_EPOCHS + 1, 0), "until": max(latest - 1, 0)}


@contextlib.contextmanager
def explain_missing_columns(file: Path | None, name: str, rows: pl.DataFrame) -> Iterator[None]:
    """Name the file in the error for a missing column, and the file to give instead."""
    try:
        yield
    except UsageError as error:
        absent = [column for column in schema_of(name) if column not in rows.columns]
        if file is None or not any(column in error.message for column in absent):
            raise
        from beaconframes.column_errors import format_command, recognize_frame

        problem, hint = f"{file} has no column {absent[0]}", UNCHANGED_HINT
        if others := recognize_frame(rows.columns):
            problem += f"; it looks like a file of {' or '.join(map(format_command, others))}"
            hint = f"Give a file of load {name}"
        raise UsageError(problem, hint=hint) from error


def schema_of(name: str) -> pl.Schema:
    """Return the columns of a loader."""
    import polars as pl

    from beaconframes.dictionary import ENDPOINTS_BY_NAME

    return pl.Schema(ENDPOINTS_BY_NAME[name.replace("-", "_")].table.schema())


def read_file(file: Path, name: str) -> pl.DataFrame:
    """Read a file that ``load`` has written, with the types of its columns."""
    import polars as pl

    from beaconframes.exports.formats import CellOptions, find_format
    from beaconframes.exports.formats.parquet import states_simulation

    form = find_format(file.name)
    if form is None:
        raise UsageError(
            f"{file.name} does not end with the suffix of a format",
            hint="Suffixes: .parquet, .csv and others",
        )
    if not file.is_file():
        raise DatasetError(
            f"the file {file} does not exist", hint=f"Write it with load {name} --out"
        )
    schema = schema_of(name)
    try:
        # Both formats contain the types of their columns, and may have fewer columns.
        if form.name == "parquet":
            rows = pl.read_parquet(file, hive_partitioning=False, glob=False)
            rows.attrs = {"simulated": states_simulation(file)}  # type: ignore[attr-defined]
            return rows
        if form.name == "arrow":
            return pl.read_ipc(file)
        if form.name == "jsonl" and (first := pl.read_ndjson(file, n_rows=1)).height:
            # With a schema, this reader fills missing columns with null.
            first.select(schema.names())
        return form.read(file, schema, CellOptions())
    except (pl.exceptions.ColumnNotFoundError, KeyError):
        raise UsageError(
            f"{file} does not have all columns of load {name}", hint=UNCHANGED_HINT
        ) from None
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise DatasetError(
            f"{file} cannot be read as rows of load {name}: {str(error).partition(chr(10))[0]}"
        ) from error
