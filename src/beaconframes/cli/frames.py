"""Frames for pictures: loaded, or out of files that load has written."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import asking, nouns
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from beaconframes.client import Explorer

FILE = click.Path(path_type=Path)
RUNNING = "attestations"
"""Whose running epoch has duties that lie ahead, and count as missed until then."""

UNCHANGED = "Load it without --unit and --columns"


def options(noun: str, taken: Sequence[str] = ()) -> list[click.Parameter]:
    """Return an argument for a file, and the options to load instead of reading one.

    Those that are *taken* are options of the picture, and of the load as well.
    """
    loader = loader_of(noun)
    loading = [option for option in nouns.options(loader) if option.name not in taken]
    for option in loading:
        option.required = False
    return [click.Argument(["file"], required=False, type=FILE), *loading, *asking.options()]


def loader_of(noun: str) -> nouns.Loader:
    """Return the loader of generation 1 that is called so."""
    found = nouns.loader_of(noun)
    assert found is not None
    return found


def frame(noun: str, given: dict[str, Any], shared: Mapping[str, Any]) -> tuple[Any, Any]:
    """Take what `options` made out of *given*; return the rows and what is known of the chain.

    That is what a picture tells about its data: the chain, and whether it is simulated.
    """
    file, loader = given.pop("file"), loader_of(noun)
    for name in nouns.arguments(loader):
        given.setdefault(name, shared.get(name))
    asked = nouns.values(loader, given)
    if file is not None:
        loading = [n for n in (*nouns.arguments(loader), *asking.NAMES) if n not in shared]
        if wrong := [name for name in loading if name in asking.typed()]:
            raise UsageError(
                f"{file} and --{wrong[0].replace('_', '-')} do not go together",
                hint="Rows are read from the file, or loaded",
            )
        return read(file, noun), {}
    needed = [n for n, a in nouns.arguments(loader).items() if a.default is a.empty]
    if lacking := [name for name in needed if name not in asked]:
        raise UsageError(
            f"neither a file nor --{lacking[0].replace('_', '-')} is given",
            hint=f"Name a file of load {noun}, or say what to load",
        )
    simulated = asking.simulated(given)
    with asking.connected(given) as explorer:
        if noun == RUNNING and not asked.keys() & {"since", "until"}:
            asked |= over(explorer)
        rows = loader(**asked, explorer=explorer)
        about = {"chain": explorer.chain.name, "simulated": simulated}
    return rows, about


def over(explorer: Explorer) -> dict[str, int]:
    """Return the epochs that are over, and whose duties are still served."""
    from beaconframes.v1.recorder import SERVED

    latest = explorer.chain_head.latest("epoch")
    return {"since": max(latest - SERVED + 1, 0), "until": max(latest - 1, 0)}


@contextlib.contextmanager
def whole(file: Path | None, noun: str, rows: pl.DataFrame) -> Iterator[None]:
    """Say of a file that lacks a column which is needed how it comes to have it."""
    try:
        yield
    except UsageError as error:
        lacking = [name for name in schema_of(noun) if name not in rows.columns]
        if file is None or not any(name in error.message for name in lacking):
            raise
        raise UsageError(f"{file} has no column {lacking[0]}", hint=UNCHANGED) from error


def schema_of(noun: str) -> pl.Schema:
    """Return the columns of what ``load NOUN`` gives."""
    import polars as pl

    from beaconframes.dictionary import NAMED

    return pl.Schema(NAMED[noun.replace("-", "_")].table.schema())


def read(file: Path, noun: str) -> pl.DataFrame:
    """Return the rows in a file that ``load NOUN`` has written, in their types."""
    import polars as pl

    from beaconframes.exports.formats import Cells, by_ending

    form = by_ending(file.name)
    if form is None:
        raise UsageError(
            f"{file.name} has no ending that tells its format", hint="Such as .parquet or .csv"
        )
    if not file.is_file():
        raise DatasetError(f"there is no file {file}", hint=f"load {noun} --out writes one")
    schema = schema_of(noun)
    try:
        # These two know the types of their columns, and may lack some.
        if form.name == "parquet":
            return pl.read_parquet(file, hive_partitioning=False, glob=False)
        if form.name == "arrow":
            return pl.read_ipc(file)
        if form.name == "jsonl" and (first := pl.read_ndjson(file, n_rows=1)).height:
            # Its reader takes what is not there for null.
            first.select(schema.names())
        return form.read(file, schema, Cells())
    except (pl.exceptions.ColumnNotFoundError, KeyError):
        raise UsageError(f"{file} lacks columns of load {noun}", hint=UNCHANGED) from None
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise DatasetError(
            f"{file} cannot be read as rows of load {noun}: {str(error).partition(chr(10))[0]}"
        ) from error
