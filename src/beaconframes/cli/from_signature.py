"""Options of commands, from the signatures of Python functions.

The resolved type of an argument decides how its option is shown, and how its text is parsed.
"""

from __future__ import annotations

import collections.abc
import inspect
import os
import threading
from dataclasses import dataclass, is_dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from beaconframes.calendar import Chain
from beaconframes.cli.argument_texts import (
    FILE_OPTIONS,
    parse_id,
    parse_list,
    parse_names,
    parse_region,
    parse_time,
    parse_validators,
    parse_words,
)
from beaconframes.cli.common_options import FILE
from beaconframes.cli.docstrings import describe, describe_arguments
from beaconframes.time_range import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


class PythonObject:
    """The type of an argument that is an object of Python: no text of an option can be one."""


class FrameArgument(PythonObject):
    """The type of an argument that is a frame."""


class MainFrameArgument(FrameArgument):
    """The type of the frame whose kind the result has."""


PYTHON_NAMES = (
    "Axes", "Chart", "Dataset", "Executor", "Explorer", "Export", "Node", "NodeConnection",
    "ObjectStore", "Target",
)  # fmt: skip
TYPE_NAMES: Mapping[str, Any] = {
    **vars(collections.abc),
    **dict.fromkeys(PYTHON_NAMES, PythonObject),
    "Chain": Chain,
    "Groups": collections.abc.Mapping,
    "IntoFrame": FrameArgument,
    "IntoFrameT": MainFrameArgument,
    "Moment": Moment,
    "Names": FrameArgument,
    "Path": Path,
    "Region": tuple[int, int, int, int],
    "RegionChoice": tuple[int, int, int, int] | Literal["all"] | None,
    "os": os,
    "threading": threading,
    "timedelta": timedelta,
}
"""Names in annotations that modules import for type checkers only."""
METAVARS = {"at": "X Y", "figsize": "WIDTH HEIGHT", "year": "YEAR"}
"""How the help shows the values of arguments whose type does not say what they are."""
JSON = "Print JSON instead of text."
SHARED_TEXTS = {
    "overwrite": "Replace an existing file.",
    "raw": "Do not escape text that a spreadsheet runs as a formula.",
}
"""The help of arguments that several commands have."""


@dataclass(frozen=True)
class Kind:
    """How the help shows an argument, and how its texts are parsed."""

    metavar: str | None = None
    parse: Callable[[str, Any], Any] = lambda _option, value: value
    type: Any = None
    many: bool = False
    """Whether the option is a list, whose items are separated by commas."""
    repeated: bool = False
    """Whether each use of the option adds one text."""
    flag: bool = False
    option: str = ""
    """The name of the option, if it is another one than that of the argument."""


@dataclass(frozen=True)
class Argument:
    """An argument of a function, as an option of its command."""

    name: str
    """Its name in the values of the command."""
    kind: Kind
    default: Any
    text: str

    @property
    def option(self) -> str:
        """Return the name of the option."""
        return self.kind.option or f"--{self.name.rstrip('_').replace('_', '-')}"

    @property
    def is_required(self) -> bool:
        """Return whether the function has no default for it."""
        return self.default is inspect.Parameter.empty

    def build(self, make: type[click.Option] = click.Option) -> click.Option:
        """Return the option; a flag that is on, or unknown, has another one that turns it off."""
        kind, option, text = self.kind, self.option, self.text
        if kind.flag:
            names = option if self.default is False else f"{option}/--no-{option[2:]}"
            return make(
                [names, self.name],
                is_flag=True,
                default=self.default,
                show_default=self.default is True,
                help=text,
            )
        is_list = kind.many or kind.repeated
        if kind.many:
            text += " Separate items by commas; 1-100 is a range, - reads standard input."
        if option in FILE_OPTIONS and is_list:
            text += " A file, or a folder of keystores, has its validators."
        # A default of None would be a value, and a required option would no longer be missing.
        has_default = not is_list and self.default not in (inspect.Parameter.empty, None, "", ())
        default: dict[str, Any] = {"default": self.default} if has_default else {}
        return make(
            [option, self.name],
            required=self.is_required,
            multiple=is_list,
            type=kind.type,
            show_default=has_default,
            metavar=METAVARS.get(self.name, kind.metavar),
            help=text,
            **default,
        )


def resolve_types(function: Callable[..., Any] | type) -> dict[str, Any]:
    """Return the type of each argument of a function, or of each item of a TypedDict."""
    return get_type_hints(function, localns=dict(TYPE_NAMES), include_extras=True)


