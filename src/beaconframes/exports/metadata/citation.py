"""``CITATION.cff``: how to cite the dataset."""

from __future__ import annotations

import json
from typing import Any

NOBODY = "The makers of this dataset"


def text(told: dict[str, Any]) -> str:
    """Return the citation of a dataset whose manifest says *told*."""
    lines = [
        "cff-version: 1.2.0",
        "message: If you use this dataset, please cite it as below.",
        "type: dataset",
        f"title: {quoted(told['title'])}",
        "authors:",
        *(f"  - name: {quoted(name)}" for name in told["creators"] or [NOBODY]),
    ]
    if told["provenance"]["finalized_time"]:
        lines.append(f"date-released: {quoted(told['provenance']['finalized_time'][:10])}")
    if told["license"]:
        lines.append(f"license: {quoted(told['license'])}")
    if told["url"]:
        lines.append(f"url: {quoted(told['url'])}")
    lines += [
        "identifiers:",
        "  - type: other",
        f"    value: {quoted('sha256:' + told['checksum'])}",
        "    description: SHA-256 of what manifest.json says, without its own checksum",
    ]
    return "\n".join(lines) + "\n"


def reference(told: dict[str, Any]) -> str:
    """Return the citation in one line."""
    who = " and ".join(told["creators"]) or NOBODY
    where = f" {told['url']}" if told["url"] else ""
    return f"{who}: {told['title']} sha256:{told['checksum'][:16]}.{where}"


def quoted(value: str) -> str:
    """Return a value as YAML reads it: JSON text is YAML text."""
    return json.dumps(value, ensure_ascii=False)
