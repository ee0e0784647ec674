"""Tables for a terminal and JSON, both with all text from the chain escaped."""

from __future__ import annotations

import json
import shutil
import unicodedata
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


def print_json(facts: Mapping[str, Any], rows: pl.DataFrame | None = None) -> None:
    """Print one JSON object; *rows* become its list ``"data"``, one line per row."""
    head = ",\n".join(f"{format_json(name)}: {format_json(value)}" for name, value in facts.items())
    if rows is None:
        click.echo(f"{{{head}}}")
        return
    click.echo(f'{{{head},\n"data": [', nl=False)
    for number, row in enumerate(rows.iter_rows(named=True)):
        click.echo(f"{',' if number else ''}\n{format_json(row)}", nl=False)
    click.echo("]}")


def print_lines(value: object) -> None:
    """Print the printed form of an object, line by line."""
    for line in str(value).splitlines():
        click.echo(visible(line))


def print_table(rows: pl.DataFrame, most: int) -> None:
    """Print the first *most* rows in the width of the terminal, then the numbers of hidden ones."""
    for line in format_table(rows, most, shutil.get_terminal_size((100, 24)).columns):
        click.echo(line)


def format_table(rows: pl.DataFrame, most: int, width: int) -> Iterator[str]:
    """Yield the lines of a table; of a wide one with few rows, one line for each column."""
    shown = rows.head(most)
    texts = {name: [format_cell(value) for value in shown[name].to_list()] for name in rows.columns}
    fitting = select_columns({n: [visible(n), *cells] for n, cells in texts.items()}, width)
    is_cut = len(fitting) < rows.width
    is_short = 0 < rows.height <= min(most, MAX_VERTICAL_ROWS)
    if is_cut and is_short and (lines := format_vertical(texts, width)):
        yield from lines
        return
    right = {name for name in fitting if rows.schema[name].is_numeric()}
    sizes = {n: max(map(display_width, [visible(n), *texts[n]])) for n in fitting}
    head = GAP.join(pad(visible(n), sizes[n], right=n in right) for n in fitting)
    yield click.style(head.rstrip(), bold=True)
    for number in range(shown.height):
        cells = (pad(texts[n][number], sizes[n], right=n in right) for n in fitting)
        yield GAP.join(cells).rstrip()
    hidden = []
    if rows.height > shown.height:
        count = rows.height - shown.height
        hidden.append(f"{count:,} more {'row' if count == 1 else 'rows'}")
    if rest := [visible(name) for name in rows.columns if name not in fitting]:
        noun = "column" if len(rest) == 1 else "columns"
        hidden.append(f"{len(rest)} more {noun}: {', '.join(rest)}")
    yield from (f"... {text}" for text in hidden)
    if not rows.height:
        yield "no rows"


def format_vertical(texts: Mapping[str, list[str]], width: int) -> list[str]:
    """Return one line for each column: its name, and its value in each row; [] if wider."""
    columns = [[visible(name) for name in texts], *zip(*texts.values(), strict=True)]
    sizes = [max(map(display_width, cells)) for cells in columns]
    if sum(sizes) + len(GAP) * (len(sizes) - 1) > width:
        return []
    lines = []
    for line in zip(*columns, strict=True):
        name, *cells = (pad(text, n, right=False) for text, n in zip(line, sizes, strict=True))
        lines.append(GAP.join([click.style(name, bold=True), *cells]).rstrip())
    return lines


def select_columns(texts: Mapping[str, list[str]], width: int) -> list[str]:
    """Return the first columns that fit into *width*; at least one."""
    fitting: list[str] = []
    used = -len(GAP)
    for name, cells in texts.items():
        used += max(map(display_width, cells)) + len(GAP)
        if used > width and fitting:
            break
        fitting.append(name)
    return fitting


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
