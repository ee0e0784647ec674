"""The pages of the API reference: one for each public name, and one for each group of names.

The names and their groups are those of ``beaconframes/__init__.pyi``: each comment there is the
title of the names below it. A public module is a group of its own.
"""

from __future__ import annotations

import ast
import functools
import inspect
import pprint
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dictionary_pages
import gallery_pages
from sphinx.pycode import ModuleAnalyzer

import beaconframes as bf
from beaconframes.dictionary import ENDPOINTS_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

STUB = Path(bf.__file__).with_suffix(".pyi")


@dataclass(frozen=True)
class Name:
    """A public name, and its object."""

    full: str
    value: Any

    @property
    def short(self) -> str:
        """The name as users write it after ``bf.``."""
        return self.full.removeprefix("beaconframes.")

    @property
    def page(self) -> str:
        """The page, without its extension."""
        return f"api/{self.full}"


@dataclass(frozen=True)
class Group:
    """Names with one purpose, which have one page together and one page each."""

    title: str
    page: str
    names: list[Name]
    module: types.ModuleType | None = None


@functools.cache
def read_groups() -> list[Group]:
    """Return the public names of the package, by purpose, in the order of the stub."""
    groups: list[Group] = []
    for title, names in read_stub():
        members = [Name(f"beaconframes.{name}", getattr(bf, name)) for name in names]
        others = [name for name in members if not isinstance(name.value, types.ModuleType)]
        modules = [name for name in members if isinstance(name.value, types.ModuleType)]
        slug = re.sub(r"[^a-z0-9]+", "-", title.partition(",")[0].lower())
        # A name that both the package and a module have is documented in the package.
        known = {id(name.value) for name in others}
        if others and not modules:
            groups.append(Group(title, f"api/{slug}", others))
            continue
        for module in modules:
            inner = [name for name in read_module(module.value) if id(name.value) not in known]
            groups.append(Group(f"bf.{module.short}", module.page, others + inner, module.value))
    return groups


def read_stub() -> list[tuple[str, list[str]]]:
    """Return each comment of the stub, and the names below it."""
    text = STUB.read_text(encoding="utf-8")
    lines = text.splitlines()
    groups: list[tuple[str, list[str]]] = []
    for statement in ast.parse(text).body:
        if not isinstance(statement, ast.ImportFrom):
            continue
        above = lines[statement.lineno - 2]
        if above.startswith("# "):
            groups.append((above.removeprefix("# ").removesuffix("."), []))
        groups[-1][1].extend(alias.name for alias in statement.names)
    return groups


