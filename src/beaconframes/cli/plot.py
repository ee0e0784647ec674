"""``beaconframes plot``: draw a chart of loaded rows, or of a file."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import click

from beaconframes.cli import wall
from beaconframes.cli.chart_input import RowsInput, read_file
from beaconframes.cli.common_options import FILE, BuiltGroup
from beaconframes.cli.docstrings import describe
from beaconframes.cli.from_signature import Argument, Kind, command, list_arguments, list_frames
from beaconframes.cli.output import OutputFile, report_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WALL = {"wall": "graffiti-wall"}
"""The wall has no axes of amounts, so it is not in the list of charts; and its loader."""
NOT_OPTIONS = ("groups", "since", "until", "chain", "escape")
IMAGE_SUFFIXES = (".png", ".svg", ".pdf")
PAGE_SUFFIX = ".html"


@cache
def list_charts() -> dict[str, str | None]:
    """Return the loader of the rows of each chart; None for the dataset of an index."""
    from beaconframes.charts import CHARTS

    return {
        chart.__name__.replace("_", "-"): loader and loader.replace("_", "-")
        for chart, loader in CHARTS.items()
    } | WALL


def get_function(chart: str, library: str = "plot") -> Callable[..., Any]:
    """Return the function that draws *chart* in a library: ``plot`` or ``interactive``."""
    module = import_module(f"beaconframes.{library}")
    function: Callable[..., Any] = getattr(module, chart.replace("-", "_"))
    return function


def list_options(chart: str) -> dict[str, Argument]:
    """Return the arguments of a chart that become options; a second frame is a file."""
    from beaconframes import charts
    from beaconframes.plot.canvas import draw_chart as draw

    function = getattr(charts, chart.replace("-", "_"), get_function(chart))
    texts = charts.ARGUMENTS | {"region": wall.TEXTS["region"]}
    if chart == "luck":
        texts["by"] = "Columns that have a group of validators, separated by commas."
    _, *seconds = list_frames(function)
    if chart in ("calendar", "effectiveness"):
        seconds.remove("validators")  # Their --validators are those to load.
    frames = {name: charts.FRAMES[name] for name in seconds if name in charts.FRAMES}
    loaders = {name: loader.replace("_", "-") for name, loader in frames.items()}
    files = {name: f"File of load {loader}." for name, loader in loaders.items()}
    kinds = {name: build_file_kind(loader) for name, loader in loaders.items()}
    own = list_arguments(function, NOT_OPTIONS, texts=texts | files, kinds=kinds)
    return own | list_arguments(draw, ["kwargs"], texts=texts)


def build_file_kind(loader: str) -> Kind:
    """Return the kind of an argument that is a file of the rows of *loader*."""
    return Kind(type=FILE, parse=lambda _option, file: read_file(file, loader))


@dataclass(frozen=True)
class Picture(OutputFile):
    """The file of a chart.

    Parameters
    ----------
    out
        Image (.png, .svg, .pdf), or interactive page (.html).
    dpi
        Resolution of a PNG image.
    """

    dpi: Annotated[int, click.IntRange(10, 1200)] = 150

    def __post_init__(self) -> None:
        """Validate the options before any request."""
        from beaconframes.wall.png_file import check_ending

        check_ending(self.out, (*IMAGE_SUFFIXES, PAGE_SUFFIX))
        super().__post_init__()

    def draw(self, chart: str, rows: Any, options: dict[str, Any]) -> None:
        """Draw a *chart* of *rows*, and write it atomically."""
        from beaconframes.wall.png_file import write_atomically

        suffix = self.out.suffix.lower()
        is_page = suffix == PAGE_SUFFIX
        drawn: Any = get_function(chart, "interactive" if is_page else "plot")(rows, **options)
        with write_atomically(self.out) as part:
            if is_page:
                drawn.write_html(part, include_plotlyjs=True, full_html=True)
            else:
                from matplotlib import pyplot as plt

                figure = drawn.get_figure(root=True)
                figure.savefig(part, format=suffix[1:], dpi=self.dpi)
                plt.close(figure)
        report_file(self.out, {"rows": rows.height})


def build_command(chart: str) -> click.Command:
    """Return the command that draws *chart* of the rows of its loader, or of an index."""
    loader, listed = list_charts()[chart], list_options(chart)
    if loader is None:
        from beaconframes.beacon_node.index.verdicts import read_report

        text = "FOLDER is the dataset of beaconframes index."

        @command(name=chart, text=f"{describe_chart(chart)}\n\n{text}", options=listed)
        def draw_index(folder: Path, options: dict[str, Any], *, picture: Picture) -> None:
            picture.draw(chart, read_report(folder).coverage, options)

        return draw_index
    source = RowsInput(loader, [*listed])

    @command(
        *source.options(),
        name=chart,
        text=f"{describe_chart(chart)}\n\nWithout FILE, the rows of load {loader} are loaded.",
        options=listed,
    )
    def draw_chart(options: dict[str, Any], *, picture: Picture, **values: Any) -> None:
        with source.open(values, **wall.select_region(options)) as (rows, _):
            picture.draw(chart, rows, options)

    return draw_chart


def describe_chart(chart: str) -> str:
    """Return the help text of a chart: its docstring, about the rows of a file."""
    function = get_function(chart)
    frame = next(iter(inspect.signature(function).parameters))
    text = describe(function).replace(f"--{frame}", "FILE")
    return text.replace("is the result of", "has the rows of")


plot = BuiltGroup(
    "plot",
    names=list_charts,
    build=build_command,
    subcommand_metavar="CHART [FILE] [OPTIONS]",
    help="""Draw a chart of loaded rows, or of rows in a file.

    Write plot income income.parquet --out income.png, or use the options of load income-history
    instead of a file.
    """,
)
