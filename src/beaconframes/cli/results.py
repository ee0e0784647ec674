"""What a command does with rows: a table on the terminal, a file, or JSON."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.running import flush, state
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.cli.running import State

TEXTS = ("csv", "jsonl")
"""Formats that may go to standard output."""
NAMED = 1000
"""Missing rows that JSON names one by one."""


def picture_options() -> list[click.Parameter]:
    """Return the options of every command that gives a picture instead of rows."""
    return [
        click.Option(["--out"], type=click.Path(path_type=Path), help="Write it to this file."),
        click.Option(["--overwrite"], is_flag=True, help="Replace the file if it is there."),
        click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines."),
    ]


def options() -> list[click.Parameter]:
    """Return the options of every command that gives rows."""
    return [
        click.Option(
            ["--out"],
            type=click.Path(path_type=Path),
            help="Write all rows to this file: .parquet, .csv, .jsonl, .arrow and others.",
        ),
        click.Option(
            ["--format"],
            help="Format of the file; without --out, csv or jsonl on standard output.",
        ),
        click.Option(["--overwrite"], is_flag=True, help="Replace the file if it is there."),
        click.Option(
            ["--raw"], is_flag=True, help="Leave text alone that a spreadsheet takes for formulas."
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines."),
        click.Option(
            ["--unit"],
            type=click.Choice(["eth"]),
            help="Turn all amounts of gwei and wei into this, exactly.",
        ),
        click.Option(["--columns"], help="Columns to give, with commas between; all by default."),
        click.Option(
            ["--rows"],
            type=click.IntRange(min=0),
            default=10,
            show_default=True,
            help="Rows of the table on the terminal.",
        ),
    ]


NAMES = tuple(option.name for option in options() if option.name)


def taken(given: dict[str, Any]) -> dict[str, Any]:
    """Take these options out of *given*, and refuse what cannot work before anything is sent."""
    said = {name: given.pop(name) for name in NAMES}
    if said["out"] == Path("-"):
        raise UsageError("--out - is no file", hint="Leave --out away and say --format csv")
    if said["out"] is not None:
        placed(said["out"])
        fitting(said["out"], said["format"])
        unreplaced(said["out"], overwrite=said["overwrite"])
    elif said["format"] is not None and said["format"] not in TEXTS:
        raise UsageError(
            f"--format {said['format']} without --out",
            hint=f"Name a file with --out; standard output takes {' or '.join(TEXTS)}",
        )
    if said["format"] is not None and said["out"] is None and said["as_json"]:
        raise UsageError("--json and --format do not go together", hint="Give one of them")
    return said


def free(out: Path, *, overwrite: bool) -> None:
    """Refuse to write where something is already, or where nothing can be."""
    placed(out)
    unreplaced(out, overwrite=overwrite)


def placed(out: Path) -> None:
    """Refuse to write where no file can be."""
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder", hint="Name a file in it")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}", hint="Make it first")
    if out.exists() and not out.is_file():
        raise UsageError(
            f"--out {out} is a device or a pipe, and no file",
            hint="Redirect standard output to it instead",
        )


def fitting(out: Path, form: str | None) -> None:
    """Refuse the name of a file that does not tell its format, or tells another one."""
    from beaconframes.exports.formats import FORMATS, by_ending
    from beaconframes.exports.targets import target_of

    if by_ending(out.name) is None:
        raise UsageError(
            f"--out {out} has no ending that tells its format",
            hint=f"There are: {', '.join(known.endings[0] for known in FORMATS.values())}",
        )
    target_of(upwards(out), form)


def upwards(out: Path) -> Path:
    """Return where a file is to be; upwards too: this is no name out of somebody's data."""
    return out.parent.resolve() / out.name


def unreplaced(out: Path, *, overwrite: bool) -> None:
    """Refuse to replace a file, unless that is wished."""
    if out.exists() and not overwrite:
        raise DatasetError(f"{out} is there already", hint="Add --overwrite to replace it")


def give(rows: pl.DataFrame, said: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Give rows to whom the options say."""
    from beaconframes.cli.showing import write_json, write_table

    rows = shaped(rows, said)
    now = state()
    if said["out"] is not None:
        write_file(rows, said["out"], said["format"], raw=said["raw"])
        tell_file(said["out"], {**facts, "rows": rows.height}, as_json=said["as_json"])
    elif said["format"] is not None:
        write_text(rows, said["format"], raw=said["raw"])
    elif said["as_json"]:
        write_json({**told(now), **facts, "rows": rows.height}, rows)
    else:
        write_table(rows, said["rows"])


def told(now: State) -> dict[str, Any]:
    """Return how complete the rows are, and what was said about them."""
    frames = [notice.missing for notice in now.missing if notice.missing is not None]
    missing = [row for frame in frames for row in frame.head(NAMED).to_dicts()]
    return {
        "complete": now.complete,
        "warnings": [str(notice) for notice in now.notices],
        "missing": missing,
    }


def shaped(rows: pl.DataFrame, said: Mapping[str, Any]) -> pl.DataFrame:
    """Return the columns that are asked for, in the unit that is."""
    if said["unit"] is not None:
        from beaconframes.units import to_eth

        rows = to_eth(rows, exact=True)
    if said["columns"] is None:
        return rows
    names = [name.strip() for name in said["columns"].split(",")]
    if unknown := [name for name in names if name not in rows.columns]:
        raise UsageError(
            f"--columns: there is no column {unknown[0]!r}",
            hint=f"There are: {', '.join(rows.columns)}",
        )
    return rows.select(list(dict.fromkeys(names)))


def tell_file(out: Path, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Say which file was written."""
    from beaconframes.cli.showing import write_json

    size = out.stat().st_size
    if as_json:
        write_json({**told(state()), **facts, "file": str(out), "bytes": size})
    else:
        click.echo(f"{click.format_filename(out)}: {facts['rows']:,} rows, {size:,} bytes")


def write_file(rows: pl.DataFrame, out: Path, form: str | None, *, raw: bool) -> None:
    """Write a file whole or not at all."""
    from beaconframes.exports import export

    export(rows, upwards(out), format=form, raw=raw)


def write_text(rows: pl.DataFrame, form: str, *, raw: bool) -> None:
    """Write rows to standard output; to a terminal only what can be seen."""
    if sys.stdout.isatty():
        from beaconframes.frames import printable

        rows = printable(rows)
    with tempfile.TemporaryDirectory(prefix="beaconframes-") as folder:
        file = Path(folder) / f"rows.{form}"
        write_file(rows, file, form, raw=raw)
        flush()
        with file.open("rb") as source:
            shutil.copyfileobj(source, sys.stdout.buffer)
