"""Tables for a terminal and JSON, both with all text from the chain escaped."""

from __future__ import annotations

import json
import shutil
import unicodedata
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.runner import current_state
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import polars as pl

MAX_CELL_WIDTH = 40
"""Characters of a cell; the beginning of a public key is enough to recognize it."""

GAP = "  "
MAX_VERTICAL_ROWS = 3
"""The most rows of a table, wider than the terminal, that is printed with a line per column."""


def encode_value(value: Any) -> Any:
    """Return a value as JSON stores it, exactly: decimals as text, times in ISO 8601."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    raise TypeError(f"{type(value).__name__} cannot be converted to JSON")  # pragma: no cover


def format_json(value: Any) -> str:
    """Return *value* as JSON in ASCII; a JSON parser restores every text."""
    return json.dumps(value, default=encode_value).replace("\x7f", "\\u007f")


def print_result(
    facts: Mapping[str, Any], lines: Iterable[str], rows: pl.DataFrame | None = None
) -> None:
    """Print *lines*; or with ``--json`` one object of the *facts*, and *rows* as its ``"data"``."""
    if not current_state().as_json:
        for line in lines:
            click.echo(line)
        return
    head = ",\n".join(f"{format_json(name)}: {format_json(value)}" for name, value in facts.items())
    if rows is None:
        click.echo(f"{{{head}}}")
        return
    click.echo(f'{{{head},\n"data": [', nl=False)
    for number, row in enumerate(rows.iter_rows(named=True)):
        click.echo(f"{',' if number else ''}\n{format_json(row)}", nl=False)
    click.echo("]}")


def print_object(facts: Mapping[str, Any], value: object) -> None:
    """Print an object as Python does, line by line; or with ``--json`` the *facts*."""
    print_result(facts, map(visible, str(value).splitlines()))


def list_lines(rows: pl.DataFrame, most: int | None = None) -> Iterator[str]:
    """Return the lines of a table with all or the first *most* rows, in the terminal's width."""
    width = shutil.get_terminal_size((100, 24)).columns
    return format_table(rows, rows.height if most is None else most, width)


def format_table(rows: pl.DataFrame, most: int, width: int) -> Iterator[str]:
    """Yield the lines of a table; of a wide one with few rows, one line for each column."""
    shown = rows.head(most)
    columns = [[visible(n), *map(format_cell, shown[n].to_list())] for n in rows.columns]
    fitting = count_fitting(columns, width)
    if fitting < len(columns) and 0 < rows.height <= min(most, MAX_VERTICAL_ROWS):
        lines = align([*zip(*columns, strict=True)])
        if display_width(GAP.join(lines[0])) <= width:
            for name, *cells in lines:
                yield GAP.join([click.style(name, bold=True), *cells]).rstrip()
            return
    right = {number for number, dtype in enumerate(rows.dtypes) if dtype.is_numeric()}
    for number, cells in enumerate(align(columns[:fitting], right)):
        text = GAP.join(cells).rstrip()
        yield text if number else click.style(text, bold=True)
    hidden = []
    if rows.height > shown.height:
        count = rows.height - shown.height
        hidden.append(f"{count:,} more {'row' if count == 1 else 'rows'}")
    if rest := [name for name, *_ in columns[fitting:]]:
        noun = "column" if len(rest) == 1 else "columns"
        hidden.append(f"{len(rest)} more {noun}: {', '.join(rest)}")
    yield from (f"... {text}" for text in hidden)
    if not rows.height:
        yield "no rows"


def count_fitting(columns: Sequence[Sequence[str]], width: int) -> int:
    """Return how many of the first columns fit into *width*; at least one."""
    ends = accumulate(max(map(display_width, column)) + len(GAP) for column in columns)
    return max(1, sum(end - len(GAP) <= width for end in ends))


def align(columns: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[list[str]]:
    """Return the cells of each line, padded to the width of their columns."""
    padded = []
    for number, column in enumerate(columns):
        size = max(map(display_width, column))
        padded.append([pad(text, size, right=number in right) for text in column])
    return [list(line) for line in zip(*padded, strict=True)]


def format_cell(value: Any) -> str:
    """Return one value as text on one line."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, bool):
        return "true" if value else "false"
    return visible(value, MAX_CELL_WIDTH)


def display_width(text: str) -> int:
    """Return the number of terminal columns of a text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def pad(text: str, size: int, *, right: bool) -> str:
    """Pad a text to *size* terminal columns."""
    space = " " * (size - display_width(text))
    return space + text if right else text + space
