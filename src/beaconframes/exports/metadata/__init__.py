"""The metadata files of a dataset, all built from its manifest."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.exports.atomic_files import translate_errors
from beaconframes.exports.manifest import to_json_text
from beaconframes.exports.metadata.citation import build_citation
from beaconframes.exports.metadata.croissant import build_croissant
from beaconframes.exports.metadata.datapackage import build_datapackage
from beaconframes.exports.metadata.readme import build_readme

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HISTORY = "history.jsonl"
DICTIONARY_COLUMNS = ("table", "column", "type", "unit", "key", "meaning")


def build_dictionary(manifest: dict[str, Any]) -> str:
    """Return ``dictionary.csv``: the type, the unit and the meaning of every column."""
    rows = [
        (name, c["name"], c["type"], c["unit"], "yes" if c["key"] else "", c["meaning"])
        for name, table in manifest["tables"].items()
        for c in table["columns"]
    ]
    schema = dict.fromkeys(DICTIONARY_COLUMNS, pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row").write_csv()


def append_history(folder: Path, manifest: dict[str, Any], *, added: int) -> None:
    """Append a line to the history: the time of the export and its result.

    The history is the only file that differs between equal exports, so no other file lists it.
    """
    line = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": manifest["provenance"]["software"],
        "files_added": added,
        "rows": sum(table["rows"] for table in manifest["tables"].values()),
        "complete": manifest["complete"],
        "manifest_checksum": manifest["checksum"],
    }
    with translate_errors(folder / HISTORY), (folder / HISTORY).open("a") as file:
        file.write(json.dumps(line) + "\n")


DOCUMENTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "README.md": build_readme,
    "CITATION.cff": build_citation,
    "datapackage.json": lambda manifest: to_json_text(build_datapackage(manifest)),
    "croissant.json": lambda manifest: to_json_text(build_croissant(manifest)),
    "dictionary.csv": build_dictionary,
}
"""The metadata files, and the function that makes the text of each."""
