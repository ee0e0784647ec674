"""The arguments, type hints and documented ranges of every loader, of V1 and V2."""

from __future__ import annotations

import ast
import inspect
import pickle
from functools import cache
from pathlib import Path
from typing import Literal, get_type_hints

import pytest

import beaconframes as bf
from beaconframes import v1, v2
from beaconframes.client import Explorer, Frame
from beaconframes.client import loader as make_loader

OPTIONS = {"explorer": None, "strict": None, "lazy": False, "frame": None, "max_requests": None}
"""Keywords of every loader, with their defaults."""
RANGE = {"since", "until"}
RESULTS = {"Eager": "pl.DataFrame", "Lazy": "pl.LazyFrame", "Pandas": "pd.DataFrame"}
"""The kind of frame of each overload, by the class of its options."""
PUBLIC = {
    f"{version} {endpoint.name}": (loaders, endpoint)
    for version, loaders, endpoints in (("v1", bf, v1.ENDPOINTS), ("v2", bf.v2, v2.ENDPOINTS))
    for endpoint in endpoints
}


@pytest.fixture(params=PUBLIC.values(), ids=PUBLIC)
def public(request):
    """The module of a loader, and its endpoint."""
    return request.param


@pytest.fixture
def endpoint(public):
    """The declared endpoint."""
    return public[1]


@pytest.fixture
def loader(public, endpoint):
    """The function that a user calls."""
    name = f"load_{endpoint.name}"
    assert hasattr(public[0], name), f"add {name} to the public names of {public[0].__name__}"
    return getattr(public[0], name)


def test_a_loader_takes_exactly_what_its_endpoint_declares(endpoint, loader):
    """The signature has the arguments of the declaration, and no others."""
    assert {*endpoint.arguments, *OPTIONS} == set(inspect.signature(loader).parameters)


def test_a_loader_has_the_options_of_all_loaders(loader):
    """All are keywords with a default, and Shift-Tab shows each by its name."""
    taken = inspect.signature(loader).parameters.values()
    keywords = {p.name: p.default for p in taken if p.kind is p.KEYWORD_ONLY}

    assert OPTIONS.items() <= keywords.items()
    assert not any(p.kind is p.VAR_KEYWORD for p in taken)


def test_the_type_hints_of_a_loader_resolve(loader):
    """At run time, and without pandas."""
    hints = get_type_hints(loader)

    assert Explorer | None == hints["explorer"]
    assert Literal["polars", "pandas"] | None == hints["frame"]
    assert Frame == hints["return"]
    assert hints.keys() == {*inspect.signature(loader).parameters, "return"}


def test_the_type_hints_of_the_chart_loader_resolve():
    """Without pillow, whose import takes time."""
    hints = get_type_hints(bf.load_chart)

    assert {"name": str, "explorer": Explorer | None}.items() <= hints.items()


@cache
def read_overloads(package):
    """Return the overloads of the stub of a package, by function."""
    stub = Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    functions = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    assert {("overload",)} == {tuple(map(ast.unparse, f.decorator_list)) for f in functions}
    return {f.name: [g for g in functions if g.name == f.name] for f in functions}


def test_type_checkers_read_an_overload_for_each_kind_of_frame(public, endpoint, loader):
    """Each has the loader's own arguments, and the options that select its kind of frame."""
    own = {
        name: each
        for name, each in inspect.signature(loader).parameters.items()
        if name not in {*OPTIONS, *RANGE}
    }
    has_range = RANGE <= inspect.signature(loader).parameters.keys()
    overloads = read_overloads(v2 if public[0] is bf.v2 else v1)[loader.__name__]

    assert [*RESULTS.values()] == [ast.unparse(each.returns) for each in overloads]
    for each, options in zip(overloads, RESULTS, strict=True):
        arguments = each.args
        defaults = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
        suffix = "Range" if has_range else ""
        assert f"Unpack[{options}{suffix}]" == ast.unparse(arguments.kwarg.annotation)
        assert [*own] == [a.arg for a in (*arguments.args, *arguments.kwonlyargs)]
        assert {name for name, each in own.items() if each.kind is each.KEYWORD_ONLY} == {
            argument.arg for argument in arguments.kwonlyargs
        }
        assert [each.annotation for each in own.values()] == [
            ast.unparse(a.annotation) for a in (*arguments.args, *arguments.kwonlyargs)
        ]
        assert [e.default for e in own.values() if e.default is not e.empty] == [
            ast.literal_eval(default) for default in defaults
        ]


