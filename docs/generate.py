"""Write the pages that are made from the declarations: the data dictionary.

`make docs` writes them, `make check` runs this with --check and fails when a page is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from beaconframes import dictionary

DOCS = Path(__file__).resolve().parent


def pages() -> dict[Path, str]:
    """Return what every generated page has to say."""
    return {DOCS / "dictionary.md": dictionary.markdown()}


def main() -> None:
    """Write the pages, or tell which are stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if stale")
    check = parser.parse_args().check

    stale = [
        (path, text)
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if check:
            print(f"{path.relative_to(DOCS.parent)} is stale: run `make docs`")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
    if check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
