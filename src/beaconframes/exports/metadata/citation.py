"""``CITATION.cff``: how to cite the dataset."""

from __future__ import annotations

import json
import re
from typing import Any

_DOI = re.compile(r"https?://(?:dx\.)?doi\.org/(10\.\d{4,}/\S+)")
UNNAMED_CREATORS = "The makers of this dataset"


def build_citation(manifest: dict[str, Any]) -> str:
    """Return the citation file of a dataset."""
    creators = manifest["creators"] or [UNNAMED_CREATORS]
    lines = [
        "cff-version: 1.2.0",
        "message: If you use this dataset, please cite it as below.",
        "type: dataset",
        f"title: {quote(manifest['title'])}",
        "authors:",
        *(f"  - name: {quote(name)}" for name in creators),
    ]
    if manifest["provenance"]["finalized_time"]:
        lines.append(f"date-released: {quote(manifest['provenance']['finalized_time'][:10])}")
    if manifest["license"]:
        lines.append(f"license: {quote(manifest['license'])}")
    if manifest["url"]:
        lines.append(f"url: {quote(manifest['url'])}")
        if doi := _DOI.fullmatch(manifest["url"]):
            lines.append(f"doi: {quote(doi[1])}")
    lines += [
        "identifiers:",
        "  - type: other",
        f"    value: {quote('sha256:' + manifest['checksum'])}",
        "    description: SHA-256 of the content of manifest.json without its checksum",
    ]
    return "\n".join(lines) + "\n"


def build_reference(manifest: dict[str, Any]) -> str:
    """Return the citation in one line."""
    creators = " and ".join(manifest["creators"]) or UNNAMED_CREATORS
    url = f" {manifest['url']}" if manifest["url"] else ""
    return f"{creators}: {manifest['title']} sha256:{manifest['checksum'][:16]}.{url}"


def quote(value: str) -> str:
    """Return a value as a YAML string: JSON strings are valid YAML."""
    return json.dumps(value, ensure_ascii=False)
