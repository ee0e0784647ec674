"""``datapackage.json``: the dataset in the words of Frictionless Data."""

from __future__ import annotations

from typing import Any

from beaconframes.publish.formats import FORMATS

READABLE = {"parquet": "parquet", "csv": "csv", "jsonl": "ndjson", "xlsx": "xlsx"}
"""What Frictionless calls the formats whose rows it reads; of others it knows the files alone."""


def package(told: dict[str, Any]) -> dict[str, Any]:
    """Return the data package of a dataset whose manifest says *told*: a resource per file."""
    found: dict[str, Any] = {
        "profile": "data-package",
        "name": told["name"].replace("_", "-"),
        "id": told["checksum"],
        "title": told["title"],
    }
    if told["url"]:
        found["homepage"] = told["url"]
    if told["license"]:
        found["licenses"] = [{"name": told["license"]}]
    if told["creators"]:
        found["contributors"] = [{"title": name, "role": "author"} for name in told["creators"]]
    if told["provenance"]["service"]:
        found["sources"] = [{"title": str(told["provenance"]["service"])}]
    return found | {
        "resources": [
            resource(name, table, file, number)
            for name, table in told["tables"].items()
            for number, file in enumerate(table["files"])
        ]
    }


def resource(name: str, table: dict[str, Any], file: dict[str, Any], number: int) -> dict[str, Any]:
    """Return one file of a table."""
    form = FORMATS[table["format"]]
    found = {
        "name": f"{name.replace('_', '-')}-{number:06d}",
        "path": file["path"],
        "mediatype": form.media_type,
        "bytes": file["bytes"],
        "hash": f"sha256:{file['sha256']}",
    }
    if table["format"] not in READABLE or form.several:
        return found
    fields = [
        {
            "name": column["name"],
            "type": kind(column["type"], table["format"]),
            "description": described(column),
        }
        for column in table["columns"]
    ]
    key = {"primaryKey": table["key"]} if table["key"] and table["format"] != "parquet" else {}
    return found | {
        "profile": "tabular-data-resource",
        "format": READABLE[table["format"]],
        "encoding": "utf-8",
        "schema": {"fields": fields, "missingValues": [""], **key},
    }


def described(column: dict[str, Any]) -> str:
    """Return what a column means, and in which unit it counts."""
    unit = f" Unit: {column['unit']}." if column["unit"] else ""
    return f"{column['meaning']}{unit}".strip()


def kind(dtype: str, form: str) -> str:
    """Return what Frictionless calls a type in files of this format."""
    if dtype.startswith("Int"):
        return "integer"
    if dtype.startswith("Decimal"):
        # JSON has no number for wei.
        return "string" if form in ("jsonl", "xlsx") else "number"
    if dtype.startswith("Float"):
        return "number"
    if dtype.startswith("List"):
        return "array"
    if dtype.startswith("Datetime"):
        return "datetime" if form in ("parquet", "csv") else "string"
    return {"Boolean": "boolean", "String": "string"}.get(dtype, "any")
