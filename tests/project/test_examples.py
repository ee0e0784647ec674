"""The examples of README.md and of the guide: they run, and print what the pages show."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import shlex
from pathlib import Path

import click
import pytest

import beaconframes as bf
from beaconframes.cli import commands

ROOT = Path(__file__).parents[2]


def load_runner():
    """Return the module that runs the examples."""
    described = importlib.util.spec_from_file_location("examples", ROOT / "docs" / "examples.py")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


runner = load_runner()
RUN = runner.find_pages()
LONG = {"analysis", "charts", "operator", "report", "solo-staker", "wall-artist"}
"""Pages whose examples take more than four seconds."""
CHECKED = [*RUN, ROOT / "docs" / "command-line.md", *(ROOT / "docs").glob("own-node*.md")]


def each_page(pages):
    """Run a test for each of *pages*."""
    return pytest.mark.parametrize(
        "page", pages, ids=lambda page: page.relative_to(ROOT).as_posix()
    )


def blocks(page, language):
    """Return the examples of a page in one language."""
    examples = runner.find_examples(page.read_text(encoding="utf-8"))
    return [example for example in examples if example.language == language]


def find_name(node):
    """Return the public object that ``bf.a.b`` names, or None for another expression."""
    if isinstance(node, ast.Name):
        return bf if node.id == "bf" else None
    if isinstance(node, ast.Attribute) and (owner := find_name(node.value)) is not None:
        return getattr(owner, node.attr)
    return None


def find_unknown_arguments(source):
    """Return the keywords of calls of public functions that these do not take."""
    found = []
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Attribute):
            find_name(call)
        if not isinstance(call, ast.Call) or (function := find_name(call.func)) is None:
            continue
        parameters = inspect.signature(function).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            continue
        known = {parameter.name for parameter in parameters} | {None}
        found += [ast.unparse(call) for keyword in call.keywords if keyword.arg not in known]
    return found


def parse_command(line):
    """Parse a command line as the program does, without running it."""
    program, *rest = shlex.split(line.partition(" < ")[0])
    assert program == "beaconframes"
    command, context = commands, commands.make_context(program, rest)
    while isinstance(command, click.Group):
        words = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, words)
        context = command.make_context(name, rest, parent=context)


@each_page(CHECKED)
def test_names_and_arguments_of_examples_exist(page):
    """Step 12, 1: also in the examples that need a key or a node, and are not run."""
    unknown = [
        found for block in blocks(page, "python") for found in find_unknown_arguments(block.source)
    ]

    assert [] == unknown


@each_page(CHECKED)
def test_commands_of_examples_exist(page, tmp_path, monkeypatch):
    """Step 12, 1: each command is one of the program, with options that it has."""
    (tmp_path / "mychain").mkdir()
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks(page, "console") for line in block.commands]
    for line in lines:
        if line.startswith("beaconframes"):
            parse_command(line.partition(" >")[0])
        else:
            assert line.split()[0] in {"export", "git", "make", "pip", ".", "cd", "python"}, line


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.long if page.stem in LONG else pytest.mark.more)
        for page in RUN
    ],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_examples_print_what_the_page_shows(page, machine_cache):
    """Step 12, 1: each block runs as it stands; when its output differs: `make docs`."""
    text = page.read_text(encoding="utf-8")
    with runner.clean_environment():
        filled = runner.fill_page(text)

    assert text == filled


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("analysis", [name for name in bf.analysis.__all__ if not name.isupper()]),
        ("charts", [*bf.plot.__all__, *bf.wall.__all__]),
        ("v1-or-v2", [name for name in dir(bf.v2) if name.startswith("load_")]),
    ],
)
def test_the_guide_names_every_function(page, names):
    """Step 12, 4: a function that no page names is not found."""
    text = (ROOT / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8")

    assert [] == [name for name in names if f"`{name}" not in text and f".{name}(" not in text]


def test_output_is_inserted_below_its_block():
    """Printed text, warnings, the last value and errors of the package; prose stays."""
    blocks = [
        "import warnings\nx = 1",
        "print(x)\nwarnings.warn('late')\nx + 1",
        "import beaconframes as bf\nbf.describe('nothing')",
    ]
    first, second, third = (f"```python\n{block}\n```\n" for block in blocks)
    page = f"{first}\n{second}\n```text\nold\n```\n\nProse.\n\n{third}\n```text\n?\n```\n"
    filled = runner.fill_page(page)

    assert "```text\n1\nUserWarning: late\n2\n```\n\nProse." in filled
    assert "```text\nUsageError: " in filled
    assert filled == runner.fill_page(filled)


def test_an_output_that_changes_is_compared_by_its_fixed_text():
    """`[...]` stands for any text, and the page keeps it."""
    page = "```python\nprint('port', 80)\n```\n\n```text\nport [...]\n```\n"

    assert page == runner.fill_page(page)
    assert "port 80" in runner.fill_page(page.replace("port [", "prt ["))


def test_an_example_without_output_prints_nothing():
    """A warning that the page does not show would surprise its reader."""
    with pytest.raises(AssertionError, match="late"):
        runner.fill_page("```python\nimport warnings\nwarnings.warn('late')\n```\n")


def test_a_block_that_is_not_run_states_the_reason():
    """Its names are checked, and nothing is sent."""
    page = "<!-- not run: it needs a key -->\n```python\nraise SystemExit\n```\n"

    assert page == runner.fill_page(page)
    assert [False] == [example.runs for example in runner.find_examples(page)]
