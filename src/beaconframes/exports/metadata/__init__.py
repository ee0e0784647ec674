"""What describes a dataset to others: every document follows from the manifest."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from beaconframes.exports.atomic_files import judged
from beaconframes.exports.metadata import citation, croissant, datapackage, dictionary, readme

if TYPE_CHECKING:
    from pathlib import Path

HISTORY = "history.jsonl"


def of(told: dict[str, Any]) -> dict[str, str]:
    """Return the documents of the dataset whose manifest says *told*, by the file's name."""
    return {
        "README.md": readme.text(told),
        "CITATION.cff": citation.text(told),
        "datapackage.json": as_json(datapackage.package(told)),
        "croissant.json": as_json(croissant.metadata(told)),
        "dictionary.csv": dictionary.text(told),
    }


def as_json(told: dict[str, Any]) -> str:
    """Return *told* as the text of a file."""
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def remember(folder: Path, told: dict[str, Any], *, added: int, changed: bool) -> None:
    """Add a line to the history: when was exported, and what came of it.

    It is the one file that is another each time, so no other document names it.
    """
    if not changed:
        return
    line = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": told["provenance"]["software"],
        "files_added": added,
        "rows": sum(table["rows"] for table in told["tables"].values()),
        "complete": told["complete"],
        "manifest_checksum": told["checksum"],
    }
    with judged(folder / HISTORY), (folder / HISTORY).open("a") as file:
        file.write(json.dumps(line) + "\n")
