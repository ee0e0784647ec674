"""Run the examples of README.md and of the guide, and insert what they print.

A block of Python runs as a notebook cell would: printed text, warnings, and the value of the last
line. A block of commands runs with the command line. The block ``text`` below has the output;
`[...]` in it stands for text that changes from run to run. Blocks of a page share their variables.
A block below ``<!-- not run: reason -->`` is only checked for names and arguments.

`make docs` writes the pages, and `make test-more` checks that they are up to date.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import polars as pl
from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(
    r"""
    (?P<mark> ^<!--\ not\ run:\ [^\n]+\ -->\n )?
    (?P<code> ^```(?P<language> python|console )\n (?P<source> .*? )^```\n )
    (?: \n```text\n (?P<output> .*? )^```\n )?
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


class Example(NamedTuple):
    """A block of code of a page."""

    language: str
    source: str
    runs: bool

    @property
    def commands(self) -> list[str]:
        """The commands of a block of the shell, without comments."""
        lines = self.source.replace("\\\n", "").splitlines()
        return [line[2:].partition(" #")[0].strip() for line in lines if line.startswith("$ ")]


def find_pages() -> list[Path]:
    """Return the pages whose examples are run."""
    docs = ROOT / "docs"
    return [
        ROOT / "README.md",
        *sorted(docs.glob("getting-started/*.md")),
        *sorted(docs.glob("guide/*.md")),
        docs / "index.md",
        docs / "local-explorer.md",
        docs / "testing.md",
    ]


def find_examples(page: str) -> list[Example]:
    """Return all blocks of Python and of commands of a page."""
    found = _BLOCK.finditer(page)
    return [Example(block["language"], block["source"], not block["mark"]) for block in found]


def fill_page(page: str) -> str:
    """Run the examples of *page* in the current folder; return it with their output."""
    names: dict[str, Any] = {"__name__": "__main__"}

    def fill_block(block: re.Match[str]) -> str:
        if block["mark"]:
            return block[0]
        expected = block["output"]
        run = run_python if block["language"] == "python" else run_commands
        printed = run(block["source"], names, show=expected is not None)
        if expected is None:
            return block[0]
        pattern = ".*".join(map(re.escape, expected.split("[...]")))
        text = expected if re.fullmatch(pattern, printed, re.DOTALL) else printed
        return f"{block['code']}\n```text\n{text}```\n"

    try:
        return _BLOCK.sub(fill_block, page)
    finally:
        plt.close("all")
        for value in names.values():
            if type(value).__name__ == "Local":
                value.close()


def run_python(source: str, names: dict[str, Any], *, show: bool) -> str:
    """Run *source*; return what a notebook shows. Without *show*, it must not print anything."""
    from beaconframes import BeaconframesError

    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()

    def show_warning(message: Any, category: type[Warning], *_: object) -> None:
        printed.write(f"{category.__name__}: {message}\n")

    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of libraries; Python hides them as well
        warnings.showwarning = show_warning
        try:
            exec(compile(tree, "<example>", "exec"), names)  # noqa: S102 - our own page
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<example>", "eval"), names)  # noqa: S307
                if show and value is not None:
                    print(value if isinstance(value, pl.DataFrame) else repr(value))
        except BeaconframesError as error:
            if not show:
                raise
            printed.write(f"{type(error).__name__}: {error}\n")
    if printed.getvalue() and not show:
        raise AssertionError(f"an example without an output block printed {printed.getvalue()!r}")
    return printed.getvalue()


def run_commands(source: str, _: dict[str, Any], *, show: bool) -> str:
    """Run the commands of *source*; return what they print. Without *show*, all must succeed."""
    from click.testing import CliRunner

    from beaconframes.cli import commands

    printed = ""
    for line in Example("console", source, runs=True).commands:
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            os.environ[name] = value
            continue
        program, *arguments = shlex.split(line)
        assert program == "beaconframes", line
        result = CliRunner().invoke(commands, arguments)
        if result.exit_code and not show:
            raise AssertionError(f"{line}: {result.output}")
        printed += result.output
    return printed


@contextlib.contextmanager
def clean_environment() -> Iterator[None]:
    """Work in an empty folder, without the settings, the store and the state of the user."""
    before = dict(os.environ)
    mpl.use("Agg")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in [name for name in before if name.startswith("BEACONFRAMES_")]:
            del os.environ[name]
        os.environ |= {"XDG_DATA_HOME": folder, "XDG_STATE_HOME": folder}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def main() -> None:
    """Write all pages, or those that are named, with the output of their examples."""
    for page in [Path(name).resolve() for name in sys.argv[1:]] or find_pages():
        text = page.read_text(encoding="utf-8")
        with clean_environment():
            filled = fill_page(text)
        page.write_text(filled, encoding="utf-8")
        print(f"{'ran' if filled == text else 'changed'} {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
