"""Loaders as commands: their names, and options derived from their signatures."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.help_texts import parse_argument_help
from beaconframes.cli.list_argument import FILE_OPTIONS, check_number, check_word, parse_list
from beaconframes.cli.validators_argument import parse_id, parse_validators
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Loader = Callable[..., Any]

NOT_OPTIONS = ("explorer", "strict", "lazy", "frame", "max_requests")
"""Arguments of loaders that no command has, or that it has for every loader."""
_REGION = re.compile(r"-?[0-9]{1,9}(?:,-?[0-9]{1,9}){3}", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class ArgumentKind:
    """How the help shows an argument, and how its texts are parsed."""

    metavar: str
    parse: Callable[[str, Any], Any]
    many: bool = False
    flag: bool = False


def parse_time(_option: str, text: str) -> int | str:
    """Return a number as an int; loaders parse dates and ``30d`` themselves."""
    return int(text) if _INTEGER.fullmatch(text) else text


def parse_region(option: str, text: str) -> tuple[int, ...]:
    """Return the corners of a region of the graffiti wall."""
    if not _REGION.fullmatch(text):
        raise UsageError(f"{option} {text!r} is not a valid region", hint="Write it as X1,Y1,X2,Y2")
    return tuple(int(part) for part in text.split(","))


def check_validator(item: Any) -> None:
    """Refuse an item that is neither an index nor a public key."""
    from beaconframes.endpoint.identifiers import normalize_validator

    normalize_validator(item)


def check_of(option: str) -> Callable[[Any], None]:
    """Return the function that validates the items of *option* on standard input."""
    if option == "--validators":
        return check_validator
    return check_number if option in ("--slots", "--periods") else check_word


TEXT = ArgumentKind("TEXT", lambda _, text: text)
NUMBERS = ArgumentKind(
    "LIST", lambda option, texts: parse_list(option, texts, check_of(option)), many=True
)
WORDS = ArgumentKind(
    "LIST",
    lambda option, texts: [str(item) for item in parse_list(option, texts, check_of(option))],
    many=True,
)
KINDS: Mapping[str, ArgumentKind] = {
    "Subjects": NUMBERS,
    "int | str | Iterable[int | str]": NUMBERS,
    "SubjectsOrSet": ArgumentKind("LIST", parse_validators, many=True),
    "SubjectsOrSet | None": ArgumentKind("LIST", parse_validators, many=True),
    "str | Iterable[str]": WORDS,
    "str | Iterable[str] | None": WORDS,
    "Moment | None": ArgumentKind("TIME", parse_time),
    "tuple[int, int, int, int] | None": ArgumentKind("X1,Y1,X2,Y2", parse_region),
    "int | str | None": ArgumentKind("ID", lambda _, text: parse_id(text)),
    "bool": ArgumentKind("", lambda _, chosen: chosen, flag=True),
    "str": TEXT,
    "str | None": TEXT,
}
"""The kind of an argument, by its annotation."""


def list_loaders(version: int = 1) -> list[str]:
    """Return the names of the loaders of V1 or V2, such as ``income-history``."""
    import beaconframes

    names = beaconframes.v2.__all__ if version == 2 else beaconframes.__all__
    return [n.removeprefix("load_").replace("_", "-") for n in names if n.startswith("load_")]


def find_loader(name: str, version: int = 1) -> Loader | None:
    """Return the loader with a name; None if there is none."""
    import beaconframes

    name = name.replace("_", "-")
    if name not in list_loaders(version):
        return None
    module = beaconframes.v2 if version == 2 else beaconframes
    loader: Loader = getattr(module, f"load_{name.replace('-', '_')}")
    return loader


def table_name_of(name: str) -> str:
    """Return the table of a loader in a dataset: ``v2_rewards_list`` for ``v2.rewards-list``."""
    return name.replace("-", "_").replace(".", "_")


def list_arguments(loader: Loader) -> dict[str, inspect.Parameter]:
    """Return the arguments of a loader that become options."""
    parameters = inspect.signature(loader).parameters
    return {name: p for name, p in parameters.items() if name not in NOT_OPTIONS}


def loader_options(loader: Loader) -> list[click.Parameter]:
    """Return an option for each argument of a loader."""
    texts = parse_argument_help(loader)
    return [
        build_option(name, argument, texts.get(name, ""), find_choices(loader, name))
        for name, argument in list_arguments(loader).items()
    ]


def find_choices(loader: Loader, argument: str) -> tuple[str, ...]:
    """Return the values that an argument of a loader can have; none if it can have any."""
    from beaconframes.exports.loader_calls import find_endpoint

    endpoint = find_endpoint(loader)
    parameters = endpoint.parameters if endpoint is not None else ()
    return next((p.choices(argument) for p in parameters if argument in p.arguments()), ())


def build_option(
    name: str, argument: inspect.Parameter, text: str, choices: tuple[str, ...] = ()
) -> click.Option:
    """Return the option for one argument."""
    kind = KINDS[argument.annotation]
    required = argument.default is inspect.Parameter.empty
    if kind.many:
        text += " Separate items by commas; 1-100 is a range, - reads standard input."
    names = [f"--{name.replace('_', '-')}", name]
    if names[0] in FILE_OPTIONS:
        text += " The name of a file reads its list."
    if kind.flag:
        return click.Option(names, is_flag=True, help=text)
    return click.Option(
        names,
        required=required,
        multiple=kind.many,
        type=click.Choice(choices) if choices else None,
        default=None if kind.many or required else argument.default,
        show_default=bool(argument.default) and not kind.many and not required,
        metavar=None if choices else kind.metavar,
        help=text,
    )


def pop_arguments(loader: Loader, values: dict[str, Any]) -> dict[str, Any]:
    """Remove the arguments of a loader from *values*, and return them parsed."""
    arguments: dict[str, Any] = {}
    for name, argument in list_arguments(loader).items():
        text = values.pop(name)
        if text is not None and text != ():
            option = f"--{name.replace('_', '-')}"
            arguments[name] = KINDS[argument.annotation].parse(option, text)
    return arguments


def loads_image(loader: Loader) -> bool:
    """Return whether a loader returns an image instead of rows."""
    return bool(inspect.signature(loader).return_annotation == "Image")
