"""Output of rows: a table on the terminal, a file, text on standard output, or JSON."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.common_options import FILE, json_option, overwrite_option, pop_options
from beaconframes.cli.rendering import print_json, print_table
from beaconframes.cli.runner import current_state, flush_output
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.cli.runner import RunState

TEXT_FORMATS = ("csv", "jsonl")
"""Formats for standard output."""
RAW_HELP = "Do not escape text that a spreadsheet runs as a formula."
MAX_MISSING_IN_JSON = 1000
"""Largest number of missing rows in the JSON output."""


def image_options() -> list[click.Parameter]:
    """Return the options of a command that loads an image."""
    return [
        click.Option(["--out"], type=FILE, help="Write the image to this file."),
        overwrite_option(),
        json_option(),
    ]


def output_options() -> list[click.Parameter]:
    """Return the options of a command that loads rows."""
    return [
        click.Option(
            ["--out"],
            type=FILE,
            help="Write all rows to this file: .parquet, .csv, .jsonl, .arrow and others.",
        ),
        click.Option(
            ["--format"],
            help="Format of the file: parquet, csv, jsonl, arrow, duckdb or xlsx. Without --out, "
            "write csv or jsonl to standard output.",
        ),
        overwrite_option(),
        click.Option(["--raw"], is_flag=True, help=RAW_HELP),
        json_option(),
        click.Option(
            ["--unit"],
            type=click.Choice(["eth"], case_sensitive=False),
            help="Convert all amounts from gwei and wei to this unit: exactly; in Excel files, "
            "as numbers.",
        ),
        click.Option(["--columns"], help="Columns, separated by commas; the default is all."),
        click.Option(
            ["--rows"],
            type=click.IntRange(min=0),
            default=10,
            show_default=True,
            help="Number of rows in the table on the terminal.",
        ),
    ]


NAMES = tuple(option.name for option in output_options() if option.name)


def pop_output_options(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the output options from *values*, and validate them before any request."""
    chosen = pop_options(values, NAMES)
    if chosen["out"] == Path("-"):
        raise UsageError("--out - is not a file", hint="Use --format csv without --out")
    if chosen["out"] is not None:
        _check_place(chosen["out"])
        _check_format(chosen["out"], chosen["format"])
        check_overwrite(chosen["out"], overwrite=chosen["overwrite"])
    elif chosen["format"] is not None and chosen["format"] not in TEXT_FORMATS:
        raise UsageError(
            f"--format {chosen['format']} needs --out",
            hint=f"Formats for standard output are {' and '.join(TEXT_FORMATS)}",
        )
    if chosen["format"] is not None and chosen["out"] is None and chosen["as_json"]:
        raise UsageError("--json and --format exclude each other", hint="Use one of them")
    return chosen


def check_target(out: Path, *, overwrite: bool) -> None:
    """Refuse a target that is not a file, or that exists without --overwrite."""
    _check_place(out)
    check_overwrite(out, overwrite=overwrite)


def _check_place(out: Path) -> None:
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder", hint="Name a file in it")
    if not out.parent.is_dir():
        raise UsageError(
            f"--out {out}: the folder {out.parent} does not exist", hint="Create it first"
        )
    if out.exists() and not out.is_file():
        raise UsageError(
            f"--out {out} is a device or a pipe, not a file",
            hint="Redirect standard output to it instead",
        )


def _check_format(out: Path, form: str | None) -> None:
    """Refuse a file name without the suffix of its format."""
    from beaconframes.exports.formats import FORMATS, find_format
    from beaconframes.exports.targets import parse_target

    if find_format(out.name) is None:
        raise UsageError(
            f"--out {out} does not end with the suffix of a format",
            hint=f"Suffixes: {', '.join(form.extensions[0] for form in FORMATS.values())}",
        )
    parse_target(resolve_target(out), form)


def resolve_target(out: Path) -> Path:
    """Return the absolute path of a target; unlike a name from data, it may contain ``..``."""
    return out.parent.resolve() / out.name


def check_overwrite(out: Path, *, overwrite: bool) -> None:
    """Refuse to replace a file without --overwrite."""
    if out.exists() and not overwrite:
        raise DatasetError(f"{out} already exists", hint="Add --overwrite to replace it")


def write_rows(rows: pl.DataFrame, chosen: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Write rows to the place that the output options choose."""
    rows = select_output(rows, chosen)
    if chosen["out"] is not None:
        write_file(rows, chosen["out"], chosen["format"], raw=chosen["raw"])
        report_file(chosen["out"], {**facts, "rows": rows.height}, as_json=chosen["as_json"])
    elif chosen["format"] is not None:
        write_text(rows, chosen["format"], raw=chosen["raw"])
    elif chosen["as_json"]:
        print_json({**completeness_facts(current_state()), **facts, "rows": rows.height}, rows)
    else:
        print_table(rows, chosen["rows"])


def completeness_facts(state: RunState) -> dict[str, Any]:
    """Return for JSON whether rows are missing, which ones, and the warnings."""
    frames = [warning.missing for warning in state.missing if warning.missing is not None]
    rows = [row for frame in frames for row in frame.head(MAX_MISSING_IN_JSON).to_dicts()]
    return {
        "complete": state.is_complete,
        "warnings": [str(warning) for warning in state.warnings],
        "missing": rows[:MAX_MISSING_IN_JSON],
    }


def select_output(rows: pl.DataFrame, chosen: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows with the columns and the unit of the output options."""
    if chosen["unit"] is not None:
        from beaconframes.units import to_eth

        # Excel has floating-point numbers; exact decimals would be text, which it does not add up.
        rows = to_eth(rows, exact=not _is_excel(chosen))
    if chosen["columns"] is None:
        return rows
    names = [name.strip() for name in chosen["columns"].split(",")]
    if unknown := [name for name in names if name not in rows.columns]:
        from beaconframes.column_errors import explain_unknown_column, format_command

        problem = f"--columns: there is no column {unknown[0]!r}"
        message, hint = explain_unknown_column(problem, unknown[0], rows.columns, format_command)
        raise UsageError(message, hint=hint)
    return rows.select(list(dict.fromkeys(names)))


def _is_excel(chosen: Mapping[str, Any]) -> bool:
    """Return whether the output is an Excel file."""
    from beaconframes.exports.formats import find_format

    form = None if chosen["out"] is None else find_format(chosen["out"].name)
    return "xlsx" in (chosen["format"], form and form.name)


def report_file(out: Path, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the name and the size of a written file."""
    size = out.stat().st_size
    if as_json:
        print_json(
            {**completeness_facts(current_state()), **facts, "file": str(out), "bytes": size}
        )
    else:
        rows = f"{facts['rows']:,} rows, " if "rows" in facts else ""
        click.echo(f"{click.format_filename(out)}: {rows}{size:,} bytes")


def write_file(rows: pl.DataFrame, out: Path, form: str | None, *, raw: bool) -> None:
    """Write a file atomically."""
    from beaconframes.exports import export

    export(rows, resolve_target(out), format=form, raw=raw, overwrite=True)


def write_text(rows: pl.DataFrame, form: str, *, raw: bool) -> None:
    """Write rows to standard output; a terminal gets visible characters only."""
    if sys.stdout.isatty():
        from beaconframes.frames import printable

        rows = printable(rows)
    with tempfile.TemporaryDirectory(prefix="beaconframes-") as folder:
        file = Path(folder) / f"rows.{form}"
        write_file(rows, file, form, raw=raw)
        flush_output()
        with file.open("rb") as source:
            shutil.copyfileobj(source, sys.stdout.buffer)
