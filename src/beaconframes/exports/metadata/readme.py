"""``README.md``: the contents of the dataset, for readers of the folder."""

from __future__ import annotations

import json
import re
from typing import Any

from beaconframes.dataset.published import find_last_epoch
from beaconframes.exports.metadata.citation import build_reference
from beaconframes.text import visible

READ_CALLS = {
    "parquet": 'pl.scan_parquet("{name}/**/*.parquet", hive_partitioning=False).collect()',
    "csv": 'pl.scan_csv("{name}/**/*.csv", try_parse_dates=True).collect()',
    "jsonl": 'pl.scan_ndjson("{name}/**/*.jsonl", infer_schema_length=None, '
    "schema_overrides={types}).collect()",
    "arrow": 'pl.scan_ipc("{name}/**/*.arrow").collect()',
}
COLUMNS = (
    "`dictionary.csv` describes every column. The end of a name is its unit: `_gwei` is a whole "
    "number of gwei, `_wei` a whole number of wei with up to 28 digits, which a floating-point "
    "number would round. Times are UTC. `manifest.json` lists every file with its SHA-256; other "
    "files are not part of the dataset. `datapackage.json` (Frictionless) and `croissant.json` "
    "(Croissant) are the same metadata for programs."
)
ESCAPED = (
    "Text and column names that start like a formula, or with an apostrophe, have an apostrophe in "
    "front, so that spreadsheets do not run them. Remove the first apostrophe to get the original "
    "text."
)
MAX_GAPS = 20
"""Gaps that are listed here; the manifest lists all of them."""


def build_readme(manifest: dict[str, Any]) -> str:
    """Return the README of a dataset."""
    tables = manifest["tables"]
    sections = [
        f"# {escape(manifest['title'])}",
        build_warnings(manifest),
        build_contents(tables),
        build_examples(tables, has_loaders=states_head(manifest)),
        build_provenance(manifest),
        build_gaps(tables),
        f"## Citation\n\n{escape(build_reference(manifest))}\n\nSee also `CITATION.cff`.",
    ]
    if manifest["license"]:
        sections.append(f"## License\n\n{escape(manifest['license'])}")
    return "\n\n".join(section for section in sections if section) + "\n"


def build_warnings(manifest: dict[str, Any]) -> str:
    """Return the warnings that come first: simulated data, missing rows."""
    warnings = []
    if manifest["provenance"]["simulated"]:
        warnings.append("**The data is simulated**: this chain does not exist.")
    if not manifest["complete"]:
        warnings.append("**The dataset is incomplete**: the missing rows are listed below.")
    return "\n\n".join(warnings)


def build_contents(tables: dict[str, Any]) -> str:
    """Return the list of tables, and a note on their columns."""
    lines = [
        "## Contents",
        "",
        "| table | rows | files | sorted by | description |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, t in tables.items():
        sorted_by = ", ".join(f"`{escape(column)}`" for column in t.get("sorted_by") or ())
        cells = (f"`{name}`", f"{t['rows']:,}", f"{len(t['files']):,}", sorted_by)
        lines.append(f"| {' | '.join(cells)} | {escape(t['title'])} |")
    lines += ["", COLUMNS]
    if any(t["format"] == "csv" and not t["raw"] for t in tables.values()):
        lines += ["", ESCAPED]
    return "\n".join(lines)


def states_head(manifest: dict[str, Any]) -> bool:
    """Return whether a dataset states its chain and its head, without which loaders have no rows.

    A dataset of frames does not.
    """
    provenance = manifest["provenance"]
    chain = provenance.get("chain")
    if not isinstance(chain, dict):
        return False
    stated = (provenance.get(name) for name in ("latest_epoch", "finalized_epoch"))
    last = find_last_epoch(manifest, chain["slots_per_epoch"])
    return any(epoch is not None for epoch in (*stated, last))


def build_examples(tables: dict[str, Any], *, has_loaders: bool) -> str:
    """Return code that reads each table with a common library, and with loaders."""
    lines = [
        f"{name} = {READ_CALLS[table['format']].format(name=name, types=build_types(table))}"
        for name, table in tables.items()
    ]
    body = "\n".join(["import polars as pl", "", *lines])
    examples = f"## How to read it\n\n```python\n{body}\n```"
    if not has_loaders:
        return examples
    return f"{examples}\n\nWith beaconframes, loaders read it after `bf.open(folder)`."


def build_types(table: dict[str, Any]) -> str:
    """Return the types that polars cannot infer from JSON Lines: a file may contain only nulls."""
    types = {column["name"]: get_read_type(column["type"]) for column in table["columns"]}
    # A backtick in a name would end the code block.
    names = {name: json.dumps(name).replace("`", r"\u0060") for name in types}
    overrides = (f"{names[name]}: pl.{dtype}" for name, dtype in types.items() if dtype)
    return f"{{{', '.join(overrides)}}}"


def get_read_type(dtype: str) -> str:
    """Return the type with which polars reads a column from JSON Lines; "" to infer it."""
    inner = re.fullmatch(r"List\((.*)\)", dtype)
    if inner is not None:
        item_type = get_read_type(inner[1])
        return item_type and f"List(pl.{item_type})"
    if dtype.startswith(("Array", "Struct", "Null")):
        return ""
    if dtype in ("Boolean", "Int32", "Int64", "UInt32", "UInt64"):
        return dtype
    if dtype.startswith("Float"):
        return "Float64"
    is_small = dtype in ("Int8", "Int16", "UInt8", "UInt16") or dtype.startswith("Duration")
    return "Int64" if is_small else "String"


def build_provenance(manifest: dict[str, Any]) -> str:
    """Return the source of the rows."""
    provenance = manifest["provenance"]
    lines = ["## Provenance", ""]
    if provenance["service"]:
        lines.append(f"- Service: {escape(provenance['service'])}")
    if provenance["chain"]:
        lines.append(f"- Chain: {escape(provenance['chain']['name'])}")
    if provenance["finalized_epoch"] is not None:
        lines.append(f"- Final up to epoch {provenance['finalized_epoch']:,}")
    lines += [f"- Endpoint: `{escape(route)}`" for route in provenance["endpoints"]]
    for name, table in manifest["tables"].items():
        if table["request"]:
            request = describe_values(
                {k: escape(v) for k, v in table["request"].items() if v is not None}
            )
            lines.append(f"- Request for `{name}`: {request}")
    lines.append(f"- Software: {provenance['software']}")
    return "\n".join(lines)


def build_gaps(tables: dict[str, Any]) -> str:
    """Return the list of missing rows."""
    gaps = [(name, gap) for name, table in tables.items() for gap in table["gaps"]]
    if not gaps:
        return ""
    lines = ["## Missing rows", ""]
    lines += [f"- `{name}`: {escape(describe_values(gap))}" for name, gap in gaps[:MAX_GAPS]]
    if len(gaps) > MAX_GAPS:
        lines.append(f"- and {len(gaps) - MAX_GAPS:,} more, listed in `manifest.json`")
    return "\n".join(lines)


def describe_values(values: dict[str, Any]) -> str:
    """Return names and values as text."""
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)


def escape(value: object) -> str:
    """Return a value on one line, escaped for Markdown."""
    return visible(value, 500).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
