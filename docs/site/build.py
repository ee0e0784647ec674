"""Build the documentation site: collect its sources in one folder, and run Sphinx on them.

The sources are the pages of ``docs/``, the notebooks with their outputs, and pages that are
generated here: the API reference, the data dictionary and the gallery. `make site` runs this.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import addresses
import api_pages
import dictionary_pages
import gallery_pages

import beaconframes as bf

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

PROJECT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "data/README.md": "sample.md",
}
"""Pages outside of ``docs/``, by their place in the repository, and their place on the site."""

PLACES = PROJECT_PAGES | {
    "README.md": "index.md",
    "docs/dictionary.md": "dictionary/index.md",
    "docs/gallery/README.md": "gallery/index.md",
}
"""Files that have another place on the site than below ``docs/``."""

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(?=[)#])")


PLAIN_TITLES = {
    "getting-started/": "Getting started",
    "guide/": "Guide",
    "dictionary/": "Loaders, with the columns of their frames",
}
PLAIN = tuple(PLAIN_TITLES)
"""Folders of pages that the site also has as Markdown."""

ARTICLE = re.compile(r"<article\b[^>]*>(.*)</article>", re.DOTALL)
HEADING = re.compile(r"^# (?P<title>.+)\n+(?P<text>(?:\S.*\n)+)", re.MULTILINE)

LLMS_HEAD = """# beaconframes

> Ethereum beacon chain data as exact DataFrames of polars or pandas, from an explorer API, a beacon
> node or a dataset. `import beaconframes as bf`; `bf.local()` needs no key and no network."""


def find_place(path: str) -> str:
    """Return where a file of the repository is on the site, relative to its root."""
    return PLACES.get(path) or path.removeprefix("docs/")


def move_links(text: str, path: str) -> str:
    """Return a page of the repository with its links to files as they are on the site."""

    def move(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[1]))
        return posixpath.relpath(find_place(target), posixpath.dirname(find_place(path)) or ".")

    return LINK.sub(move, text)


def read_pages() -> dict[str, str]:
    """Return the pages that are written by hand."""
    paths = [path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md")]
    paths = [path for path in paths if path == "docs/index.md" or path not in PLACES]
    return {
        find_place(path): move_links((ROOT / path).read_text(encoding="utf-8"), path)
        for path in [*paths, *PROJECT_PAGES]
    }


def read_pictures() -> dict[str, bytes]:
    """Return the pictures of the pages that are written by hand."""
    return {
        path.relative_to(DOCS).as_posix(): path.read_bytes()
        for suffix in ("png", "gif", "svg")
        for path in DOCS.rglob(f"*.{suffix}")
        if path.relative_to(DOCS).parts[0] not in {"_static", "gallery"}
    }


def read_notebooks() -> dict[str, str]:
    """Return the notebooks, and a page that lists them by their first headings."""
    pages = {}
    rows = []
    urls = addresses.read_urls()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        links = addresses.build_launch_links(urls, f"notebooks/{path.name}", f"v{bf.__version__}")
        notebook["cells"][0]["source"] += ["\n\n", links]
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = move_links("".join(cell["source"]), f"notebooks/{path.name}")
        # For shell commands in cells.
        notebook["metadata"]["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        pages[f"notebooks/{path.name}"] = json.dumps(notebook)
        rows.append(path.stem)
    listed = "\n".join(rows)
    pages["notebooks/index.md"] = (
        "# Notebooks\n\nEach notebook answers a few questions. They need no key and no network: "
        "they start an\nexplorer on this machine, which serves a simulated chain. `make lab` "
        f"opens them.\n\n```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n"
    )
    return pages


def write(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file unless it has this content: Sphinx reads files again that are newer."""
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read_sources() -> dict[str, str | bytes]:
    """Return all sources of the site, by file."""
    return {
        **read_pages(),
        **read_pictures(),
        **read_notebooks(),
        **api_pages.build_pages(),
        **dictionary_pages.build_pages(),
        **gallery_pages.build_pages(),
        "openapi.json": (DOCS / "openapi.json").read_bytes(),
        **{f"pictures/{path.name}": path.read_bytes() for path in DOCS.glob("pictures/*.png")},
    }


def build_plain_pages(files: Mapping[str, str | bytes]) -> dict[str, str]:
    """Return the guide and the dictionary as Markdown, and ``llms.txt``, which lists them."""
    pages = {
        name: text
        for name, text in sorted(files.items())
        if isinstance(text, str) and name.startswith(PLAIN) and name.endswith(".md")
    }
    parts = [LLMS_HEAD]
    for folder, title in PLAIN_TITLES.items():
        parts += [f"\n## {title}\n"]
        for name, text in pages.items():
            if name.startswith(folder) and (heading := HEADING.search(text)):
                sentence = " ".join(heading["text"].split()).partition(". ")[0].rstrip(".")
                parts.append(f"- [{heading['title'].strip('`')}]({name}): {sentence}.")
    return {**pages, "llms.txt": "\n".join(parts) + "\n"}


def build_search_pages(site: Path) -> str:
    """Return the script with the texts of the pages, for a search in a site on a disk."""
    pages = {}
    for path in site.rglob("*.html"):
        if article := ARTICLE.search(path.read_text(encoding="utf-8")):
            pages[path.relative_to(site).as_posix()] = f'<div role="main">{article[1]}</div>'
    return f"showSearchPages({json.dumps(pages)});\n"


def collect_sources(folder: Path, files: Mapping[str, str | bytes]) -> bool:
    """Write *files* into a folder; return whether any of an earlier build left."""
    for name, content in files.items():
        write(folder, name, content)
    old = [
        path
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).as_posix() not in files
    ]
    for path in old:
        path.unlink()
    return bool(old)


def main() -> None:
    """Build the site, and exit with the status of Sphinx."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, nargs="?", default=ROOT / "out" / "site")
    parser.add_argument("--jobs", default="auto", help="processes of Sphinx")
    chosen = parser.parse_args()
    target = chosen.target.resolve()
    from sphinx.cmd.build import main as run_sphinx  # Takes time; tests need the sources only.

    work = target.with_name(f"{target.name}-work")
    files = read_sources()
    if collect_sources(work / "sources", files):
        # Sphinx does not remove pages.
        shutil.rmtree(target, ignore_errors=True)
    # Sphinx copies the content of `more` to the root of the site.
    shutil.rmtree(work / "more", ignore_errors=True)
    versions = addresses.build_versions(addresses.read_urls(), addresses.list_tags())
    collect_sources(work / "more", build_plain_pages(files) | versions)
    gallery_pages.write_figures(work / "more" / "figures")
    options = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet", "--jobs", chosen.jobs]
    options += ["-c", str(DOCS), "-d", str(work / "doctrees")]
    options += ["-D", f"html_extra_path={work / 'more'}"]
    status = run_sphinx([*options, str(work / "sources"), str(target)])
    if not status:
        write(target, "search_pages.js", build_search_pages(target))
        print(f"built {target / 'index.html'}")
    sys.exit(status)


if __name__ == "__main__":
    main()
