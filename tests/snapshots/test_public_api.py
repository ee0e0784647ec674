"""The public names of the package and their parameters, compared with those in public_api.json.

A name is one line of the file: a function with its parameters and their defaults, a class with
those of its constructor, a module, or a constant. A public method, property or attribute of a
class has a line of its own. An error also names its public base classes.
Annotations are left out. Loaders of endpoints are left out too: docs/dictionary.md has the call of
each, and the tests of the catalog compare that page, and the options that all loaders have.
After an intended change, write the file again and read its difference::

    UPDATE_SNAPSHOTS=1 pytest -n 0 tests/snapshots/test_public_api.py
"""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

import beaconframes as bf
from beaconframes.dictionary import ENDPOINTS_BY_NAME, format_loader_name

SNAPSHOT = Path(__file__).with_name("public_api.json")
NAMESPACES = ("v2", "analysis", "plot", "interactive", "wall")
UPDATE = bool(os.environ.get("UPDATE_SNAPSHOTS"))


def without_annotations(function):
    """Return the parameters of a function as text: names, kinds and the repr of each default."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(inspect.Signature(parameters))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def is_ours(thing):
    """Return whether a class or function is defined in the package."""
    return thing.__module__.partition(".")[0] == "beaconframes"


def describe_class(name, found):
    """Yield a line for the class, and one for each public member that the package defines."""
    kinds = [base.__name__ for base in found.__mro__[1:] if is_ours(base)]
    is_error = issubclass(found, BaseException)
    suffix = f" is a {', '.join(kinds)}" if is_error and kinds else ""
    yield name, f"class{without_annotations(found)}{suffix}"
    # Every error inherits the members of its base, which has lines of its own.
    owners = [found] if is_error else [base for base in found.__mro__ if is_ours(base)]
    members = {member for owner in owners for member in vars(owner)}
    for member in sorted(m for m in members if not m.startswith("_")):
        value = inspect.getattr_static(found, member)
        if isinstance(value, (property, cached_property)):
            yield f"{name}.{member}", "property"
        elif callable(getattr(found, member)):
            kind = type(value).__name__ if isinstance(value, (classmethod, staticmethod)) else ""
            text = without_annotations(getattr(found, member))
            yield f"{name}.{member}", f"{kind or 'method'}{text}"
        else:
            yield f"{name}.{member}", "attribute"


def describe_name(name, found):
    """Yield the lines of one public name."""
    if inspect.isclass(found):
        yield from describe_class(name, found)
    elif inspect.ismodule(found):
        yield name, "module"
    elif callable(found):
        yield name, f"function{without_annotations(found)}"
    else:
        yield name, "constant"


def import_namesakes(module):
    """Import the submodules named like a public name, which could replace it in the package."""
    submodules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    for name in submodules.intersection(module.__all__):
        import_module(f"{module.__name__}.{name}")


def public_api():
    """Return the line of every public name."""
    lines = {"__version__": "constant"}
    import_namesakes(bf)
    for name in bf.__all__:
        lines |= describe_name(name, getattr(bf, name))
    for namespace in NAMESPACES:
        module = getattr(bf, namespace)
        import_namesakes(module)
        for name in module.__all__:
            lines |= describe_name(f"{namespace}.{name}", getattr(module, name))
    for endpoint_name in ENDPOINTS_BY_NAME:
        del lines[format_loader_name(endpoint_name)]
    for name, found in inspect.getmembers(bf.errors, inspect.isclass):
        if issubclass(found, bf.BeaconframesError):
            lines |= describe_class(f"errors.{name}", found)
    return dict(sorted(lines.items()))


def test_the_public_names_and_their_parameters_are_those_of_the_snapshot():
    """No public name, parameter or default is added, removed or changed by accident."""
    found = public_api()
    if UPDATE:
        SNAPSHOT.write_text(json.dumps(found, indent=1) + "\n")
    expected = json.loads(SNAPSHOT.read_text())

    added = [f"added    {name}: {found[name]}" for name in found.keys() - expected.keys()]
    removed = [f"removed  {name}: {expected[name]}" for name in expected.keys() - found.keys()]
    changed = [
        f"changed  {name}:\n    was  {expected[name]}\n    is   {found[name]}"
        for name in expected.keys() & found.keys()
        if expected[name] != found[name]
    ]
    differences = [*sorted(added), *sorted(removed), *sorted(changed)]
    if differences:
        pytest.fail(
            "The public names differ from public_api.json (UPDATE_SNAPSHOTS=1 writes it again):\n"
            + "\n".join(differences),
            pytrace=False,
        )


@pytest.mark.parametrize("namespace", ["", *NAMESPACES])
def test_completion_offers_every_public_name(namespace):
    """What `dir` lists, and so what a notebook completes, includes every name of `__all__`."""
    module = getattr(bf, namespace) if namespace else bf
    assert set() == {*module.__all__} - {*dir(module)}
