"""Recorded responses of the public service, by the names of their files.

The recordings are not part of the project; BEACONFRAMES_RECORDED is their folder.
"""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

DEFAULT = Path(__file__).resolve().parents[3] / "shared/recorded"
RECORDED = Path(os.environ.get("BEACONFRAMES_RECORDED", DEFAULT))


def read_index(kinds):
    """Return the entries of the index by file name: those whose kind is one of *kinds*."""
    if not (RECORDED / "index.json").exists():
        return {}
    entries = json.loads((RECORDED / "index.json").read_text())
    return {each["file"]: each for each in entries if each["file"].partition("--")[0] in kinds}


def read_records(file):
    """Return the records of a recorded response, with exact numbers."""
    answer = json.loads((RECORDED / file).read_bytes(), parse_int=int, parse_float=Decimal)
    data = answer.get("data", answer)
    return data if isinstance(data, list) else [data]
