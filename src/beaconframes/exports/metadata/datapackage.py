"""``datapackage.json``: the metadata format of Frictionless Data."""

from __future__ import annotations

from typing import Any

from beaconframes.exports.formats import FORMATS, CellOptions
from beaconframes.exports.formats.cells import escape_names

READABLE_FORMATS = ("parquet", "csv")
"""The formats whose rows Frictionless reads. Other formats are described as plain files."""


def build_datapackage(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the data package of a dataset, with a resource per file."""
    package: dict[str, Any] = {
        "profile": "data-package",
        "name": manifest["name"].replace("_", "-"),
        "id": manifest["checksum"],
        "title": manifest["title"],
    }
    if manifest["url"]:
        package["homepage"] = manifest["url"]
    if manifest["license"]:
        package["licenses"] = [{"name": manifest["license"]}]
    if manifest["creators"]:
        package["contributors"] = [
            {"title": name, "role": "author"} for name in manifest["creators"]
        ]
    if manifest["provenance"]["service"]:
        package["sources"] = [{"title": str(manifest["provenance"]["service"])}]
    return package | {
        "resources": [
            build_resource(name, table, file, number)
            for name, table in manifest["tables"].items()
            for number, file in enumerate(table["files"])
        ]
    }


def build_resource(
    name: str, table: dict[str, Any], file: dict[str, Any], number: int
) -> dict[str, Any]:
    """Return the entry of one file of a table."""
    resource = {
        "name": f"{name.replace('_', '-')}-{number:06d}",
        "path": file["path"],
        "mediatype": FORMATS[table["format"]].media_type,
        "hash": f"sha256:{file['sha256']}",
    }
    if table["format"] != "parquet":
        # The validator of Frictionless does not support the size of Parquet files.
        resource["bytes"] = file["bytes"]
    if table["format"] not in READABLE_FORMATS:
        return {**resource, "type": "file"}
    fields = [
        {
            "name": header,
            "type": get_field_type(column["type"]),
            "description": describe_column(column),
        }
        for header, column in zip(get_column_names(table), table["columns"], strict=True)
    ]
    key = {"primaryKey": table["key"]} if table["key"] and table["format"] != "parquet" else {}
    return resource | {
        "profile": "tabular-data-resource",
        "format": table["format"],
        "encoding": "utf-8",
        "schema": {"fields": fields, "missingValues": [""], **key},
    }


def get_column_names(table: dict[str, Any]) -> list[str]:
    """Return the names of the columns in the files: formulas are escaped in CSV."""
    names = [column["name"] for column in table["columns"]]
    return escape_names(names, CellOptions(table["raw"])) if table["format"] == "csv" else names


def describe_column(column: dict[str, Any]) -> str:
    """Return the meaning and the unit of a column."""
    unit = f" Unit: {column['unit']}." if column["unit"] else ""
    return f"{column['meaning']}{unit}".strip()


def get_field_type(dtype: str) -> str:
    """Return the type of a column in Frictionless."""
    if dtype.startswith(("Int", "UInt")):
        return "integer"
    if dtype.startswith(("Decimal", "Float")):
        return "number"
    if dtype.startswith("List"):
        return "array"
    if dtype.startswith("Datetime"):
        return "datetime"
    return {"Boolean": "boolean", "String": "string"}.get(dtype, "any")
