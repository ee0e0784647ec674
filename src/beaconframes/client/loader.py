"""What all loaders share: their options, the types of these, and the function behind each."""

from __future__ import annotations

import inspect
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sized
from functools import update_wrapper
from traceback import walk_stack
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Required,
    TypeAlias,
    TypedDict,
    get_type_hints,
)

import polars as pl

from beaconframes.calendar import to_integer
from beaconframes.client.connection import get_explorer
from beaconframes.client.explorer import Explorer
from beaconframes.endpoint import Endpoint, Envelope
from beaconframes.endpoint.parameter import Role
from beaconframes.endpoint.validator_sets import ValidatorSet
from beaconframes.errors import UsageWarning, find_caller_level
from beaconframes.misspelled_names import wrong_arguments
from beaconframes.time_range import Moment

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    Frame: TypeAlias = pl.DataFrame | pl.LazyFrame | pd.DataFrame
else:
    # Importing pandas takes half a second: it is imported only when a pandas frame is made.
    Frame = pl.DataFrame | pl.LazyFrame

Subjects: TypeAlias = int | str | Iterable[int | str]
"""An index or a public key, or a list, range, array or Series of them, mixed.

A text may be a list with ranges, as on the command line: ``"1,2,100-199"``.
"""

SubjectsOrSet: TypeAlias = Subjects | ValidatorSet
"""Subjects of V2: also a set such as ``dashboard(7)``."""

Values: TypeAlias = dict[str, Any]
"""The values of an endpoint's arguments, by name."""


class LoadOptions(TypedDict, total=False):
    """Arguments that every loader takes besides its own."""

    explorer: Explorer | None
    strict: bool | None
    max_requests: int | None


class Eager(LoadOptions, total=False):
    """Options of a call that returns a polars DataFrame."""

    lazy: Literal[False]
    frame: Literal["polars"] | None


class Lazy(LoadOptions, total=False):
    """Options of a call that returns a polars LazyFrame."""

    lazy: Required[Literal[True]]
    frame: Literal["polars"] | None


class Pandas(LoadOptions, total=False):
    """Options of a call that returns a pandas DataFrame."""

    lazy: Literal[False]
    frame: Required[Literal["pandas"]]


class Range(TypedDict, total=False):
    """The range of a loader that takes one."""

    since: Moment | None
    until: Moment | None


class EagerRange(Eager, Range, total=False):
    """Range and options of a call that returns a polars DataFrame."""


class LazyRange(Lazy, Range, total=False):
    """Range and options of a call that returns a polars LazyFrame."""


class PandasRange(Pandas, Range, total=False):
    """Range and options of a call that returns a pandas DataFrame."""


