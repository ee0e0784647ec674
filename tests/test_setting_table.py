"""Each setting is declared once; signatures, docstrings, options and pages derive from it."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import get_type_hints

import pytest

import beaconframes as bf
from beaconframes.calendar import Chain
from beaconframes.cli.connection_options import OF_EXPLORER, list_options
from beaconframes.config import document_arguments, list_arguments, reset, show_arguments
from beaconframes.setting_table import SETTINGS, SETTINGS_OF_LOADS, VARIABLES, SettingArguments

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_every_argument_is_a_setting():
    """The types of arguments name settings only; the node has its own function."""
    assert set(SETTINGS) - {*list_arguments()} == {"url", "node", "execution"}
    assert {*SettingArguments.__annotations__} <= set(SETTINGS)


@pytest.mark.parametrize("function", [bf.connect, bf.Explorer])
def test_the_signature_has_real_keywords(function):
    """Help and completion show each argument with its type and default."""
    parameters = inspect.signature(function).parameters

    assert ["url", *list_arguments()] == [name for name in parameters if name != "head"]
    for name in list_arguments():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is None
    assert "int | str | None" == parameters["store_limit"].annotation
    hints = get_type_hints(SettingArguments, localns={"Chain": Chain, "os": os})
    assert int | str | None == hints["store_limit"]


def test_the_docstring_describes_each_argument():
    """In the order of the signature, within the width of a line."""
    lines = bf.Explorer.__doc__.splitlines()

    for name in ("url", *list_arguments(), "head"):
        assert f"    {name}" in lines
    assert "{settings}" not in bf.Explorer.__doc__
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("function", [bf.connect, bf.Explorer])
@pytest.mark.parametrize("name", ["node", "execution", "apikey"])
def test_another_argument_is_a_type_error(function, name):
    """Also a setting that is none of an explorer."""
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        function("http://127.0.0.1:9", **{name: "x"})


def test_settings_of_loads_apply_to_the_explorer():
    """Connect sets them for all explorers; Explorer for its own loads alone."""
    given = {"frame": "pandas", "strict": True, "max_requests": 5, "timeout": 3, "progress": False}
    assert set(given) <= set(SETTINGS_OF_LOADS)
    with bf.Explorer("http://127.0.0.1:9", chain="mainnet", **given) as explorer:
        settings = explorer.settings
    assert ("pandas", True, 5, (3, None), False) == tuple(getattr(settings, n) for n in given)
    with bf.settings() as outside:
        assert ("polars", False) == (outside.frame, outside.strict)
    try:
        bf.connect("http://127.0.0.1:9", chain="mainnet", frame="pandas", rate=7).close()
        with bf.settings() as connected:
            assert ("pandas", None) == (connected.frame, connected.rate)
    finally:
        reset()


def test_an_argument_that_is_false_overrides_the_environment(monkeypatch):
    """Only None means that a setting is not given."""
    monkeypatch.setenv("BEACONFRAMES_STRICT", "1")
    try:
        bf.connect("http://127.0.0.1:9", chain="mainnet", strict=False).close()
        with bf.settings() as connected:
            assert connected.strict is False
    finally:
        reset()


def test_options_of_the_command_line_are_those_of_the_table():
    """Each has its sentence and its variable; the others choose a source, or a key."""
    options = {option.name: option for option in list_options()}

    for name, setting in SETTINGS.items():
        if setting.is_option:
            assert options[name].help == f"{setting.summary} [{VARIABLES[name]}]"
    assert {*OF_EXPLORER} <= options.keys()
    assert "api_key" not in options
    assert options["progress"].secondary_opts == ["--no-progress"]
    assert not options["offline"].secondary_opts


def test_the_page_lists_every_setting():
    """With its environment variable."""
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")

    for name, variable in VARIABLES.items():
        assert f"| `{name}` | `{variable}` |" in page


def test_a_class_without_a_docstring_stays_without():
    """As with `python -OO`."""

    class Plain:
        __doc__ = None

    assert document_arguments(Plain).__doc__ is None


def test_own_keywords_come_after_the_settings():
    """The composed signature keeps the order of the declaration."""

    @show_arguments
    def function(url=None, *, head=None, **given):
        return url, head, given

    names = list(inspect.signature(function).parameters)
    assert ["url", "api_key"] == names[:2]
    assert "head" == names[-1]
