"""Help texts: docstrings of Python functions in the syntax of a shell."""

from __future__ import annotations

import re

import click
import pytest

from beaconframes import cli

GROUPS = {"analyse", "export", "index", "load", "plan", "plot", "record", "report", "serve"}
GROUPS |= {"simulate", "store"}
PYTHON = re.compile(
    r"\b(?:bf|pd|pl|ax|beaconframes)\.[a-z]|``|\bSeries\b|lazy frame|=True|(?:since|until)="
)


def list_texts(command, words=()):
    """Yield the words of each command, its options, and each of its help texts."""
    context = click.Context(command)
    options = {option for p in command.get_params(context) for option in p.opts + p.secondary_opts}
    for text in (command.help, *(getattr(p, "help", None) for p in command.params)):
        yield " ".join(words), options, text or ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from list_texts(command.get_command(context, name), (*words, name))


@pytest.fixture(scope="module")
def texts():
    """Help texts that come from docstrings."""
    commands = list_texts(cli.commands)
    return [(words, *rest) for words, *rest in commands if words.partition(" ")[0] in GROUPS]


def test_help_has_no_python(texts):
    """Values are options of a shell; functions are commands."""
    assert len(texts) > 1000
    assert [] == [(words, text) for words, _, text in texts if PYTHON.search(text)]


def test_help_names_options_of_the_command(texts):
    """What looks like an option is one, of this command."""
    named = [
        (words, option)
        for words, options, text in texts
        if " " in words
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)
        if option not in options
    ]
    assert [] == named


def test_help_names_commands(texts):
    """Each ``load NAME`` is a loader; the other names are of V2 and begin with ``v2.``."""
    load = cli.commands.get_command(click.Context(cli.commands), "load")
    context = click.Context(load)
    names = {
        name
        for *_, text in texts
        for name in re.findall(r"\bload ([a-z0-9.]+(?:-[a-z0-9]+)+)", text)
    }
    assert len(names) > 10
    assert [] == [name for name in names if load.get_command(context, name) is None]


def test_ends_of_a_range_have_their_own_texts():
    """``--since`` has the forms of a time once; ``--until`` is the last epoch, not the first."""
    from beaconframes import load_income_history
    from beaconframes.cli.docstrings import describe_arguments

    texts = describe_arguments(load_income_history)

    assert texts["since"].startswith("First epoch, inclusive: an epoch, a negative number")
    assert "Last epoch, inclusive, in the same forms as --since." == texts["until"]
    assert "First and last" not in " ".join(texts.values())
    alone = describe_arguments(load_income_history, ["until"])
    assert alone["until"].startswith("Last epoch, inclusive, as a number, a date")
