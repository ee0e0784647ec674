"""No module of the package imports itself, directly or through other modules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import beaconframes as bf

ROOT = "beaconframes"
SOURCE = Path(bf.__file__).parent


def modules(source: Path, root: str) -> dict[str, Path]:
    """Return the file of each module under *source* by dotted name; a package is its __init__."""
    found = {}
    for file in sorted(source.rglob("*.py")):
        parts = (root, *file.relative_to(source).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(name: str, file: Path, known: dict[str, Path]) -> set[str]:
    """Return the known modules that one module imports, wherever in the file it does.

    Imports inside functions and under ``TYPE_CHECKING`` count. ``from package import name`` is the
    submodule of that name where one exists, otherwise the package's ``__init__``. A constant that
    is passed to ``import_module`` counts as well.
    """
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            base = ".".join([*(above if node.level else ()), *filter(None, [node.module])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                found.add(submodule if submodule in known else base)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if function in ("import_module", "__import__"):
                found.add(node.args[0].value)
    return found & known.keys() - {name}


def module_graph(source: Path, root: str) -> dict[str, set[str]]:
    """Return which modules each module imports.

    The root's ``__init__`` imports nothing: its names are lazy. A module that imports from the
    ``__init__`` of a package it lies in is imported by that ``__init__`` in turn.
    """
    known = modules(source, root)
    graph = {name: imports(name, file, known) for name, file in known.items()}
    graph[root] = set()
    for name, targets in list(graph.items()):
        for package in targets:
            if package != root and name.startswith(f"{package}."):
                graph[package].add(name)
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in order:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], order[target])
        if lowest[name] == order[name]:
            start = stack.index(name)
            component = stack[start:]
            del stack[start:]
            if len(component) > 1:
                found.append(sorted(component))

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return sorted(found)


@pytest.mark.more
def test_modules_form_no_cycle():
    """The graph over all imports is acyclic."""
    assert [] == cycles(module_graph(SOURCE, ROOT)), "modules that import each other"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a": "from p import b", "b": "import os"}, []),
        ({"a": "from p.b import x", "b": "def f():\n    from p import a"}, [["p.a", "p.b"]]),
        (
            {
                "a": "import p.b",
                "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import x",
            },
            [["p.a", "p.b"]],
        ),
        ({"q/__init__": "", "q/a": "from p.q import x"}, [["p.q", "p.q.a"]]),
        ({"q/__init__": "from p.q.a import x", "q/a": "", "b": "from p.q import x"}, []),
        (
            {"q/__init__": "from p.q.a import x", "q/a": "from p.b import y", "b": "import p.q"},
            [["p.b", "p.q", "p.q.a"]],
        ),
        ({"a": "from .b import x", "b": "from . import a"}, [["p.a", "p.b"]]),
        (
            {"a": "from p.b import x", "b": "def f():\n    importlib.import_module('p.a')"},
            [["p.a", "p.b"]],
        ),
        ({"a": "import p.b", "b": "def f():\n    import_module('p.a')"}, [["p.a", "p.b"]]),
        ({"__init__": "from p.a import x", "a": "from p import x"}, []),
    ],
)
def test_the_graph_counts_every_kind_of_import(tmp_path, files, expected):
    """At the top, in functions, for type checkers, relative, and through a package's __init__."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)

    assert expected == cycles(module_graph(tmp_path, "p"))
