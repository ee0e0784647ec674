"""The page of recipes: each is one call, and under it stands what it gives."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "recipes.md").read_text(encoding="utf-8")


def recipes():
    """The module that fills the page."""
    described = importlib.util.spec_from_file_location("recipes", DOCS / "recipes.py")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


@pytest.mark.more
def test_every_recipe_gives_what_stands_under_it(explorer):
    """Run in order, against the chain that the page names. When it differs: `make docs`."""
    assert PAGE == recipes().fill_page(PAGE)


def test_recipes_are_numbered_and_each_has_a_table():
    """One for each task that people come with."""
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]

    numbers = [section.partition(".")[0] for section in sections]
    assert [str(n) for n in range(1, len(sections) + 1)] == numbers
    for section in sections:
        assert "```python\n" in section
        assert re.search(r"^\|-+\|", section.partition("```python")[2], re.MULTILINE)


def test_an_output_that_changed_is_put_in_its_place():
    """The old table goes, whatever stood there; prose stays."""
    page = "```python\nFRAME\n```\n\n| old |\n|---|\n| 1 |\n\n*5 of 9 rows*\n\nProse.\n"
    code = "import polars as pl\npl.DataFrame({'new': range(7)})"

    filled = recipes().fill_page(page.replace("FRAME", code))

    assert "old" not in filled
    assert "of 9 rows" not in filled
    assert "| new |" in filled
    assert "*5 of 7 rows*\n\nProse.\n" in filled
    assert filled == recipes().fill_page(filled)
