"""The signatures of the API reference: with types, whose aliases are written out.

Sphinx would show each overload of a loader. Readers need its arguments once, and ``Moment`` or
``Every`` means nothing to them.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import sys
import types
from typing import TYPE_CHECKING, Any, Literal, Union, get_origin

from sphinx.util.inspect import stringify_signature
from sphinx.util.typing import stringify_annotation

from beaconframes.client import loader
from beaconframes.client.loader import Frame

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*(?![\w.'\"])")


def build_signature(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the arguments of a function or class with their types, and the type of its result."""
    signature = inspect.signature(function)
    own = inspect.unwrap(function)
    module = sys.modules[own.__module__]
    arguments = [
        each.replace(annotation=expand(each.annotation, module))
        for name, each in signature.parameters.items()
        if name not in {"self", "cls"}
    ]
    result = signature.return_annotation
    if inspect.isclass(function) or result is inspect.Signature.empty:
        result = ""
    shown = signature.replace(parameters=arguments, return_annotation=inspect.Signature.empty)
    return stringify_signature(shown), expand(result, module)


def expand(annotation: Any, module: types.ModuleType) -> Any:
    """Return a type as text, with its aliases written out; what is no text stays."""
    if not isinstance(annotation, str):
        return annotation
    return NAME.sub(lambda name: expand_name(name[0], module), annotation)


def expand_name(name: str, module: types.ModuleType) -> str:
    """Return what a name in a type stands for, if it is an alias; otherwise, the name."""
    value = find_value(name, module)
    if value is Frame:
        # At run time, it is without pandas, whose import takes time.
        return "polars.DataFrame | polars.LazyFrame | pandas.DataFrame"
    if isinstance(value, types.UnionType) or get_origin(value) in (Literal, Union):
        return stringify_annotation(value, "smart")
    return name


def find_value(name: str, module: types.ModuleType) -> Any:
    """Return what a name means in a module, also if it is imported for type checkers only."""
    if hasattr(module, name):
        return getattr(module, name)
    # The types of the options of loaders are known where the loaders are made.
    source = read_imports(module).get(name, loader.__module__)
    return getattr(importlib.import_module(source), name, None)


@functools.cache
def read_imports(module: types.ModuleType) -> dict[str, str]:
    """Return the modules of this package from which names are imported."""
    tree = ast.parse(inspect.getsource(module))
    return {
        alias.asname or alias.name: statement.module
        for statement in ast.walk(tree)
        if isinstance(statement, ast.ImportFrom)
        and (statement.module or "").startswith("beaconframes")
        for alias in statement.names
        if statement.module
    }