def read_module(module: types.ModuleType) -> list[Name]:
    """Return the public names of a module; without a list of them, its classes in their order."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    return [Name(f"{module.__name__}.{name}", getattr(module, name)) for name in names]


def find_spellings(target: str) -> Iterator[str]:
    """Return the full names that a docstring may mean by a shorter one."""
    yield f"beaconframes.{target}"
    for group in read_groups():
        if group.module is not None:
            yield f"{group.module.__name__}.{target}"
    for name in list_names():
        # A method of a public class.
        if inspect.isclass(name.value) and hasattr(name.value, target):
            yield f"{name.full}.{target}"


def list_names() -> list[Name]:
    """Return every public name that has a page."""
    return [name for group in read_groups() for name in group.names]


def read_summary(name: Name) -> str:
    """Return the first sentence of a docstring."""
    lines = inspect.cleandoc(read_docstring(name)).partition("\n\n")[0].split()
    return re.split(r"(?<=\.)\s", " ".join(lines), maxsplit=1)[0]


def read_docstring(name: Name) -> str:
    """Return the docstring of a name; that of a constant is below its assignment."""
    if callable(name.value):
        return inspect.getdoc(name.value) or ""
    package, _, short = name.full.rpartition(".")
    path = STUB if package == "beaconframes" else Path(inspect.getfile(sys.modules[package]))
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and short in {a.name for a in statement.names}:
            documents = ModuleAnalyzer.for_module(str(statement.module)).find_attr_docs()
            return "\n".join(documents["", short])
    raise LookupError(f"{name.full} is imported from no module")


def build_pages() -> dict[str, str]:
    """Return all pages of the reference, by file."""
    pages = {"api/index.rst": build_index()}
    for group in read_groups():
        pages[f"{group.page}.rst"] = build_group(group)
        pages |= {f"{name.page}.rst": build_page(name) for name in group.names}
    return pages


def build_index() -> str:
    """Return the page of all groups."""
    groups = read_groups()
    pages = build_toctree([f"/{group.page}" for group in groups])
    lists = "\n".join(f"{build_title(group.title, '-')}\n{build_list(group)}" for group in groups)
    return (
        f"{build_title('API reference', '=')}\n"
        "The public names, by purpose. ``bf`` is ``beaconframes``.\n\n"
        f"{lists}\n{pages}"
    )


def build_group(group: Group) -> str:
    """Return the page of one group: its names, each with its first sentence."""
    head = ""
    if group.module is not None:
        head = f".. py:module:: {group.module.__name__}\n\n{inspect.getdoc(group.module)}\n\n"
    # The navigation has the names of a module without the module: there is little room.
    pages = [f"{name.full.rpartition('.')[2]} </{name.page}>" for name in group.names]
    return f"{build_title(group.title, '=')}\n{head}{build_list(group)}\n{build_toctree(pages)}"


def build_list(group: Group) -> str:
    """Return a table of the names of a group."""
    rows = "".join(
        f"   * - :py:obj:`{name.short} <{name.full}>`\n     - {read_summary(name)}\n"
        for name in group.names
    )
    return f".. list-table::\n   :class: names\n   :widths: auto\n\n{rows}"


def build_toctree(entries: list[str]) -> str:
    """Return a table of contents that only the navigation shows."""
    lines = "".join(f"   {entry}\n" for entry in entries)
    return f".. toctree::\n   :hidden:\n   :maxdepth: 1\n\n{lines}"


def build_title(title: str, line: str) -> str:
    """Return a heading."""
    return f"{title}\n{line * len(title)}\n"


def build_page(name: Name) -> str:
    """Return the page of one name: its docstring, its table, and its pictures in the gallery."""
    scripts = gallery_pages.find_uses(f"bf.{name.short}")
    columns = find_table(name)
    parts = [
        build_docstring(name),
        f".. seealso:: :doc:`{columns}` has the columns of the table.\n" if columns else "",
        f"{build_title('In the gallery', '-')}\n{build_cards(scripts)}" if scripts else "",
    ]
    return "\n".join(filter(None, parts))


def build_cards(scripts: list[Path]) -> str:
    """Return a grid of small pictures that link to their charts in the gallery."""
    cards = "".join(
        f"   .. grid-item-card:: {gallery_pages.make.read_title(script)}\n"
        f"      :img-top: /gallery/{script.stem}.png\n"
        f"      :link: {script.stem}\n"
        f"      :link-type: ref\n"
        f"      :class-card: {gallery_pages.find_classes(script)}\n\n"
        for script in scripts
    )
    return f".. grid:: 1 2 3 3\n   :gutter: 3\n\n{cards}"


def find_table(name: Name) -> str | None:
    """Return the page of the data dictionary of a loader."""
    module, _, loader = name.short.rpartition("load_")
    table = f"{module}{loader}"
    if table not in ENDPOINTS_BY_NAME:
        return None
    return f"/{dictionary_pages.find_page(table).removesuffix('.md')}"


def build_docstring(name: Name) -> str:
    """Return the title of a page, and the directive for the docstring."""
    module, _, short = name.full.rpartition(".")
    head = f"{build_title(name.short, '=')}\n.. py:currentmodule:: {module}\n\n"
    if inspect.isclass(name.value):
        # The bases of other classes are no public names.
        bases = "   :show-inheritance:\n" if issubclass(name.value, Exception) else ""
        return f"{head}.. autoclass:: {short}\n   :members:\n{bases}"
    if callable(name.value):
        return f"{head}.. autofunction:: {short}\n"
    value = pprint.pformat(name.value, width=88)
    lines = [read_docstring(name), "", "::", "", *(f"    {line}" for line in value.splitlines())]
    body = "".join(f"   {line}\n" if line else "\n" for line in lines)
    return f"{head}.. py:data:: {short}\n\n{body}"