def test_a_loader_documents_its_options(public, endpoint, loader):
    """In the section of its arguments, after its own; in V2 the reference names the package."""
    section = inspect.getdoc(loader).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    names = ", ".join(OPTIONS)
    package = "beaconframes." if public[0] is bf.v2 else ""

    if loader is bf.load_validators:
        assert all(f"\n{name}\n    " in section for name in OPTIONS)
    else:
        own, _, text = section.rpartition(f"{names}\n")
        assert text.startswith(f"    See `{package}load_validators`.")
        assert bool(endpoint.arguments) == bool(own)
    assert max(map(len, section.splitlines())) <= 96


MISSING_BLOCKS = """\
    See `load_validators`. With ``strict=True``, slots and roots without a block raise
    `MissingRows` instead of a warning."""
MISSING_ROWS = """\
    See `beaconframes.load_validators`. With ``strict=True``, missing rows raise `MissingRows`
    instead of a warning."""


@pytest.mark.parametrize(
    ("loader", "text"),
    [
        (bf.load_slots, MISSING_BLOCKS),
        (bf.v2.load_balances, MISSING_ROWS),
        (bf.v2.load_state, "    See `beaconframes.load_validators`."),
    ],
)
def test_a_loader_states_which_missing_rows_are_an_error(loader, text):
    """In lines as long as those of the source, after the names of the options."""
    assert f"\n{', '.join(OPTIONS)}\n{text}\n\nReturns\n" in inspect.getdoc(loader)


def test_a_loader_can_be_pickled(loader):
    """By its name: a process of a pool receives the same function."""
    assert pickle.loads(pickle.dumps(loader)) is loader
    assert loader.__qualname__ == loader.__name__


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((), {}, r"load_validators\(\) missing 1 required positional argument: 'validators'"),
        ((1, 2), {}, r"load_validators\(\) takes 1 positional argument but 2 were given"),
        ((1,), {"stricht": True}, r"load_validators\(\) got an unexpected keyword.* 'stricht'"),
        ((1,), {"validators": 2}, r"load_validators\(\) got multiple values for .*'validators'"),
    ],
)
def test_wrong_arguments_are_the_errors_of_any_function(arguments, options, words):
    """They name the loader, and no request is sent."""
    with pytest.raises(TypeError, match=words):
        bf.load_validators(*arguments, **options)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((1,), {"sinse": "7d"}, r"'sinse'\. Did you mean since\?$"),
        ((1,), {"start": "7d"}, r"'start'\. Did you mean since\?$"),
        ((1,), {"end": "7d"}, r"'end'\. Did you mean until\?$"),
        ((1,), {"stricht": True}, r"'stricht'\. Did you mean strict\?$"),
        ((1,), {"colour": 1}, r"'colour'$"),
        ((1, "7d"), {}, r"2 were given\. Pass the others by name: validators, since, until, "),
    ],
)
def test_an_argument_that_does_not_exist_has_a_suggestion(arguments, options, words):
    """A misspelled name, the name of another library, or no name at all."""
    with pytest.raises(TypeError, match=words) as raised:
        bf.load_income_history(*arguments, **options)
    assert raised.value.__context__ is None or raised.value.__suppress_context__


def test_an_error_inside_a_loader_is_not_changed():
    """It is about another call."""

    def count(values):
        return values

    @make_loader(v1.ENDPOINTS[0])
    def load_x(values):
        try:
            return values["a"]
        except TypeError as error:
            return count(str(error), start=1)

    with pytest.raises(TypeError, match=r"unexpected keyword argument 'start'$") as raised:
        load_x("1", strict=True)
    assert not raised.value.__suppress_context__


def test_a_loader_of_a_range_documents_dates_and_timestamps(loader):
    """Z2: ``since`` and ``until`` show in two lines what a date and what a Timestamp means."""
    text = inspect.getdoc(loader)

    has_range = "until" in inspect.signature(loader).parameters

    assert has_range == ('the whole UTC day: ``until="2026-10-01"``' in text)
    assert has_range == ('one instant: ``until=pd.Timestamp("2026-10-01")``' in text)
