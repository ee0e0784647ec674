"""Rows on a terminal, and JSON for machines: what a chain says moves neither."""

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
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

LONGEST = 40
"""Characters of a cell; a public key is cut, its beginning tells enough."""

GAP = "  "


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it, exactly: decimals as text, times in ISO 8601."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    raise TypeError(f"{type(value).__name__} has no JSON")  # pragma: no cover


def as_json(value: Any) -> str:
    """Return *value* as JSON in ASCII alone: a reader gets every text as the chain has it."""
    return json.dumps(value, default=plain).replace("\x7f", "\\u007f")


def write_json(facts: Mapping[str, Any], rows: pl.DataFrame | None = None) -> None:
    """Write one JSON object, on as many lines as there are rows under ``"data"``."""
    head = ",\n".join(f"{as_json(name)}: {as_json(value)}" for name, value in facts.items())
    if rows is None:
        click.echo(f"{{{head}}}")
        return
    click.echo(f'{{{head},\n"data": [', nl=False)
    for number, row in enumerate(rows.iter_rows(named=True)):
        click.echo(f"{',' if number else ''}\n{as_json(row)}", nl=False)
    click.echo("]}")


def write_table(rows: pl.DataFrame, most: int, columns: Iterable[str] = ()) -> None:
    """Write the first *most* rows as a table as wide as the terminal, and what it leaves out."""
    chosen = list(columns) or rows.columns
    for line in lines(rows.select(chosen), most, shutil.get_terminal_size((100, 24)).columns):
        click.echo(line)


def lines(rows: pl.DataFrame, most: int, width: int) -> Iterator[str]:
    """Yield the lines of a table."""
    shown = rows.head(most)
    texts = {name: [cell(value) for value in shown[name].to_list()] for name in rows.columns}
    fitting = fit({n: [visible(n), *cells] for n, cells in texts.items()}, width)
    right = {name for name in fitting if rows.schema[name].is_numeric()}
    sizes = {n: max(map(wide, [visible(n), *texts[n]])) for n in fitting}
    head = GAP.join(pad(visible(n), sizes[n], right=n in right) for n in fitting)
    yield click.style(head.rstrip(), bold=True)
    for number in range(shown.height):
        cells = (pad(texts[n][number], sizes[n], right=n in right) for n in fitting)
        yield GAP.join(cells).rstrip()
    left_out = []
    if rows.height > shown.height:
        left_out.append(f"{rows.height - shown.height:,} more rows")
    if rest := [visible(name) for name in rows.columns if name not in fitting]:
        left_out.append(f"{len(rest)} more columns: {', '.join(rest)}")
    yield from (f"... {text}" for text in left_out)
    if not rows.height:
        yield "no rows"


def fit(texts: Mapping[str, list[str]], width: int) -> list[str]:
    """Return the first columns, as many as fit; one at least."""
    fitting: list[str] = []
    used = -len(GAP)
    for name, cells in texts.items():
        used += max(map(wide, cells)) + len(GAP)
        if used > width and fitting:
            break
        fitting.append(name)
    return fitting


def cell(value: Any) -> str:
    """Return one value as a person reads it, on one line."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, bool):
        return "true" if value else "false"
    return visible(value, LONGEST)


def wide(text: str) -> int:
    """Return how many places of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def pad(text: str, size: int, *, right: bool) -> str:
    """Fill a text up to *size* places."""
    space = " " * (size - wide(text))
    return space + text if right else text + space
