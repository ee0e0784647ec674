"""The loaders by subject, each with a title: a generated file, so that listing them is fast."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TITLES_FILE = Path(__file__).with_name("loader_titles.json")
SUBJECTS = {
    "Validators": ("validator", "validators"),
    "Chain": (
        "config",
        "epoch",
        "eth-store",
        "graffitiwall",
        "latestState",
        "performance-aggregate",
        "queues",
        "state",
        "sync-committee",
        "sync_committee",
        "yieldindex",
    ),
    "Blocks": ("block", "slot"),
    "Execution": ("ens", "eth1deposit", "execution"),
    "Service": (),
}
"""The first words of the routes of each subject; other routes are about the service."""


@cache
def read_titles(version: int) -> Mapping[str, Mapping[str, str]]:
    """Return the loaders of V1 or V2 by subject: their names, each with a title."""
    titles: dict[str, dict[str, dict[str, str]]] = json.loads(
        TITLES_FILE.read_text(encoding="utf-8")
    )
    return titles[f"v{version}"]


def build_titles() -> str:
    """Return the content of the generated file."""
    import beaconframes
    from beaconframes.cli.docstrings import parse_title
    from beaconframes.exports.loader_calls import find_endpoint

    titles: dict[str, dict[str, dict[str, str]]] = {}
    for version, module in (("v1", beaconframes), ("v2", beaconframes.v2)):
        titles[version] = {subject: {} for subject in SUBJECTS}
        for name in (name for name in module.__all__ if name.startswith("load_")):
            loader = getattr(module, name)
            endpoint = find_endpoint(loader)
            subject = "Service" if endpoint is None else find_subject(endpoint.route)
            loader_name = name.removeprefix("load_").replace("_", "-")
            titles[version][subject][loader_name] = parse_title(loader)
    return json.dumps(titles, indent=1) + "\n"


def find_subject(route: str) -> str:
    """Return the subject of a route such as ``GET /api/v1/slot/{slot}``."""
    path = route.partition("/api/v")[2].partition("/")[2].removeprefix("ethereum/")
    word = path.partition("/")[0]
    return next((subject for subject, words in SUBJECTS.items() if word in words), "Service")
