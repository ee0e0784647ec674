"""The page of the package on an index: the README, without links into the repository.

The build runs this (hatchling, `tool.hatch.metadata.hooks.custom`), also from an sdist. Links and
pictures lead to the tag of the version in the repository that `[project.urls]` names `Repository`.
Without one, links become text, and paragraphs with pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+:|#)([^)\s]+)\)")
PICTURE = re.compile(r'\b(src|srcset)="(?![a-z]+:)([^"]+)"')


def build_index_page(readme: str, version: str, repository: str | None) -> str:
    """Return the README as it is readable outside of the repository."""
    if repository is None:
        blocks = [block for block in readme.split("\n\n") if not PICTURE.search(block)]
        return LINK.sub(r"\1", "\n\n".join(blocks))
    base = repository.rstrip("/")
    page = PICTURE.sub(rf'\1="{base}/raw/v{version}/\2"', readme)
    return LINK.sub(rf"[\1]({base}/blob/v{version}/\2)", page)


class IndexPage(MetadataHookInterface):
    """Sets the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the page to the metadata of the project."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        page = build_index_page(readme, metadata["version"], repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
