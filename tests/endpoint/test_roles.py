"""Roles of parameters: each type declares its own, and no other code infers one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import beaconframes
from beaconframes import v1, v2
from beaconframes.answers.selectors import find_selector
from beaconframes.answers.selectors.base import RowSelector
from beaconframes.endpoint import Numbers, Parameter, Role
from beaconframes.v1._slot_items import SlotItems
from beaconframes.v1.bls_changes import ChangedValidators
from beaconframes.v1.deposits import DepositValidators

PACKAGE = Path(beaconframes.__file__).parent


def subclasses(kind):
    """Yield every subclass of a type, at any depth."""
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def test_a_parameter_without_a_role_is_refused():
    """A parameter of a type that declares no role is a TypeError."""
    roleless = type("Roleless", (Parameter,), {"batches": lambda *_: []})
    with pytest.raises(TypeError, match=r"Roleless .* role"):
        roleless()


@pytest.mark.parametrize("endpoint", [*v1.ENDPOINTS, *v2.ENDPOINTS], ids=lambda e: e.route)
def test_every_parameter_has_a_role(endpoint):
    """A stored endpoint has one unit and at most one subject."""
    assert all(isinstance(parameter.role, Role) for parameter in endpoint.all_parameters)
    assert 1 >= len(endpoint.parameters_of(Role.RANGE, Role.UNITS))
    assert 1 >= len(endpoint.parameters_of(Role.SUBJECT))


@pytest.mark.parametrize("endpoint", [*v1.ENDPOINTS, *v2.ENDPOINTS], ids=lambda e: e.route)
def test_every_parameter_has_a_selector(endpoint):
    """No parameter selects all rows of a dataset without a selector that says so."""
    for parameter in endpoint.all_parameters:
        assert isinstance(find_selector(type(parameter)), RowSelector)


def test_rows_in_another_order_are_not_found_by_position():
    """E1: the index of a table by number has the order of the table."""
    assert find_selector(Numbers).has_positions
    assert find_selector(type("Other", (Numbers,), {})).has_positions
    assert not find_selector(SlotItems).has_positions
    assert not find_selector(ChangedValidators).has_positions
    assert not find_selector(DepositValidators).has_positions


@pytest.mark.more
def test_no_code_infers_the_role_of_a_parameter():
    """No isinstance, type or getattr asks what a parameter is."""
    names = {kind.__name__ for kind in subclasses(Parameter)} | {"Parameter"}
    probes = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            arguments = ast.unparse(node).split("(", 1)[1]
            if node.func.id in ("isinstance", "issubclass", "type"):
                words = set(arguments.replace("|", " ").replace(",", " ").replace(")", " ").split())
                if words & names:
                    probes.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
            if node.func.id in ("getattr", "hasattr") and any(
                word in arguments.split(",")[0]
                for word in ("parameter", "pagination", "subject", "unit")
            ):
                probes.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert [] == probes
