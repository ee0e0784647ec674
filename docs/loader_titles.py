"""The titles of loaders that the help lists, as a file: listing them needs no import of loaders."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import beaconframes
from beaconframes.cli.docstrings import describe
from beaconframes.exports.loader_calls import find_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

SUBJECTS = {
    "Validators": ("validator", "validators"),
    "Chain": (),
    "Blocks": ("block", "slot"),
    "Execution": ("ens", "eth1deposit", "execution"),
    "Service": ("entities", "entity", "machine-metrics", "poolprotocol"),
}
"""The first words of the routes of each subject; other routes are about the chain."""
END_OF_TITLE = re.compile(r", (?:one|a) row|[.;:(]")


def build_titles() -> str:
    """Return the content of the generated file."""
    titles: dict[str, dict[str, dict[str, str]]] = {}
    for version, module in (("v1", beaconframes), ("v2", beaconframes.v2)):
        titles[version] = {subject: {} for subject in SUBJECTS}
        for name in (name for name in module.__all__ if name.startswith("load_")):
            loader = getattr(module, name)
            # The loader of an image has no endpoint of rows.
            if endpoint := find_endpoint(loader):
                loader_name = name.removeprefix("load_").replace("_", "-")
                titles[version][find_subject(endpoint.route)][loader_name] = parse_title(loader)
    return json.dumps(titles, indent=1) + "\n"


def find_subject(route: str) -> str:
    """Return the subject of a route such as ``GET /api/v1/slot/{slot}``."""
    path = route.partition("/api/v")[2].partition("/")[2].removeprefix("ethereum/")
    word = path.partition("/")[0]
    return next((subject for subject, words in SUBJECTS.items() if word in words), "Chain")


def parse_title(loader: Callable[..., Any]) -> str:
    """Return the contents of the rows in a few words, for a list of loaders."""
    title = END_OF_TITLE.split(describe(loader), maxsplit=1)[0]
    return title.removeprefix("Load ").removeprefix("the ")
