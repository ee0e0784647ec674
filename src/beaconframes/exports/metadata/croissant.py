"""``croissant.json``: the dataset in the words of Croissant, as dataset search engines read it."""

from __future__ import annotations

from typing import Any

from beaconframes.exports.formats import FORMATS
from beaconframes.exports.metadata.citation import reference
from beaconframes.exports.metadata.datapackage import described, names

VERSION = "http://mlcommons.org/croissant/1.0"
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
FIELDS = ("parquet", "csv", "jsonl")
"""The formats whose columns Croissant can name."""


def metadata(told: dict[str, Any]) -> dict[str, Any]:
    """Return the Croissant metadata of a dataset whose manifest says *told*."""
    found: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
        "name": told["name"],
        "description": told["title"],
        "citeAs": reference(told),
        "version": "1.0.0",
    }
    if told["provenance"]["finalized_time"]:
        # The rows say how the chain was then, whenever they were written.
        found["datePublished"] = told["provenance"]["finalized_time"][:10]
    if told["license"]:
        found["license"] = told["license"]
    if told["url"]:
        found["url"] = told["url"]
    if told["creators"]:
        found["creator"] = [{"@type": "sc:Person", "name": name} for name in told["creators"]]
    tables = told["tables"]
    return found | {
        "distribution": [
            *(file_object(table, file) for table in tables.values() for file in table["files"]),
            *(file_set(name, table) for name, table in tables.items()),
        ],
        "recordSet": [
            record_set(name, table) for name, table in tables.items() if table["format"] in FIELDS
        ],
    }


def file_object(table: dict[str, Any], file: dict[str, Any]) -> dict[str, Any]:
    """Return one file, by its hash."""
    return {
        "@type": "cr:FileObject",
        "@id": file["path"],
        "name": file["path"],
        "contentUrl": file["path"],
        "contentSize": f"{file['bytes']} B",
        "encodingFormat": media_type(table),
        "sha256": file["sha256"],
    }


def file_set(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return all files of a table."""
    ending = FORMATS[table["format"]].endings[0]
    return {
        "@type": "cr:FileSet",
        "@id": f"{name}-files",
        "name": f"{name}-files",
        "description": f"All files of the table {name}.",
        "encodingFormat": media_type(table),
        "includes": f"{name}/**/*{ending}" if table["partition_key"] else f"{name}/*{ending}",
    }


def record_set(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a table."""
    found: dict[str, Any] = {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": table["title"],
    }
    if table["key"]:
        found["key"] = [{"@id": f"{name}/{column}"} for column in table["key"]]
    return found | {
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column['name']}",
                "name": column["name"],
                "description": described(column) or column["name"],
                **kind(column["type"], table["format"]),
                "source": {
                    "fileSet": {"@id": f"{name}-files"},
                    "extract": {"column": called},
                },
            }
            for called, column in zip(names(table), table["columns"], strict=True)
        ]
    }


def media_type(table: dict[str, Any]) -> str:
    """Return what Croissant calls a format."""
    own = {"parquet": "application/x-parquet", "jsonl": "application/jsonlines"}
    return own.get(table["format"], FORMATS[table["format"]].media_type)


def kind(dtype: str, form: str) -> dict[str, Any]:
    """Return what Croissant calls a type; its integers have any number of digits."""
    if dtype.startswith("List(Int") and form != "csv":
        return {"dataType": "sc:Integer", "repeated": True}
    if dtype.startswith(("Int", "Decimal")):
        return {"dataType": "sc:Integer"}
    if dtype.startswith("Float"):
        return {"dataType": "sc:Float"}
    if dtype.startswith("Datetime"):
        return {"dataType": "sc:DateTime"}
    return {"dataType": "sc:Boolean" if dtype == "Boolean" else "sc:Text"}
