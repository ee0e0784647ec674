"""``beaconframes plot``: draw a chart of loaded rows, or of a file."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import chart_input, output
from beaconframes.cli.common_options import (
    FILE,
    SuggestingGroup,
    add_common_options,
    json_option,
    overwrite_option,
    pop_options,
)
from beaconframes.cli.docstrings import describe
from beaconframes.cli.from_signature import list_choices
from beaconframes.cli.wall import REGION_HELP, parse_image_region
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WALL = {"wall": "graffiti-wall"}
"""The wall has no axes of amounts, so it is not in the list of charts; and its loader."""
SHARED_HELP = {
    "title": "Title above the chart; auto: what a chart of income found.",
    "caption": 'Line below the chart, instead of its validators and range; "" for none.',
    "background": "Colour of unpainted pixels, such as #ffffff.",
}
"""The help of options that are no arguments of the charts of the list."""
NOT_OPTIONS = ("ax", "kwargs", "groups", "since", "until", "validators", "chain")
IMAGE_SUFFIXES = (".png", ".svg", ".pdf")
PAGE_SUFFIX = ".html"


@cache
def list_charts() -> dict[str, str | None]:
    """Return the loader of the rows of each chart; None for the dataset of an index."""
    from beaconframes.charts import CHARTS

    listed = {chart.__name__: loader for chart, loader in CHARTS.items()}
    return {_name(chart): loader and _name(loader) for chart, loader in listed.items()} | WALL


@cache
def list_second_frames() -> dict[str, str]:
    """Return the loader of the rows of each argument that is a second frame."""
    from beaconframes.charts import FRAMES

    listed = {argument: _name(loader) for argument, loader in FRAMES.items()}
    return listed | {"names": "validators"}


def _name(function: str) -> str:
    """Return the name of a chart or a loader on the command line."""
    return function.replace("_", "-")


class ChartGroup(SuggestingGroup):
    """A group with one command for each chart."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the charts."""
        return list(list_charts())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build the command of a chart."""
        name = cmd_name.replace("_", "-")
        if name not in list_charts():
            return None
        loader = list_charts()[name]
        command = build_command(name, loader) if loader else build_index_command(name)
        return add_common_options(command)


def chart_function(chart: str, *, interactive: bool = False) -> Callable[..., Any]:
    """Return the function that draws *chart* in matplotlib, or in plotly."""
    from importlib import import_module

    module = import_module(f"beaconframes.{'interactive' if interactive else 'plot'}")
    function: Callable[..., Any] = getattr(module, chart.replace("-", "_"))
    return function


def list_chart_arguments(chart: str) -> list[tuple[str, Any]]:
    """Return the arguments of a chart that become options, with their defaults."""
    parameters = list(inspect.signature(chart_function(chart)).parameters.values())[1:]
    return [(p.name, p.default) for p in parameters if p.name not in NOT_OPTIONS]


def find_choices(chart: str, argument: str) -> tuple[str, ...]:
    """Return the values that an argument of *chart* can have; an empty tuple if it has any."""
    from beaconframes import charts
    from beaconframes.wall.pixel_map import build_pixel_map

    # The module of the chart declares the values that it takes.
    function = getattr(charts, chart.replace("-", "_"), build_pixel_map)
    return list_choices(function, argument)


def build_option(chart: str, name: str, default: Any) -> click.Option:
    """Return the option for one argument of *chart*."""
    from beaconframes.charts import ARGUMENTS

    names = [f"--{name.replace('_', '-')}", name]
    if loader := list_second_frames().get(name):
        required = default is inspect.Parameter.empty
        text = f"File of load {loader}."
        return click.Option(names, type=FILE, required=required, help=text)
    text = (SHARED_HELP | ARGUMENTS).get(name, "")
    if isinstance(default, bool):
        return click.Option(names, is_flag=True, help=text)
    if name == "region":
        return click.Option(names, metavar="X1,Y1,X2,Y2", help=REGION_HELP)
    if name == "figsize":
        text = "Size in inches, such as 3.6 3.6."
        return click.Option(names, type=(float, float), metavar="WIDTH HEIGHT", help=text)
    choices = find_choices(chart, name) if isinstance(default, str | None) else ()
    kind: Any = click.Choice(choices) if choices else str
    if isinstance(default, int | float):
        kind = type(default)
    if default == ():
        # The group columns of luck: without the option, all validators count together.
        default, text = None, "Column that has a group of validators, such as validator_index."
    return click.Option(
        names, type=kind, default=default, show_default=default is not None, help=text
    )


def build_command(chart: str, loader: str) -> click.Command:
    """Return the command that draws *chart* of the rows of *loader*."""
    arguments = list_chart_arguments(chart)
    excludes_open_epoch = loader == chart_input.WITH_OPEN_EPOCH
    default_range = (
        ", by default up to the epoch before the current one" if excludes_open_epoch else ""
    )
    return click.Command(
        chart,
        params=[
            *(build_option(chart, name, default) for name, default in arguments),
            *picture_options(),
            *chart_input.input_options(loader, [name for name, _ in arguments]),
        ],
        help=f"{describe_chart(chart)}\n\nWithout FILE, the rows of load {loader} are loaded"
        f"{default_range}.",
        callback=lambda **values: draw_chart(chart, loader, values),
    )


def build_index_command(chart: str) -> click.Command:
    """Return the command that draws *chart* of the dataset of an index."""
    return click.Command(
        chart,
        params=[
            click.Argument(["folder"], type=FILE),
            *picture_options(),
        ],
        help=f"{describe_chart(chart)}\n\nFOLDER is the dataset of beaconframes index.",
        callback=lambda **values: draw_index(chart, values),
    )


def describe_chart(chart: str) -> str:
    """Return the help text of a chart: its docstring without the arguments of Python."""
    function = chart_function(chart)
    frame = next(iter(inspect.signature(function).parameters))
    text = describe(function, file=frame)
    # Arguments of Python only, and the dataset that FOLDER is.
    skipped = r"--kwargs go to|--title, --figsize|FILE is the result of index|--epochs, such as"
    text = re.sub(rf"\n\n({skipped})[^\n]*", "", text)
    return text.replace("is the result of", "has the rows of")


def picture_options() -> list[click.Parameter]:
    """Return the options of the file to write."""
    return [
        click.Option(
            ["--out"],
            type=FILE,
            required=True,
            help="Image (.png, .svg, .pdf), or interactive page (.html).",
        ),
        click.Option(
            ["--dpi"],
            type=click.IntRange(10, 1200),
            default=150,
            show_default=True,
            help="Resolution of a PNG image.",
        ),
        overwrite_option(),
        json_option(),
    ]


def check_picture(out: Path, *, overwrite: bool) -> str:
    """Return the suffix of the file to write, or raise UsageError."""
    suffix = out.suffix.lower()
    if suffix not in (*IMAGE_SUFFIXES, PAGE_SUFFIX):
        raise UsageError(
            f"--out {out.name} has no suffix of an image or a page",
            hint=f"Suffixes: {', '.join(IMAGE_SUFFIXES)} or {PAGE_SUFFIX}",
        )
    output.check_target(out, overwrite=overwrite)
    return suffix


def draw_index(chart: str, values: dict[str, Any]) -> None:
    """Draw a chart of the coverage of an index and write it to a file."""
    from beaconframes.beacon_node.index.report import read_report

    out: Path = values["out"]
    suffix = check_picture(out, overwrite=values["overwrite"])
    coverage = read_report(values["folder"]).coverage
    drawn = chart_function(chart, interactive=suffix == PAGE_SUFFIX)(coverage)
    write_chart(drawn, out, suffix, values["dpi"])
    output.report_file(out, {"rows": coverage.height}, as_json=values["as_json"])


def draw_chart(chart: str, loader: str, values: dict[str, Any]) -> None:
    """Draw a chart of the rows of *loader* and write it to a file."""
    out: Path = values.pop("out")
    suffix = check_picture(out, overwrite=values.pop("overwrite"))
    as_json, dpi = values.pop("as_json"), values.pop("dpi")
    chart_options = pop_options(values, tuple(name for name, _ in list_chart_arguments(chart)))
    shared: dict[str, Any] = {}
    if "region" in chart_options:
        chart_options["region"], shared = parse_image_region(chart_options["region"])
    file = values["file"]
    rows, _ = chart_input.read_input(loader, values, shared)
    second_frames = list_second_frames()
    for name in second_frames.keys() & chart_options.keys():
        if chart_options[name] is not None:
            chart_options[name] = chart_input.read_file(chart_options[name], second_frames[name])
    chart_options = {name: value for name, value in chart_options.items() if value is not None}
    with chart_input.explain_missing_columns(file, loader, rows):
        drawn = chart_function(chart, interactive=suffix == PAGE_SUFFIX)(rows, **chart_options)
    write_chart(drawn, out, suffix, dpi)
    output.report_file(out, {"rows": rows.height}, as_json=as_json)


def write_chart(drawn: Any, out: Path, suffix: str, dpi: int) -> None:
    """Write a chart to a file, atomically."""
    from beaconframes.wall.png_file import write_atomically

    with write_atomically(out) as part:
        if suffix == PAGE_SUFFIX:
            drawn.write_html(part, include_plotlyjs=True, full_html=True)
        else:
            from matplotlib import pyplot as plt

            figure = drawn.get_figure(root=True)
            figure.savefig(part, format=suffix[1:], dpi=dpi)
            plt.close(figure)


plot = ChartGroup(
    name="plot",
    subcommand_metavar="CHART [FILE] [OPTIONS]",
    no_args_is_help=True,
    callback=lambda **_: None,
    help="""Draw a chart of loaded rows, or of rows in a file.

    Write plot income income.parquet --out income.png, or use the options of load income-history
    instead of a file.
    """,
)
