"""The pages of the documentation: links that lead somewhere, and generated parts up to date."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(ROOT.glob("*.md"))
PAGES += sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\]\((?!https?://)([^)\s]+)\)")


@pytest.fixture
def generator(monkeypatch):
    """The module docs/generate.py, as if it were run."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def anchors(page):
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    """Files and headings that a page links to exist."""
    broken = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)

    assert [] == broken


def test_generated_tables_are_up_to_date(generator):
    """Charts, clients, loaders and cards are those of the code; run `make docs`."""
    pages = [ROOT / "docs" / name for name in generator.WITH_PARTS]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    parts = [part[2] for part in generator.PART.finditer(text)]

    assert sorted(generator.PARTS) == sorted(parts)
    assert generator.fill_parts(text) == text
    for client in generator.CONSENSUS_CLIENTS.values():
        assert f"| {client.name} | `{client.archive_flag}` |" in text
    # A part that is out of date is replaced, and the text around it stays.
    stale = text.replace("| Teku |", "| Tekoo |")
    assert generator.fill_parts(stale) == text
