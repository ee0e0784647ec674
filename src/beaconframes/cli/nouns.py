"""Loaders by their nouns, and their arguments as options: derived from the signatures."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import subjects, validators
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Loader = Callable[..., Any]

NOT_OPTIONS = ("explorer", "strict", "lazy", "frame", "max_requests")
_REGION = re.compile(r"-?[0-9]{1,9}(?:,-?[0-9]{1,9}){3}", re.ASCII)
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_ROWS = re.compile(r", (?:one|a) row|[.;:(]")
_PART = re.compile(r"^(?P<names>[a-z_]+(?:, [a-z_]+)*)\n(?P<text>(?:    .*\n?)+)", re.MULTILINE)


@dataclass(frozen=True)
class Kind:
    """What an argument takes: how it is shown, and how texts become its value."""

    metavar: str
    value: Callable[[str, Any], Any]
    many: bool = False
    flag: bool = False


def moment(_argument: str, text: str) -> int | str:
    """Return a number as one; dates and ``30d`` stay text, which every loader reads."""
    return int(text) if _WHOLE.fullmatch(text) else text


def region(argument: str, text: str) -> tuple[int, ...]:
    """Return the corners of a part of the wall."""
    if not _REGION.fullmatch(text):
        raise UsageError(f"{argument} {text!r} is no region", hint="Give it as X1,Y1,X2,Y2")
    return tuple(int(part) for part in text.split(","))


def one_validator(item: Any) -> None:
    """Refuse what is no validator."""
    from beaconframes.endpoint.identifiers import identifier

    identifier(item)


def checks(argument: str) -> Callable[[Any], None]:
    """Return what refuses a line of standard input for *argument*."""
    if argument == "--validators":
        return one_validator
    return subjects.a_number if argument in ("--slots", "--periods") else subjects.a_word


TEXT = Kind("TEXT", lambda _, text: text)
NUMBERS = Kind("LIST", lambda name, texts: subjects.read(name, texts, checks(name)), many=True)
WORDS = Kind(
    "LIST",
    lambda name, texts: [str(i) for i in subjects.read(name, texts, checks(name))],
    many=True,
)
KINDS: Mapping[str, Kind] = {
    "Subjects": NUMBERS,
    "int | str | Iterable[int | str]": NUMBERS,
    "Validators": Kind("LIST", validators.of_generation_2, many=True),
    "Validators | None": Kind("LIST", validators.of_generation_2, many=True),
    "str | Iterable[str]": WORDS,
    "str | Iterable[str] | None": WORDS,
    "Moment | None": Kind("WHEN", moment),
    "tuple[int, int, int, int] | None": Kind("X1,Y1,X2,Y2", region),
    "int | str | None": Kind("ID", lambda _, text: validators.number_or_path(text)),
    "bool": Kind("", lambda _, chosen: chosen, flag=True),
    "str": TEXT,
    "str | None": TEXT,
}
"""What an argument takes, by its annotation."""


def nouns(generation: int = 1) -> list[str]:
    """Return the nouns of all loaders."""
    import beaconframes

    names = beaconframes.v2.__all__ if generation == 2 else beaconframes.__all__
    return [n.removeprefix("load_").replace("_", "-") for n in names if n.startswith("load_")]


def loader_of(noun: str, generation: int = 1) -> Loader | None:
    """Return the loader of a noun, None if there is none."""
    import beaconframes

    name = noun.replace("_", "-")
    if name not in nouns(generation):
        return None
    home = beaconframes.v2 if generation == 2 else beaconframes
    loader: Loader = getattr(home, f"load_{name.replace('-', '_')}")
    return loader


def table(noun: str) -> str:
    """Return what a dataset calls the rows of a noun: v2.rewards-list is v2_rewards_list."""
    return noun.replace("-", "_").replace(".", "_")


def arguments(loader: Loader) -> dict[str, inspect.Parameter]:
    """Return what a loader takes that a command can give."""
    known = inspect.signature(loader).parameters
    return {name: p for name, p in known.items() if name not in NOT_OPTIONS}


def options(loader: Loader) -> list[click.Parameter]:
    """Return an option for each argument of a loader."""
    texts = told(loader)
    return [option(name, given, texts.get(name, "")) for name, given in arguments(loader).items()]


def option(name: str, given: inspect.Parameter, text: str) -> click.Option:
    """Return the option for one argument."""
    kind = KINDS[given.annotation]
    needed = given.default is inspect.Parameter.empty
    if kind.many:
        text += " With commas between; 1-100 is a range, and - reads standard input."
    word = [f"--{name.replace('_', '-')}", name]
    if kind.flag:
        return click.Option(word, is_flag=True, help=text)
    return click.Option(
        word,
        required=needed,
        multiple=kind.many,
        default=None if kind.many or needed else given.default,
        show_default=bool(given.default) and not kind.many and not needed,
        metavar=kind.metavar,
        help=text,
    )


def values(loader: Loader, given: dict[str, Any]) -> dict[str, Any]:
    """Take a loader's arguments out of what the command line gave, each as the loader takes it."""
    taken: dict[str, Any] = {}
    for name, argument in arguments(loader).items():
        text = given.pop(name)
        if text is not None and text != ():
            taken[name] = KINDS[argument.annotation].value(f"--{name.replace('_', '-')}", text)
    return taken


def told(loader: Loader) -> dict[str, str]:
    """Return what the docstring says of each argument."""
    text = inspect.getdoc(loader) or ""
    _, _, rest = text.partition("Parameters\n----------\n")
    found: dict[str, str] = {}
    for part in _PART.finditer(rest.partition("\n\n")[0] + "\n"):
        for name in part["names"].split(", "):
            found[name] = plain(part["text"])
    return found


def summary(loader: Loader) -> str:
    """Return what a loader does, for the help of its command."""
    text = inspect.getdoc(loader) or ""
    return plain(text.partition("Parameters\n----------\n")[0], paragraphs=True)


def title(loader: Loader) -> str:
    """Return what a loader gives in a few words, for a list."""
    return _ROWS.split(summary(loader), maxsplit=1)[0].removeprefix("Load ")


def plain(text: str, *, paragraphs: bool = False) -> str:
    """Return text of a docstring without its marks."""
    between = "\n\n" if paragraphs else " "
    parts = [" ".join(part.split()) for part in text.split("\n\n" if paragraphs else "\n")]
    return re.sub(r"`{1,2}([^`]*)`{1,2}|\*([a-z_]+)\*", r"\1\2", between.join(filter(None, parts)))


def gives_a_picture(loader: Loader) -> bool:
    """Tell whether what is loaded is no rows but a picture."""
    return bool(inspect.signature(loader).return_annotation == "Image")
