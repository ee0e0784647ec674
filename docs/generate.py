"""Generate the data dictionary and the OpenAPI document from the declarations of the endpoints.

`make docs` writes it; `make check` runs this with --check, which fails if the page is out of date.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from beaconframes import dictionary
from beaconframes.server.openapi import build_openapi

DOCS = Path(__file__).resolve().parent


def pages() -> dict[Path, str]:
    """Return the text of every generated page."""
    return {
        DOCS / "dictionary.md": dictionary.build_page(),
        DOCS / "openapi.json": json.dumps(build_openapi(), indent=1) + "\n",
    }


def main() -> None:
    """Write the pages, or print which ones are out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a page is out of date"
    )
    check = parser.parse_args().check

    stale = [
        (path, text)
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if check:
            print(f"{path.relative_to(DOCS.parent)} is out of date: run `make docs`")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
    if check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
