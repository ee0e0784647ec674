"""``croissant.json``: the metadata format of dataset search engines."""

from __future__ import annotations

import re
from typing import Any

from beaconframes.exports.formats import FORMATS
from beaconframes.exports.metadata.citation import build_reference
from beaconframes.exports.metadata.datapackage import describe_column, get_column_names

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
FORMATS_WITH_FIELDS = ("parquet", "csv", "jsonl")
"""The formats whose columns Croissant can describe."""


def build_croissant(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the Croissant metadata of a dataset."""
    metadata: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
        "name": manifest["name"],
        "description": manifest["title"],
        "citeAs": build_reference(manifest),
        "version": "1.0.0",
    }
    if manifest["provenance"]["finalized_time"]:
        # The date of the rows, not that of the export.
        metadata["datePublished"] = manifest["provenance"]["finalized_time"][:10]
    if manifest["license"]:
        metadata["license"] = manifest["license"]
    if manifest["url"]:
        metadata["url"] = manifest["url"]
    if manifest["creators"]:
        metadata["creator"] = [
            {"@type": "sc:Person", "name": name} for name in manifest["creators"]
        ]
    tables = manifest["tables"]
    return metadata | {
        "distribution": [
            *(
                build_file_object(table, file)
                for table in tables.values()
                for file in table["files"]
            ),
            *(build_file_set(name, table) for name, table in tables.items()),
        ],
        "recordSet": [
            build_record_set(name, table)
            for name, table in tables.items()
            if table["format"] in FORMATS_WITH_FIELDS
        ],
    }


def build_file_object(table: dict[str, Any], file: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a file."""
    return {
        "@type": "cr:FileObject",
        "@id": file["path"],
        "name": file["path"],
        "contentUrl": file["path"],
        "contentSize": f"{file['bytes']} B",
        "encodingFormat": get_media_type(table),
        "sha256": file["sha256"],
    }


def build_file_set(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of all files of a table."""
    extension = FORMATS[table["format"]].extensions[0]
    return {
        "@type": "cr:FileSet",
        "@id": f"{name}-files",
        "name": f"{name}-files",
        "description": f"All files of the table {name}.",
        "encodingFormat": get_media_type(table),
        "includes": f"{name}/**/*{extension}" if table["partition_key"] else f"{name}/*{extension}",
    }


def build_record_set(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a table with its columns."""
    metadata: dict[str, Any] = {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": table["title"],
    }
    if table["key"]:
        metadata["key"] = [{"@id": f"{name}/{column}"} for column in table["key"]]
    return metadata | {
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column['name']}",
                "name": column["name"],
                "description": describe_column(column) or column["name"],
                **get_data_type(column["type"], table["format"]),
                "source": {
                    "fileSet": {"@id": f"{name}-files"},
                    "extract": {"column": header},
                },
            }
            for header, column in zip(get_column_names(table), table["columns"], strict=True)
        ]
    }


def get_media_type(table: dict[str, Any]) -> str:
    """Return the media type of a table's files in Croissant."""
    own = {"parquet": "application/x-parquet", "jsonl": "application/jsonlines"}
    return own.get(table["format"], FORMATS[table["format"]].media_type)


def get_data_type(dtype: str, file_format: str) -> dict[str, Any]:
    """Return the data type of a column in Croissant, whose integers have any number of digits."""
    if dtype.startswith(("List(Int", "List(UInt")) and file_format != "csv":
        return {"dataType": "sc:Integer", "repeated": True}
    if dtype.startswith(("Int", "UInt")) or re.fullmatch(r"Decimal\(\d+, 0\)", dtype):
        return {"dataType": "sc:Integer"}
    if dtype.startswith(("Decimal", "Float")):
        return {"dataType": "sc:Float"}
    if dtype.startswith("Datetime"):
        return {"dataType": "sc:DateTime"}
    return {"dataType": "sc:Boolean" if dtype == "Boolean" else "sc:Text"}
