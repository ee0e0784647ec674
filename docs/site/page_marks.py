"""Marks and links in pages that are written by hand, which their Markdown does not contain.

The Markdown stays readable on a viewer of repositories. On the site, names of functions link to the
reference, charts have a dark picture on a dark page, and long messages are wrapped.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import api_pages
import gallery_pages
from docutils import nodes
from sphinx.addnodes import pending_xref

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FIRST_COLUMNS = {
    "guide/analysis": ("analysis.",),
    "guide/charts": ("plot.", "wall."),
    "guide/v1-or-v2": ("v2.",),
}
"""Pages whose tables have names without their module, and these modules."""

TIME = re.compile(r"\d{4}-\d{2}-\d{2} [\d:.]+( UTC)?")
VALUE_LENGTH = 9
"""Characters of a cell up to which it is a value, such as ``0.78 s``."""
PROSE_LENGTH = 24
"""Characters of a cell from which it is text, not a value."""


def mark_page(app: Sphinx, doctree: nodes.document) -> None:
    """Add the marks and links of a page once it is read."""
    page = app.env.docname
    if page.startswith("api/"):
        return
    mark_cells(doctree)
    mark_messages(doctree)
    mark_charts(doctree)
    if not page.startswith("dictionary/"):
        link_names(doctree, page)


def mark_cells(doctree: nodes.document) -> None:
    """Mark cells with a value, which stay on one line, and cells with prose, which need width."""
    for cell in doctree.findall(nodes.entry):
        text = cell.astext()
        if TIME.fullmatch(text) or len(text) <= VALUE_LENGTH:
            cell["classes"].append("value")
        elif len(text) > PROSE_LENGTH and " " in text:
            cell["classes"].append("prose")


def mark_messages(doctree: nodes.document) -> None:
    """Mark outputs that are sentences: their lines are wrapped. Columns and boxes are not."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if block.get("language") == "text" and "   " not in text and "│" not in text:
            block["classes"].append("message")


def mark_charts(doctree: nodes.document) -> None:
    """Mark the charts of the gallery, and the outputs of notebooks that are charts."""
    charts = {
        script.stem for script in gallery_pages.make.scripts() if gallery_pages.is_chart(script)
    }
    for picture in doctree.findall(nodes.image):
        folder, _, name = picture["uri"].rpartition("/")
        if folder.endswith("gallery") and name.removesuffix(".png") in charts:
            picture["classes"] = sorted({*picture["classes"], "picture", "chart"})
    for cell in doctree.findall(nodes.container):
        if "cell" in cell["classes"] and draws_chart(cell):
            cell["classes"].append("draws-chart")


def draws_chart(cell: nodes.container) -> bool:
    """Return whether a cell of a notebook draws a chart, not the wall with its own colours."""
    code = "".join(block.astext() for block in cell.findall(nodes.literal_block))
    return bool(re.search(r"\bbf\.(plot|interactive)\.(?!wall\()", code))


def link_names(doctree: nodes.document, page: str) -> None:
    """Link code that is a public name, or a call of one, to its page of the reference."""
    for code in list(doctree.findall(nodes.literal)):
        if is_in(code, nodes.reference) or is_in(code, nodes.title):
            continue
        name = find_name(
            code.astext(), FIRST_COLUMNS.get(page, ()) if is_in_first_column(code) else ()
        )
        if name is None:
            continue
        link = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refwarn=True
        )
        code.replace_self(link)
        link += code


def is_in(node: nodes.Node, kind: type[nodes.Node]) -> bool:
    """Return whether a node is inside one of a kind."""
    parent = node.parent
    while parent is not None and not isinstance(parent, kind):
        parent = parent.parent
    return parent is not None


def is_in_first_column(node: nodes.Node) -> bool:
    """Return whether a node is in the first cell of a row."""
    while node is not None and not isinstance(node, nodes.entry):
        node = node.parent
    return node is not None and node.parent.index(node) == 0


@functools.cache
def list_targets() -> frozenset[str]:
    """Return the full names that have a page of the reference."""
    modules = {group.module.__name__ for group in api_pages.read_groups() if group.module}
    return frozenset(modules | {name.full for name in api_pages.list_names()})


def find_name(code: str, modules: tuple[str, ...] = ()) -> str | None:
    """Return the full public name at the start of code: ``bf.load_slots(1)``, ``load_slots``."""
    found = re.match(r"(bf\.)?([\w.]*\w)(?=$|\()", code)
    if found is None:
        return None
    prefix, name = found.groups()
    spellings = [f"{module}{name}" for module in modules]
    if prefix or name.startswith(("load_", "v2.load_")):
        spellings.append(name)
    return next(
        (f"beaconframes.{s}" for s in spellings if f"beaconframes.{s}" in list_targets()), None
    )
