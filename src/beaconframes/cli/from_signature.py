"""Options of commands, from the signatures of Python functions.

The resolved type of an argument decides how its option is shown, and how its text is parsed.
"""

from __future__ import annotations

import collections.abc
import inspect
import os
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
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

from beaconframes.calendar import Chain, Moment
from beaconframes.cli.argument_texts import (
    FILE_OPTIONS,
    parse_names,
    parse_numbers,
    parse_region,
    parse_time,
    parse_words,
)
from beaconframes.cli.common_options import FILE, JSON_HELP
from beaconframes.cli.docstrings import describe, describe_arguments
from beaconframes.cli.validators_argument import parse_id, parse_validators

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


class FrameArgument:
    """The type of an argument that is a frame: no text of an option can be one."""


class MainFrameArgument:
    """The type of the frame whose kind the result has."""


TYPE_NAMES: Mapping[str, Any] = {
    **vars(collections.abc),
    "Chain": Chain,
    "Groups": collections.abc.Mapping,
    "IntoFrame": FrameArgument,
    "IntoFrameT": MainFrameArgument,
    "Moment": Moment,
    "Names": FrameArgument,
    "Path": Path,
    "Region": tuple[int, int, int, int],
}
"""Names in annotations that modules import for type checkers only."""
AsJson = Annotated[bool, "--json"]
"""The type of the argument for output as JSON."""


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
    is_frame: bool = False
    option: str = ""
    """The name of the option, if it is another one than that of the argument."""


@dataclass(frozen=True)
class Argument:
    """An argument of a function, as an option of its command."""

    name: str
    kind: Kind
    default: Any
    text: str

    @property
    def option(self) -> str:
        """Return the name of the option."""
        return self.kind.option or f"--{self.name.replace('_', '-')}"

    @property
    def is_required(self) -> bool:
        """Return whether the function has no default for it."""
        return self.default is inspect.Parameter.empty

    def build(self) -> click.Option:
        """Return the option."""
        kind, names = self.kind, [self.option, self.name]
        if kind.flag:
            return click.Option(names, is_flag=True, default=self.default, help=self.text)
        is_list = kind.many or kind.repeated
        text = self.text
        if kind.many:
            text += " Separate items by commas; 1-100 is a range, - reads standard input."
        if self.option in FILE_OPTIONS and is_list:
            text += " A file, or a folder of keystores, has its validators."
        # A default of None would be a value, and a required option would no longer be missing.
        has_default = not is_list and self.default not in (inspect.Parameter.empty, None, "", ())
        default: dict[str, Any] = {"default": self.default} if has_default else {}
        return click.Option(
            names,
            required=self.is_required,
            multiple=is_list,
            type=kind.type,
            show_default=has_default,
            metavar=kind.metavar,
            help=text,
            **default,
        )


def resolve_types(function: Callable[..., Any], excluded: Collection[str] = ()) -> dict[str, Any]:
    """Return the type of each argument of a function, except the *excluded* ones."""
    parameters = inspect.signature(function).parameters
    hints = {n: p.annotation for n, p in parameters.items() if n not in excluded}
    names = inspect.unwrap(function).__globals__
    holder = SimpleNamespace(__annotations__=hints)
    return get_type_hints(holder, names, dict(TYPE_NAMES), include_extras=True)


def list_arguments(
    function: Callable[..., Any],
    excluded: Collection[str] = (),
    choices: Callable[[str], Collection[str]] = lambda _name: (),
    texts: Mapping[str, str] | None = None,
) -> dict[str, Argument]:
    """Return the arguments of a function that can be options, except the *excluded* ones.

    *choices* returns the values of an argument whose type does not list them; *texts* replace
    descriptions of the docstring.
    """
    types = resolve_types(function, excluded)
    parameters = inspect.signature(function).parameters
    kinds = {name: find_kind(hint, choices(name)) for name, hint in types.items()}
    names = [name for name in parameters if name in kinds and not kinds[name].is_frame]
    described = describe_arguments(function, names) | dict(texts or {})
    return {
        name: Argument(name, kinds[name], parameters[name].default, described.get(name, ""))
        for name in names
    }


def list_frames(function: Callable[..., Any]) -> dict[str, bool]:
    """Return the arguments of a function that are frames, and whether each is required.

    The frame whose kind the result has comes first.
    """
    types = resolve_types(function)
    parameters = inspect.signature(function).parameters
    frames = [name for name in parameters if find_kind(types[name]).is_frame]
    frames.sort(key=lambda name: MainFrameArgument not in split_union(types[name]))
    return {name: parameters[name].default is inspect.Parameter.empty for name in frames}


def list_choices(function: Callable[..., Any], argument: str) -> tuple[str, ...]:
    """Return the values that an argument can have; none if it can have any, or does not exist."""
    members = split_union(resolve_types(function).get(argument))
    return next((get_args(each) for each in members if get_origin(each) is Literal), ())


def split_union(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union without None; a tuple of one for another type."""
    members = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    return tuple(each for each in members if each is not NoneType)


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


def find_kind(hint: Any, choices: Collection[str] = ()) -> Kind:
    """Return the kind of an argument of this type."""
    if get_origin(hint) is Annotated:
        plain, *details = get_args(hint)
        return add_details(find_kind(plain, choices), details)
    members = split_union(hint)
    origins = {get_origin(each): each for each in members}
    if {FrameArgument, MainFrameArgument} & {*members}:
        return FRAME
    if choices or Literal in origins:
        return Kind(type=click.Choice(list(choices or get_args(origins[Literal]))))
    if any(getattr(each, "__name__", "") == "ValidatorSet" for each in members):
        return SETS_OF_VALIDATORS
    if collections.abc.Iterable in origins:
        items = split_union(get_args(origins[collections.abc.Iterable])[0])
        return NUMBERS if int in items else WORDS
    if collections.abc.Sequence in origins:
        return NAMES
    if datetime in members:
        return TIME
    if tuple in origins and float not in members:
        return Kind(repeated=True) if Ellipsis in get_args(origins[tuple]) else REGION
    if Path in members or os.PathLike in origins:
        return Kind(type=FILE)
    return SCALARS.get(members, TEXT)


FRAME = Kind(is_frame=True)
TEXT = Kind("TEXT")
TIME = Kind("TIME", parse_time)
REGION = Kind("X1,Y1,X2,Y2", parse_region)
NAMES = Kind(parse=parse_names)
NUMBERS = Kind("LIST", parse_numbers, many=True)
WORDS = Kind("LIST", parse_words, many=True)
SETS_OF_VALIDATORS = Kind("LIST", parse_validators, many=True)
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
        text = values.pop(name)
        if text is not None and text != ():
            given[name] = argument.kind.parse(argument.option, text)
    return given


def command(*more: click.Parameter) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command of a function.

    Keyword arguments are options, the others are words. *more* parameters come after them; their
    values are further keywords.
    """

    def build(function: Callable[..., Any]) -> click.Command:
        parameters = inspect.signature(function).parameters
        rest = [name for name, p in parameters.items() if p.kind is p.VAR_KEYWORD]
        arguments = list_arguments(function, rest, texts={"as_json": JSON_HELP})
        own = [
            argument.build()
            if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
            else click.Argument([name], required=argument.is_required, type=argument.kind.type)
            for name, argument in arguments.items()
        ]
        return click.Command(
            function.__name__,
            params=[*own, *more],
            help=describe(function, arguments),
            callback=function,
        )

    return build
