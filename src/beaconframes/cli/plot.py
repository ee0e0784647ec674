"""``beaconframes plot CHART``: every chart, of rows that are loaded or in a file."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import frames, nouns, results
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHARTS = {
    "income": "income-history",
    "balances": "balance-history",
    "attestations": "attestations",
    "proposals": "proposals",
    "deposits": "deposits",
    "withdrawals": "validator-withdrawals",
    "sync-participation": "epoch-slots",
    "sync-members": "epoch-slots",
    "yield-index": "yield-index",
    "leaderboard": "leaderboard",
    "gas-fees": "gas-fees",
    "coverage": "income-history",
    "wall": "graffiti-wall",
}
"""Every chart, and what it is of."""
BESIDE = {
    "produced": "produced-blocks",
    "committees": "sync-committees",
    "income": "income-history",
    "balances": "balance-history",
}
"""Frames that a chart takes beside its own, and what loads them."""
NOT_OPTIONS = ("ax", "kwargs", "groups")
PICTURES = (".png", ".svg", ".pdf")
PAGE = ".html"


class Charts(click.Group):
    """A command for every chart."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the charts."""
        return list(CHARTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of a chart."""
        from beaconframes.cli import everywhere

        name = cmd_name.replace("_", "-")
        return everywhere(command(name)) if name in CHARTS else None


def function(chart: str, *, page: bool = False) -> Callable[..., Any]:
    """Return the function that draws *chart*, as a picture or as a page."""
    from importlib import import_module

    home = import_module(f"beaconframes.{'interactive' if page else 'plot'}")
    found: Callable[..., Any] = getattr(home, chart.replace("-", "_"))
    return found


def looks(chart: str) -> list[tuple[str, Any]]:
    """Return the arguments that say how a chart looks, with their defaults."""
    known = list(inspect.signature(function(chart)).parameters.values())[1:]
    return [(p.name, p.default) for p in known if p.name not in NOT_OPTIONS]


def option(name: str, default: Any) -> click.Option:
    """Return the option for one of these."""
    word = [f"--{name.replace('_', '-')}", name]
    if name in BESIDE:
        needed = default is inspect.Parameter.empty
        text = f"File of load {BESIDE[name]}."
        return click.Option(word, type=frames.FILE, required=needed, help=text)
    if isinstance(default, bool):
        return click.Option(word, is_flag=True)
    if name == "region":
        return click.Option(word, metavar="X1,Y1,X2,Y2", help="Part of the wall.")
    kind = int if isinstance(default, int) else str
    return click.Option(word, type=kind, default=default, show_default=default is not None)


def command(chart: str) -> click.Command:
    """Return the command that draws *chart*."""
    given = looks(chart)
    text = nouns.plain(inspect.getdoc(function(chart)) or "", paragraphs=True)
    text = re.sub(r"\n\n(kwargs go to|What is given beside)[^\n]*", "", text)
    noun = CHARTS[chart]
    usual = ", by default up to the epoch before the running one" if noun == frames.RUNNING else ""
    return click.Command(
        chart,
        params=[
            *(option(name, default) for name, default in given),
            click.Option(
                ["--out"],
                type=frames.FILE,
                required=True,
                help="Picture (.png, .svg, .pdf), or page to look into (.html).",
            ),
            click.Option(["--dpi"], type=click.IntRange(10, 1200), default=150, show_default=True),
            click.Option(["--overwrite"], is_flag=True, help="Replace the file if it is there."),
            click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines."),
            *frames.options(noun, [name for name, _ in given]),
        ],
        help=f"{text}\n\nFILE is one of load {noun}; without it, the rows are loaded{usual}.",
        callback=lambda **values: draw(chart, values),
    )


def draw(chart: str, given: dict[str, Any]) -> None:
    """Draw a chart into a file."""
    out: Path = given.pop("out")
    ending = out.suffix.lower()
    if ending not in (*PICTURES, PAGE):
        raise UsageError(
            f"--out {out.name} is no name of a picture",
            hint=f"It ends in {', '.join(PICTURES)} or {PAGE}",
        )
    results.free(out, overwrite=given.pop("overwrite"))
    as_json, dpi = given.pop("as_json"), given.pop("dpi")
    look = {name: given.pop(name) for name, _ in looks(chart)}
    if look.get("region") is not None:
        look["region"] = nouns.region("--region", look["region"])
    shared = {name: given_region(look) for name in ("region",) if name in look}
    file = given["file"]
    rows, _ = frames.frame(CHARTS[chart], given, {k: v for k, v in shared.items() if v})
    for name in BESIDE.keys() & look.keys():
        if look[name] is not None:
            look[name] = frames.read(look[name], BESIDE[name])
    with frames.whole(file, CHARTS[chart], rows):
        drawn = function(chart, page=ending == PAGE)(rows, **look)
    save(drawn, out, ending, dpi)
    results.tell_file(out, {"rows": rows.height}, as_json=as_json)


def given_region(look: dict[str, Any]) -> str | None:
    """Return a region as the loader's option takes it."""
    region = look["region"]
    return None if region is None else ",".join(map(str, region))


def save(drawn: Any, out: Path, ending: str, dpi: int) -> None:
    """Write a chart, whole or not at all."""
    from beaconframes.wall.png_file import write_atomically

    with write_atomically(out) as part:
        if ending == PAGE:
            drawn.write_html(part, include_plotlyjs=True, full_html=True)
        else:
            from matplotlib import pyplot as plt

            figure = drawn.get_figure(root=True)
            figure.savefig(part, format=ending[1:], dpi=dpi)
            plt.close(figure)


plot = Charts(
    name="plot",
    subcommand_metavar="CHART [FILE] [OPTIONS]",
    no_args_is_help=True,
    callback=lambda **_: None,
    help="""Draw a chart of rows that are loaded, or in a file of load.

    plot income income.parquet --out income.png, or with what load income-history takes.
    """,
)
