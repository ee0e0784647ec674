"""``dictionary.csv``: every column of every table, its type, its unit and what it means."""

from __future__ import annotations

from typing import Any

import polars as pl

COLUMNS = ("table", "column", "type", "unit", "key", "meaning")


def text(told: dict[str, Any]) -> str:
    """Return the dictionary of a dataset whose manifest says *told*."""
    rows = [
        (name, c["name"], c["type"], c["unit"], "yes" if c["key"] else "", c["meaning"])
        for name, table in told["tables"].items()
        for c in table["columns"]
    ]
    schema = dict.fromkeys(COLUMNS, pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row").write_csv()