def list_arguments(
    function: Callable[..., Any],
    excluded: Collection[str] = (),
    *,
    texts: Mapping[str, str] | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> dict[str, Argument]:
    """Return the arguments of a function that can be options, except the *excluded* ones.

    *texts* replace descriptions of the docstring, and *kinds* those of the types.
    """
    kinds = kinds or {}
    hints = resolve_types(function)
    parameters = inspect.signature(function).parameters
    names = [
        name
        for name, parameter in parameters.items()
        if name not in excluded
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and (name in kinds or not has_type(hints[name], (PythonObject, range)))
    ]
    described = SHARED_TEXTS | describe_arguments(function, names) | dict(texts or {})
    return {
        name: Argument(
            name,
            kinds.get(name) or find_kind(hints[name]),
            parameters[name].default,
            described.get(name, ""),
        )
        for name in names
    }


def list_frames(function: Callable[..., Any]) -> dict[str, bool]:
    """Return the arguments of a function that are frames, and whether each is required.

    The frame whose kind the result has comes first.
    """
    types = resolve_types(function)
    parameters = inspect.signature(function).parameters
    frames = [name for name in parameters if has_type(types.get(name), FrameArgument)]
    frames.sort(key=lambda name: not has_type(types[name], MainFrameArgument))
    return {name: parameters[name].default is inspect.Parameter.empty for name in frames}


def has_type(hint: Any, wanted: type | tuple[type, ...]) -> bool:
    """Return whether a type, or a member of a union, is *wanted* or a subclass of it."""
    return any(isinstance(each, type) and issubclass(each, wanted) for each in split_union(hint))


def split_union(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union without None; a tuple of one for another type."""
    members = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    return tuple(each for each in members if each is not NoneType)


def find_kind(hint: Any) -> Kind:
    """Return the kind of an argument of this type."""
    if get_origin(hint) is Annotated:
        plain, *details = get_args(hint)
        return add_details(find_kind(plain), details)
    members = split_union(hint)
    origins = {get_origin(each): each for each in members}
    items = get_args(origins.get(tuple))
    if Literal in origins and not items:
        return Kind(type=click.Choice(get_args(origins[Literal])))
    if any(getattr(each, "__name__", "") == "ValidatorSet" for each in members):
        return SETS_OF_VALIDATORS
    if collections.abc.Iterable in origins:
        item_types = split_union(get_args(origins[collections.abc.Iterable])[0])
        return NUMBERS if int in item_types else WORDS
    if {collections.abc.Sequence, collections.abc.Collection} & origins.keys():
        return NAMES
    if {datetime, timedelta} & {*members}:
        return TIME
    if items and float not in members:
        region = WALL_REGION if Literal in origins else REGION
        return Kind(repeated=True) if Ellipsis in items else PAIRS.get(items, region)
    if {Path, Any} & {*members} or os.PathLike in origins:
        return Kind(type=FILE)
    return SCALARS.get(members, TEXT)


def add_details(kind: Kind, details: Collection[Any]) -> Kind:
    """Return a kind with its type of click, its metavar, or another name of its option."""
    for detail in details:
        if not isinstance(detail, str):
            kind = replace(kind, type=detail)
        elif detail.startswith("--"):
            kind = replace(kind, option=detail)
        else:
            kind = replace(kind, metavar=detail)
    return kind


TEXT = Kind("TEXT")
TIME = Kind("TIME", parse_time)
REGION = Kind("X1,Y1,X2,Y2", parse_region)
WALL_REGION = replace(
    REGION, parse=lambda option, text: text if text == "all" else parse_region(option, text)
)
NAMES = Kind(parse=parse_names)
NUMBERS = Kind("LIST", parse_list, many=True)
WORDS = Kind("LIST", parse_words, many=True)
SETS_OF_VALIDATORS = Kind("LIST", parse_validators, many=True)
PAIRS = {(number, number): Kind(type=(number, number)) for number in (int, float)}
SCALARS: Mapping[tuple[Any, ...], Kind] = {
    (bool,): Kind(flag=True),
    (int,): Kind(type=int),
    (float,): Kind(type=float),
    (int, str): Kind("ID", lambda _option, text: parse_id(text)),
}
"""The kind of an argument of one of these types alone."""


def pop_arguments(arguments: Mapping[str, Argument], values: dict[str, Any]) -> dict[str, Any]:
    """Remove the arguments of a function from *values*, and return the given ones parsed."""
    given: dict[str, Any] = {}
    for name, argument in arguments.items():
        text = values.pop(argument.name)
        if text is not None and text != ():
            given[name] = argument.kind.parse(argument.option, text)
    return given


def command(
    *more: click.Parameter,
    name: str | None = None,
    text: str = "",
    **groups: Mapping[str, Argument],
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command of a function.

    Its keyword arguments are options, the others are words. An argument whose type is a dataclass
    has an option for each field. One of the *groups* has those of another function; it is a dict of
    the given ones, parsed. The values of *more* parameters are further keywords. The help is
    *text*, or the docstring. `rendering.print_result` obeys the option ``--json``.
    """

    def build(function: Callable[..., Any]) -> click.Command:
        hints = resolve_types(function)
        classes: dict[str, Any] = {n: hint for n, hint in hints.items() if is_dataclass(hint)}
        several = {**groups, **{n: list_arguments(each) for n, each in classes.items()}}
        own = list_arguments(function, [*several, *(str(each.name) for each in more)])
        options: dict[str, Argument] = {}
        words = []
        for n, parameter in inspect.signature(function).parameters.items():
            if n in several:
                options |= several[n]
            elif n in own and parameter.kind is parameter.KEYWORD_ONLY:
                options[n] = own[n]
            elif n in own:
                word = own[n]
                words.append(click.Argument([n], required=word.is_required, type=word.kind.type))

        def call(**values: Any) -> Any:
            for n, arguments in several.items():
                values[n] = classes.get(n, dict)(**pop_arguments(arguments, values))
            return function(**pop_arguments(own, values), **values)

        # The state of the command keeps its value.
        as_json = click.Option(["--json"], is_flag=True, expose_value=False, help=JSON)
        return click.Command(
            name or function.__name__,
            params=[*words, *(option.build() for option in options.values()), as_json, *more],
            help=text or describe(function, own | options),
            callback=call,
        )

    return build
