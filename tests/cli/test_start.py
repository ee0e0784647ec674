"""A command that only prints help imports little, so that it answers at once."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from beaconframes import cli
from beaconframes.cli.loader_options import read_titles

HEAVY = {
    "httpx",
    "matplotlib",
    "msgspec",
    "narwhals",
    "numpy",
    "pandas",
    "plotly",
    "polars",
    "pyarrow",
    "starlette",
    "tenacity",
}
COUNT = """
import json, sys
before = len(sys.modules)
import click
with_click = len(sys.modules)
from beaconframes.cli import commands
try:
    commands.main(args=sys.argv[1:])
except SystemExit as ended:
    assert not ended.code
print(json.dumps([len(sys.modules) - with_click, sorted(sys.modules)]), file=sys.stderr)
"""


def count_modules(*words):
    """Return the number of modules that a command imports beside click, and all names."""
    ended = subprocess.run(
        [sys.executable, "-c", COUNT, *words], capture_output=True, text=True, check=True
    )
    assert ended.stdout
    return json.loads(ended.stderr)


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (("--version",), 100),
        (("--help",), 50),
        (("load", "--help"), 90),
        (("plan", "--help"), 90),
        (("export", "--v2", "--help"), 90),
    ],
)
def test_help_imports_few_modules(words, most):
    """No library for data, HTTP or charts, and none of the modules that use them."""
    count, modules = count_modules(*words)

    assert set() == HEAVY & set(modules)
    assert [] == [name for name in modules if name.startswith(("beaconframes.v", "beaconframes.a"))
                  and name != "beaconframes.addresses"]  # fmt: skip
    assert count <= most


def test_the_list_of_commands_has_the_sentence_of_each():
    """The list is written without an import of the commands, and their help begins alike."""
    context = click.Context(cli.commands)
    commands = {name: cli.commands.get_command(context, name) for name in cli.COMMANDS}

    assert cli.COMMANDS == {
        name: command.get_short_help_str(200) for name, command in commands.items()
    }


@pytest.mark.parametrize(
    ("version", "loader", "subject"),
    [
        (1, "execution-performance", "Validators"),
        (2, "validator-queues", "Validators"),
        (1, "voluntary-exits", "Blocks"),
        (2, "block-rewards", "Blocks"),
        (1, "gas-fees", "Execution"),
        (1, "latest-state", "Chain"),
        (2, "machine-metrics", "Service"),
    ],
)
def test_the_subject_of_a_loader_is_that_of_its_route(version, loader, subject):
    """The first word of the route; what is about none of the subjects is about the chain."""
    assert loader in read_titles(version)[subject]


def test_help_lists_loaders_by_subject():
    """Each loader is in one section."""
    titles = read_titles(1)

    assert ["Validators", "Chain", "Blocks", "Execution", "Service"] == list(titles)
    assert "income-history" in titles["Validators"]
    assert "voluntary-exits" in titles["Blocks"]
    names = [name for section in titles.values() for name in section]
    assert len(names) == len(set(names))