def load(
    endpoint: Endpoint,
    values: Mapping[str, Any],
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the rows of *endpoint* that *values* select, from *explorer* or the connected one."""
    used_explorer = explorer if isinstance(explorer, Explorer) else get_explorer(explorer)
    for bound in ("since", "until"):
        # From here on, every number is an int, numpy's included.
        if (number := to_integer(values.get(bound))) is not None:
            values = {**values, bound: number}
    rows: Frame = used_explorer.load(
        endpoint, values, strict=strict, lazy=lazy, frame=frame, max_requests=max_requests
    )
    return rows


POSSIBLE_YEARS = range(2020, 2101)
"""Numbers of a slot or an epoch that may be meant as a year."""


def _warn_if_empty(endpoint: Endpoint, name: str) -> None:
    """Warn of an empty list of subjects; an empty filter lets all rows pass."""
    parameters = endpoint.parameters_of(Role.SUBJECT, Role.UNITS)
    if any(name in parameter.arguments() for parameter in parameters):
        _warn_user(UsageWarning(f"{name} is empty, so no rows are loaded"))


def _warn_if_year(endpoint: Endpoint, name: str, number: int, explorer: Any) -> None:
    """Warn of a slot or an epoch with the *number* of a later year, before the present one."""
    explorer = explorer if isinstance(explorer, Explorer) else get_explorer(explorer)
    for parameter in endpoint.parameters_of(Role.RANGE):
        unit = parameter.rows_column.unit if parameter.rows_column else "slot"
        if name not in parameter.arguments() or unit not in {"slot", "epoch"}:
            continue
        if explorer.chain.time_of("epoch", number).year < number <= explorer.now().year:
            _warn_user(
                UsageWarning(
                    f"{name}={number} is the number of a slot or an epoch, not the year",
                    hint=f'A month of that year is {name}="{number}-01"',
                )
            )


def _warn_user(warning: UsageWarning) -> None:
    """Warn of an argument of a user; the package computes arguments for its own loads."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_stack(None))
    caller = next(name for name in modules if name != __name__)
    if not caller.startswith("beaconframes.") or caller.startswith("beaconframes.cli."):
        warnings.warn(warning, stacklevel=find_caller_level())


OPTIONS = {
    name: parameter
    for name, parameter in inspect.signature(load).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
}
"""The keywords that every loader has."""

OPTION_TYPES = {name: hint for name, hint in get_type_hints(load).items() if name in OPTIONS}


def loader(
    endpoint: Endpoint, *, missing: str = ""
) -> Callable[[Callable[..., Values]], Callable[..., Frame]]:
    """Make a loader of a function that returns the values of the arguments of *endpoint*.

    The loader loads the rows that these values select. It has the arguments and the docstring of
    the function, and the options of all loaders in both. Its overloads are in the stubs, which
    `make docs` writes. *missing* says in the docstring which missing rows are an error with
    ``strict=True``.
    """

    def decorate(function: Callable[..., Values]) -> Callable[..., Frame]:
        def load_rows(*args: Any, **kwargs: Any) -> Frame:
            options = {name: kwargs.pop(name) for name in OPTIONS if name in kwargs}
            try:
                values = function(*args, **kwargs)
            except TypeError as error:
                explained = wrong_arguments(error, [*own.parameters, *OPTIONS])
                if explained is None:
                    raise
                raise explained from None
            for name, value in values.items():
                # An array of numpy without a dimension has no length.
                is_list = isinstance(value, Sized) and getattr(value, "ndim", 1) != 0
                if is_list and len(value) == 0:
                    _warn_if_empty(endpoint, name)
                elif type(value) is int and value in POSSIBLE_YEARS:
                    _warn_if_year(endpoint, name, value, options.get("explorer"))
            return load(endpoint, values, **options)

        own = inspect.signature(function)
        update_wrapper(load_rows, function)
        parameters = [*own.parameters.values(), *OPTIONS.values()]
        vars(load_rows)["__signature__"] = own.replace(
            parameters=parameters, return_annotation="Frame"
        )
        # Types, not their names: the module of the function need not import them.
        load_rows.__annotations__ = {**function.__annotations__, **OPTION_TYPES, "return": Frame}
        load_rows.__doc__ = describe_options(inspect.getdoc(function) or "", endpoint, missing)
        return load_rows

    return decorate


def describe_options(text: str, endpoint: Endpoint, missing: str) -> str:
    """Return the docstring of a loader with its options; one that describes them stays."""
    if "\nmax_requests\n" in text:
        return text
    # V2 has a `load_validators` of its own.
    package = "beaconframes." if endpoint.envelope is Envelope.V2 else ""
    options = f"See `{package}load_validators`."
    if missing:
        options += f" With ``strict=True``, {missing} raise `MissingRows` instead of a warning."
    arguments, returns, rest = text.partition("\nReturns\n-------\n")
    heading = "Parameters\n----------\n"
    if heading in arguments:
        heading = ""
    else:
        arguments += "\n"
    described = textwrap.fill(options, 96, initial_indent="    ", subsequent_indent="    ")
    return f"{arguments}{heading}{', '.join(OPTIONS)}\n{described}\n{returns}{rest}"
