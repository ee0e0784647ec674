"""``datapackage.json``: the dataset in the words of Frictionless Data."""

from __future__ import annotations

from typing import Any

from beaconframes.exports.formats import FORMATS, Cells
from beaconframes.exports.formats.cells import headers

READABLE = ("parquet", "csv")
"""The formats whose rows Frictionless reads by itself; of others it knows the files alone."""


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
        "hash": f"sha256:{file['sha256']}",
    }
    if table["format"] != "parquet":
        # Its own validator does not count the bytes of Parquet files, and then says they differ.
        found["bytes"] = file["bytes"]
    if table["format"] not in READABLE:
        return {**found, "type": "file"}
    fields = [
        {
            "name": called,
            "type": kind(column["type"]),
            "description": described(column),
        }
        for called, column in zip(names(table), table["columns"], strict=True)
    ]
    key = {"primaryKey": table["key"]} if table["key"] and table["format"] != "parquet" else {}
    return found | {
        "profile": "tabular-data-resource",
        "format": table["format"],
        "encoding": "utf-8",
        "schema": {"fields": fields, "missingValues": [""], **key},
    }


def names(table: dict[str, Any]) -> list[str]:
    """Return what the columns are called in the files: a spreadsheet is not to run it."""
    given = [column["name"] for column in table["columns"]]
    return headers(given, Cells(table["raw"])) if table["format"] == "csv" else given


def described(column: dict[str, Any]) -> str:
    """Return what a column means, and in which unit it counts."""
    unit = f" Unit: {column['unit']}." if column["unit"] else ""
    return f"{column['meaning']}{unit}".strip()


def kind(dtype: str) -> str:
    """Return what Frictionless calls a type."""
    if dtype.startswith("Int"):
        return "integer"
    if dtype.startswith(("Decimal", "Float")):
        return "number"
    if dtype.startswith("List"):
        return "array"
    if dtype.startswith("Datetime"):
        return "datetime"
    return {"Boolean": "boolean", "String": "string"}.get(dtype, "any")
