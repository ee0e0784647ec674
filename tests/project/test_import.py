"""Importing the package costs nothing and hides nothing."""

from __future__ import annotations

import ast
import inspect
import json
import operator
import subprocess
import sys
from pathlib import Path

import pytest

import beaconframes as bf
from beaconframes.misspelled_names import SYNONYMS

HEAVY = {
    "polars",
    "httpx",
    "pandas",
    "pyarrow",
    "numpy",
    "matplotlib",
    "plotly",
    "starlette",
    "uvicorn",
    "narwhals",
    "PIL",
    "msgspec",
    "tqdm",
}
LOADERS = {
    "load_validators",
    "load_income_history",
    "load_balance_history",
    "load_latest_state",
    "load_epochs",
    "load_epoch_slots",
    "load_sync_committees",
    "load_graffiti_wall",
    "load_yield_index",
}


def fresh(program: str) -> object:
    """What *program* prints as JSON in a new interpreter."""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return json.loads(answer.stdout)


def statically_bound() -> set[str]:
    """The names that a type checker finds in the package without running it."""
    package = Path(bf.__file__)
    source = package.with_suffix(".pyi") if package.with_suffix(".pyi").exists() else package
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_import_loads_nothing_heavy():
    """Q05: `import beaconframes` in a fresh interpreter loads none of its dependencies."""
    loaded = fresh(
        "import sys, json, beaconframes\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )

    assert set() == HEAVY & set(loaded)


def test_looking_around_loads_nothing_heavy():
    """Completion in a fresh interpreter lists every public name and still loads nothing."""
    names, loaded = fresh(
        "import sys, json, beaconframes\n"
        "names = dir(beaconframes)\n"
        "print(json.dumps([names, sorted({n.partition('.')[0] for n in sys.modules})]))"
    )

    assert set(bf.__all__) <= set(names)
    assert set() == HEAVY & set(loaded)


def test_a_first_load_imports_only_what_it_needs():
    """F9: a loader needs polars; numpy and pyarrow alone would take 80 ms.

    The first request imports the HTTP client.
    """
    loaded = fresh(
        "import sys, json, beaconframes\n"
        "beaconframes.load_slots\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )

    assert "polars" in loaded
    unneeded = {"numpy", "pyarrow", "narwhals", "pandas", "matplotlib", "plotly", "starlette"}
    unneeded |= {"httpx", "h11"}
    assert set() == unneeded & set(loaded)


def test_all_is_tidy():
    """Every public name is said once, is public, and the nine loaders are among them."""
    assert len(set(bf.__all__)) == len(bf.__all__)
    assert [] == [name for name in bf.__all__ if name.startswith("_") and name != "__version__"]
    assert set() == LOADERS - set(bf.__all__)


@pytest.mark.parametrize("name", sorted(getattr(bf, "__all__", [])))
def test_public_name_is_there_and_says_what_it_is(name):
    """Every public name can be had, and whatever can have a docstring has one."""
    thing = getattr(bf, name)

    assert not callable(thing) or (thing.__doc__ or "").strip()


def test_type_checkers_and_the_package_have_the_same_names():
    """The stub lists names with their modules; each is importable from there."""
    assert statically_bound() == {*bf.__all__, "__all__", "__version__"}


MODULES = ["v2", "analysis", "plot", "interactive", "wall"]


@pytest.mark.parametrize("name", MODULES)
def test_completion_lists_public_names_only(name):
    """`bf.v2.<Tab>` lists loaders, and neither modules nor what they import."""
    module = getattr(bf, name)

    assert sorted(module.__all__) == dir(module)
    assert [] == [name for name in dir(module) if inspect.ismodule(getattr(module, name))]


def test_completion_of_v2_lists_loaders_and_sets():
    """35 loaders, seven ways to name validators, and the comparison with V1."""
    loaders = [name for name in dir(bf.v2) if name.startswith("load_")]

    assert 35 == len(loaders)
    assert {
        "validators", "dashboard", "withdrawal", "deposit_address", "entity", "owner", "operator",
        "same_as_v1",
    } == {*dir(bf.v2)} - {*loaders}  # fmt: skip


def test_unknown_name_is_an_attribute_error():
    """A name that is not there fails as it does in any module."""
    with pytest.raises(AttributeError, match="load_incomes"):
        bf.load_incomes  # noqa: B018 (the access is the test)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("load_income", ["bf.load_income_history"]),
        ("load_rewards", ["bf.load_income_history", "bf.v2.load_rewards"]),
        ("load_balances", ["bf.load_balance_history", "bf.v2.load_balances"]),
        ("load_withdrawals", ["bf.load_validator_withdrawals", "bf.load_slot_withdrawals"]),
        ("load_incme", ["bf.load_income_history"]),
        ("analysis.net_incom", ["bf.analysis.income"]),
        ("conect", ["bf.connect"]),
        ("load_validator_statz", ["bf.load_validator_stats"]),
        ("v2.load_reward", ["bf.v2.load_rewards"]),
        ("plot.incom", ["bf.plot.income"]),
        ("interactive.balance", ["bf.interactive.balances"]),
        ("analysis.reconcil", ["bf.analysis.reconcile"]),
        ("wall.territories", ["bf.wall.territory"]),
        ("analysis.net_income", ["bf.analysis.income"]),
        ("MEV", ["bf.analysis.relay_payments", "bf.load_produced_blocks"]),
        ("v2.tips", ["bf.analysis.income", "bf.load_produced_blocks"]),
        ("analysis.Uptime", ["bf.analysis.attestation_rates", "bf.load_validator_stats"]),
        ("RAVER", ["bf.analysis.attestation_rates"]),
        ("APY", ["bf.analysis.apr"]),
        ("v2.load_income_history", ["bf.v2.load_rewards"]),
    ],
)
def test_an_unknown_name_is_an_error_that_suggests_the_public_name(wrong, right):
    """Step 12, 8: a misspelled name, or one that a user may expect, leads to the right one."""
    namespace, _, name = wrong.rpartition(".")
    module = getattr(bf, namespace) if namespace else bf

    with pytest.raises(AttributeError) as raised:
        getattr(module, name)

    assert str(raised.value).endswith(f". Did you mean {' or '.join(right)}?")


def test_every_suggested_synonym_is_a_public_name():
    """Step 12, 8: the table of synonyms leads to names that exist, from names that do not."""
    for expected, names in SYNONYMS.items():
        assert not hasattr(bf, expected)
        for name in names:
            assert operator.attrgetter(name)(bf)


def test_an_unknown_name_that_resembles_none_has_no_suggestion():
    """Tools look for names such as `_repr_html_`, and a wrong suggestion is worse than none."""
    for name in ("_repr_html_", "xyz"):
        with pytest.raises(AttributeError, match=f"'beaconframes' has no attribute '{name}'$"):
            getattr(bf, name)
