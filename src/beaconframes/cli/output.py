"""Output of rows: a table on the terminal, a file, text on standard output, or JSON."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from beaconframes.cli.messages import replace_arguments
from beaconframes.cli.rendering import list_lines, print_result
from beaconframes.cli.runner import current_state, flush_output
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from beaconframes.cli.runner import RunState

TEXT_FORMATS = ("csv", "jsonl")
"""Formats for standard output."""
MAX_MISSING_IN_JSON = 1000
"""Largest number of missing rows in the JSON output."""


@dataclass(frozen=True)
class Output:
    """The options of a command that prints or writes rows.

    Parameters
    ----------
    out
        Write all rows to this file: .parquet, .csv, .jsonl, .arrow and others.
    format
        Format of the file: parquet, csv, jsonl, arrow or xlsx. Without --out, write csv or jsonl to
        standard output.
    unit
        Convert all amounts from gwei and wei to this unit: exactly; in Excel files, as numbers.
    columns
        Columns, separated by commas; the default is all.
    rows
        Number of rows in the table on the terminal.
    """

    out: Path | None = None
    format: Annotated[str | None, "TEXT"] = None
    overwrite: bool = False
    raw: bool = False
    unit: Annotated[str | None, click.Choice(["eth"], case_sensitive=False)] = None
    columns: Annotated[Sequence[str] | None, "TEXT"] = None
    rows: Annotated[int, click.IntRange(min=0)] = 10

    def __post_init__(self) -> None:
        """Validate the options before any request."""
        if self.out is not None:
            from beaconframes.exports.formats import require_format
            from beaconframes.exports.targets import parse_target

            require_format(self.out.name)
            parse_target(resolve_target(self.out), self.format)
            check_target(self.out, overwrite=self.overwrite)
        elif self.format is not None and self.format not in TEXT_FORMATS:
            raise UsageError(
                f"--format {self.format} needs --out",
                hint=f"Formats for standard output are {' and '.join(TEXT_FORMATS)}",
            )
        if self.format is not None and self.out is None and current_state().as_json:
            raise UsageError("--json and --format exclude each other", hint="Use one of them")

    def select(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows with the chosen columns, in the chosen unit."""
        if self.unit is not None:
            from beaconframes.units import to_eth

            # Excel has floating-point numbers; it does not add up exact decimals, which are text.
            is_excel = self.out is not None and self.out.suffix.lower() == ".xlsx"
            rows = to_eth(rows, exact=not is_excel)
        if self.columns is None:
            return rows
        if unknown := [name for name in self.columns if name not in rows.columns]:
            from beaconframes.column_errors import explain_unknown_column, format_command

            message, hint = explain_unknown_column(
                f"--columns: there is no column {unknown[0]!r}",
                unknown[0],
                rows.columns,
                format_command,
            )
            raise UsageError(message, hint=hint)
        return rows.select(list(dict.fromkeys(self.columns)))

    def write(self, rows: pl.DataFrame, facts: Mapping[str, Any], *, raw: bool = False) -> None:
        """Write rows to the chosen place; *raw* rows are written as with the option."""
        rows, raw = self.select(rows), raw or self.raw
        if self.out is not None:
            write_file(rows, self.out, self.format, raw=raw)
            report_file(self.out, {**facts, "rows": rows.height})
        elif self.format is not None:
            write_text(rows, self.format, raw=raw)
        else:
            facts = {**completeness_facts(current_state()), **facts, "rows": rows.height}
            print_result(facts, list_lines(rows, self.rows), rows)


@dataclass(frozen=True)
class OutputFile:
    """The options of a command that writes a picture.

    Parameters
    ----------
    out
        The file to write.
    """

    out: Path
    overwrite: bool = False

    def __post_init__(self) -> None:
        """Validate the options before any request."""
        check_target(self.out, overwrite=self.overwrite)


def check_target(out: Path, *, overwrite: bool) -> None:
    """Refuse a target that is not a file, or that exists without --overwrite."""
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
    if out.exists() and not overwrite:
        raise DatasetError(f"{out} already exists", hint="Add --overwrite to replace it")


def resolve_target(out: Path) -> Path:
    """Return the absolute path of a target; unlike a name from data, it may contain ``..``."""
    return out.parent.resolve() / out.name


def completeness_facts(state: RunState) -> dict[str, Any]:
    """Return for JSON whether rows are missing, which ones, and the warnings."""
    frames = [warning.missing for warning in state.missing if warning.missing is not None]
    rows = [row for frame in frames for row in frame.head(MAX_MISSING_IN_JSON).to_dicts()]
    return {
        "complete": state.is_complete,
        "warnings": [replace_arguments(str(warning), state.options) for warning in state.warnings],
        "missing": rows[:MAX_MISSING_IN_JSON],
    }


def report_file(out: Path, facts: Mapping[str, Any]) -> None:
    """Print the name and the size of a written file."""
    size = out.stat().st_size
    rows = f"{count_rows(facts['rows'])}, " if "rows" in facts else ""
    print_result(
        {**completeness_facts(current_state()), **facts, "file": str(out), "bytes": size},
        [f"{click.format_filename(out)}: {rows}{size:,} bytes"],
    )


def count_rows(number: int) -> str:
    """Return a number of rows as text."""
    return f"{number:,} row{'' if number == 1 else 's'}"


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
