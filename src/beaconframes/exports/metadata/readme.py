"""``README.md``: what the dataset is, for whoever opens the folder."""

from __future__ import annotations

import json
import re
from typing import Any

from beaconframes.exports.metadata.citation import reference
from beaconframes.text import visible

READ = {
    "parquet": 'pl.scan_parquet("{name}/**/*.parquet", hive_partitioning=False).collect()',
    "csv": 'pl.scan_csv("{name}/**/*.csv", try_parse_dates=True).collect()',
    "jsonl": 'pl.scan_ndjson("{name}/**/*.jsonl", infer_schema_length=None, '
    "schema_overrides={types}).collect()",
    "arrow": 'pl.scan_ipc("{name}/**/*.arrow").collect()',
    "xlsx": 'pl.read_excel("{name}/00000.xlsx")',
    "duckdb": 'duckdb.connect("{name}/00000.duckdb", read_only=True).table("rows").pl()',
}
COLUMNS = (
    "`dictionary.csv` says of every column what it is. The end of a name is its unit: `_gwei` is a "
    "whole number of gwei, `_wei` one of wei with up to 28 digits, which must not become a "
    "floating-point number. Times are UTC. `manifest.json` has every file with its SHA-256; a file "
    "that it does not name is no part of the dataset. `datapackage.json` (Frictionless) and "
    "`croissant.json` (Croissant) say the same to programs."
)
GUARDED = (
    "Text that begins like a formula, or with an apostrophe, has an apostrophe in front, be it the "
    "name of a column, so that a spreadsheet does not run it. Take off the first apostrophe of a "
    "text to have it as it was."
)
GAPS = 20
"""Gaps that are listed; the manifest has all of them."""


def text(told: dict[str, Any]) -> str:
    """Return the README of a dataset whose manifest says *told*."""
    sections = [
        f"# {shown(told['title'])}",
        state(told),
        contents(told["tables"]),
        reading(told["tables"]),
        provenance(told),
        gaps(told["tables"]),
        f"## How to cite it\n\n{shown(reference(told))}\n\n`CITATION.cff` says the same.",
    ]
    if told["license"]:
        sections.append(f"## License\n\n{shown(told['license'])}")
    return "\n\n".join(section for section in sections if section) + "\n"


def state(told: dict[str, Any]) -> str:
    """Return what must be known before anything else."""
    said = []
    if told["provenance"]["simulated"]:
        said.append("**The data is simulated**: it is of a chain that never was.")
    if not told["complete"]:
        said.append("**It is not complete**: what is missing is listed below.")
    return "\n\n".join(said)


def contents(tables: dict[str, Any]) -> str:
    """Return the tables, and what the columns are."""
    lines = [
        "## What is in it",
        "",
        "| table | rows | files | sorted by | a row |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{name}` | {t['rows']:,} | {len(t['files']):,} | {order(t)} | {shown(t['title'])} |"
        for name, t in tables.items()
    ]
    lines += [
        "",
        COLUMNS,
    ]
    guarded = [n for n, t in tables.items() if t["format"] in ("csv", "xlsx") and not t["raw"]]
    if guarded:
        lines += [
            "",
            GUARDED,
        ]
    return "\n".join(lines)


def order(table: dict[str, Any]) -> str:
    """Return the columns by which the rows of a table lie in order."""
    return ", ".join(f"`{shown(name)}`" for name in table.get("sorted_by") or ())


def reading(tables: dict[str, Any]) -> str:
    """Return how to read it, with nothing but a library that everybody has."""
    forms = {table["format"] for table in tables.values()}
    imports = ["import duckdb"] if "duckdb" in forms else ["import polars as pl"]
    lines = [
        f"{name} = {READ[table['format']].format(name=name, types=types(table))}"
        for name, table in tables.items()
    ]
    body = "\n".join([*imports, "", *lines])
    return (
        f"## How to read it\n\n```python\n{body}\n```\n\nWith beaconframes, "
        "`bf.local(folder)` serves it to every loader."
    )


def types(table: dict[str, Any]) -> str:
    """Return what polars has to know of JSON lines: the first file may have nulls alone."""
    found = {column["name"]: json_type(column["type"]) for column in table["columns"]}
    # No name may end the block of code that it stands in.
    shown = {name: json.dumps(name).replace("`", r"\u0060") for name in found}
    known = (f"{shown[name]}: pl.{kind}" for name, kind in found.items() if kind)
    return f"{{{', '.join(known)}}}"


def json_type(kind: str) -> str:
    """Return as what polars reads a type from JSON lines; "" where it has to find out."""
    inner = re.fullmatch(r"List\((.*)\)", kind)
    if inner is not None:
        found = json_type(inner[1])
        return found and f"List(pl.{found})"
    if kind.startswith(("Array", "Struct", "Null")):
        return ""
    if kind in ("Boolean", "Int32", "Int64", "UInt32", "UInt64"):
        return kind
    if kind.startswith("Float"):
        return "Float64"
    small = kind in ("Int8", "Int16", "UInt8", "UInt16") or kind.startswith("Duration")
    return "Int64" if small else "String"


def provenance(told: dict[str, Any]) -> str:
    """Return where it is from."""
    facts = told["provenance"]
    lines = ["## Where it is from", ""]
    if facts["service"]:
        lines.append(f"- Service: {shown(facts['service'])}")
    if facts["chain"]:
        lines.append(f"- Chain: {shown(facts['chain']['name'])}")
    if facts["finalized_epoch"] is not None:
        lines.append(f"- Final up to epoch {facts['finalized_epoch']:,}")
    lines += [f"- Endpoint: `{shown(route)}`" for route in facts["endpoints"]]
    for name, table in told["tables"].items():
        if table["request"]:
            asked = ", ".join(
                f"{k} {shown(v)}" for k, v in table["request"].items() if v is not None
            )
            lines.append(f"- Asked for `{name}`: {asked}")
    lines.append(f"- Made with {facts['software']}")
    return "\n".join(lines)


def gaps(tables: dict[str, Any]) -> str:
    """Return what is missing."""
    every = [(name, gap) for name, table in tables.items() for gap in table["gaps"]]
    if not every:
        return ""
    lines = ["## What is missing", ""]
    lines += [f"- `{name}`: {shown(words(gap))}" for name, gap in every[:GAPS]]
    if len(every) > GAPS:
        lines.append(f"- and {len(every) - GAPS:,} more: `manifest.json` lists them")
    return "\n".join(lines)


def words(gap: dict[str, Any]) -> str:
    """Return one gap in words."""
    return ", ".join(f"{name} {value}" for name, value in gap.items() if value is not None)


def shown(value: object) -> str:
    """Return a value on one line, as Markdown shows it."""
    return visible(value, 500).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
