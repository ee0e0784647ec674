"""Generate the pages, and parts of pages, whose facts the code states.

These are the data dictionary, the OpenAPI document, the tables about clients of a beacon node,
settings, options and exit codes, the files with the columns and titles of the loaders that errors
and help read, and the stubs of loaders and charts.
`make docs` writes them; `make check` runs this with --check, which fails if one is out of date.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chart_stubs
import click
import loader_stubs
import loader_titles

import beaconframes
from beaconframes import analysis, dictionary, interactive, plot, v1, v2
from beaconframes.beacon_node.capabilities import ABILITIES, NEEDS, NEVER, WHOLE_REGISTRY
from beaconframes.beacon_node.client.clients import CONSENSUS_CLIENTS
from beaconframes.beacon_node.node import SMALL_REGISTRY
from beaconframes.charts import CHARTS
from beaconframes.cli.connection_options import describe_options
from beaconframes.cli.exit_codes import EXIT_CODES
from beaconframes.cli.loader_options import TITLES_FILE
from beaconframes.column_errors import COLUMNS_FILE
from beaconframes.interactive import figure
from beaconframes.plot import canvas
from beaconframes.reports.figures import CARDS
from beaconframes.server.openapi import build_openapi
from beaconframes.setting_table import DEFAULTS, SETTINGS, VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

DOCS = Path(__file__).resolve().parent
LOADER_GROUP = re.compile(r"# Load (.+)\.\nfrom beaconframes\.v1 import \(([^)]+)\)")
"""The title and the names of a group of loaders in the list of public names."""
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

WITH_PARTS = (
    "command-line.md",
    "configuration.md",
    "own-node.md",
    "own-node-index.md",
    "guide/analysis.md",
    "guide/charts.md",
    "guide/loaders.md",
    "guide/report.md",
)
"""The pages that have generated parts."""


def mark_options(text: str) -> str:
    """Return text with its options as code."""
    return re.sub(r"(?<!`)--[\w.-]*\w(=\w+)?", r"`\g<0>`", text)


def build_rows(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def build_clients() -> str:
    """Return the table of clients and their flags."""
    titles = ("client", "old states", "note", "Beacon API", "rewards routes")
    return build_rows(
        titles,
        (
            (
                client.name,
                f"`{client.archive_flag}`",
                mark_options(client.archive_note),
                f"`{client.api_flag}`",
                client.rewards_note,
            )
            for client in CONSENSUS_CLIENTS.values()
        ),
    )


def build_loaders() -> str:
    """Return the table of loaders, by what a node needs to answer them."""
    groups = defaultdict(list)
    for name, alternatives in NEEDS.items():
        if name in dictionary.ENDPOINTS_BY_NAME:
            groups[alternatives].append(f"`load_{name}`")
    words = ABILITIES | {"genesis": "all of it since genesis"}
    return build_rows(
        ("loaders", "the node needs"),
        (
            (
                ", ".join(sorted(names)),
                "; or ".join(
                    ", ".join(words[need] for need in needs) or "nothing else"
                    for needs in alternatives
                ),
            )
            for alternatives, names in groups.items()
        ),
    )


def build_whole_registry() -> str:
    """Return the sentence about loaders that need an index of a chain with many validators."""
    names = sorted(WHOLE_REGISTRY & dictionary.ENDPOINTS_BY_NAME.keys())
    return (
        f"On a chain of more than {SMALL_REGISTRY:,} validators, a load has the requested ones "
        "only. These loaders, and those\nof V2 that follow from their tables, then need an index "
        f"of all validators:\n{', '.join(f'`load_{name}`' for name in names)}.\n"
    )


def build_never() -> str:
    """Return the table of loaders that no node can answer."""
    return build_rows(
        ("loader", "reason"), ((f"`load_{name}`", reason) for name, reason in NEVER.items())
    )


def build_cards() -> str:
    """Return the table of the cards of a report."""
    rows = ((card.title, f"`{card.number}`", card.rule) for card in CARDS)
    return build_rows(("card", "number", "word"), rows)


def build_settings() -> str:
    """Return the table of settings."""
    rows = (
        (
            f"`{name}`",
            f"`{VARIABLES[name]}`",
            mark_options(setting.summary),
            setting.rule,
            "none" if DEFAULTS[name] is None else f"`{DEFAULTS[name]!r}`",
        )
        for name, setting in SETTINGS.items()
    )
    return build_rows(("setting", "variable", "meaning", "value", "default"), rows)


def build_connection_options() -> str:
    """Return the table of the options of the connection."""
    records = describe_options(click.Context(click.Command("load")))
    return build_rows(
        ("option", "meaning"),
        ((f"`{names.replace('|', ' ')}`", mark_options(text)) for names, text in records),
    )


def build_analyses() -> str:
    """Return the table of the functions of `analysis`, from the first lines of their docstrings."""
    rows = []
    for name in analysis.__all__:
        if name.islower():
            head = " ".join(
                (inspect.getdoc(getattr(analysis, name)) or "").split("\n\n")[0].split()
            )
            answer, _, grain = head.partition(". One row")
            rows.append((f"`{name}`", answer.rstrip("."), grain.removeprefix(" per ").strip(".")))
    return build_rows(("function", "answer", "one row per"), rows)


def build_exit_codes() -> str:
    """Return the table of exit codes."""
    rows = (
        (str(code), meaning, ", ".join(f"`{kind.__name__}`" for kind in kinds))
        for code, kinds, meaning in EXIT_CODES
    )
    return build_rows(("exit code", "meaning", "errors"), rows)


def build_guide() -> str:
    """Return a table of the loaders of each group of public names."""
    listed = {row["loader"]: row for row in dictionary.loaders().iter_rows(named=True)}
    stub = Path(beaconframes.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    parts = []
    for title, imported in LOADER_GROUP.findall(stub):
        rows = [listed[name] for name in re.findall(r"as (load_\w+)", imported)]
        calls = ((f"`{row['loader']}({row['arguments']})`", row["rows"]) for row in rows)
        parts.append(f"## {title.capitalize()}\n\n{build_rows(('loader', 'rows'), calls)}")
    return "\n" + "\n".join(parts)


def build_charts() -> str:
    """Return the table of charts."""
    charts = [*CHARTS, plot.wall]
    rows = ((f"`{call}`", text) for call, text in map(describe_chart, charts))
    return build_rows(("chart", "what it shows"), rows)


def describe_chart(chart: Callable[..., Any]) -> tuple[str, str]:
    """Return the shortest call of a chart, and the first line of its docstring."""
    parameters = inspect.signature(chart).parameters.values()
    required = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    text = (inspect.getdoc(chart) or "").partition("\n")[0]
    return f"{chart.__name__}({', '.join(required)})", text.removeprefix("Draw ").removesuffix(".")


PARTS = {
    "charts": build_charts,
    "clients": build_clients,
    "loaders": build_loaders,
    "whole_registry": build_whole_registry,
    "never": build_never,
    "cards": build_cards,
    "analyses": build_analyses,
    "settings": build_settings,
    "connection_options": build_connection_options,
    "exit_codes": build_exit_codes,
    "guide": build_guide,
}
"""The generated parts of pages, by the name in their mark."""


def fill_parts(text: str) -> str:
    """Return a page with its generated parts."""
    return PART.sub(lambda part: part[1] + PARTS[part[2]]() + part[3], text)


def pages() -> dict[Path, str]:
    """Return the text of every generated page."""
    return {
        DOCS / "dictionary.md": dictionary.build_page(),
        COLUMNS_FILE: dictionary.build_loader_columns(),
        TITLES_FILE: loader_titles.build_titles(),
        **{
            path: fill_parts(path.read_text(encoding="utf-8"))
            for path in (DOCS / name for name in WITH_PARTS)
        },
        **{
            find_stub(module): format_stub(chart_stubs.build_stub(module, renderer))
            for module, renderer in ((plot, canvas), (interactive, figure))
        },
        DOCS / "openapi.json": json.dumps(build_openapi(), indent=1) + "\n",
        **{find_stub(module): format_stub(loader_stubs.build_stub(module)) for module in (v1, v2)},
    }


def find_stub(module: ModuleType) -> Path:
    """Return the path of the stub of a package."""
    return Path(str(module.__file__)).with_suffix(".pyi")


def format_stub(code: str) -> str:
    """Return the code of a stub as `make format` leaves it."""
    for command in (("check", "--fix", "--select=I"), ("format",)):
        code = subprocess.check_output(
            [sys.executable, "-m", "ruff", *command, "-q", "--stdin-filename=stub.pyi", "-"],
            input=code,
            text=True,
        )
    return code


def main() -> None:
    """Write the pages, or print which ones are out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a page is out of date"
    )
    check = parser.parse_args().check

    stale = [
        (path, text)
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if check:
            print(f"{path.relative_to(DOCS.parent)} is out of date: run `make docs`")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
    if check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
