"""``beaconframes wall``: the graffiti wall as an image or an animation; the plan of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes import wall as functions
from beaconframes.cli.chart_input import RowsInput
from beaconframes.cli.common_options import FILE, BuiltGroup
from beaconframes.cli.docstrings import describe_arguments
from beaconframes.cli.from_signature import command, list_arguments
from beaconframes.cli.output import Output, OutputFile, check_target, report_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


LOADER = "graffiti-wall"
PICTURES = {
    "save": "Write the wall as a PNG image.",
    "timelapse": "Write an animation of the wall: .gif, .png, .mp4 or .webm.",
}
"""Functions that write a picture of the wall."""
COMPARISONS = {
    "plan": "List the pixels of a picture in the order to paint them.",
    "progress": "Follow a picture over time.",
}
"""Functions that compare the wall with a picture."""
NOT_OPTIONS = ("path", "target", "chain", "simulated")
TEXTS = {
    **describe_arguments(functions.save),
    **describe_arguments(functions.plan),
    "every": "Time of a frame or row, such as 12h, 1d, 1w or 1mo; of a frame also slots, such as "
    "7200.",
}
"""The help of the options; other functions refer to these two."""
GRAFFITI = click.Option(
    ["--graffiti"],
    type=FILE,
    help="Write the graffiti of the pixels to paint to this file, one per line; a .yaml file is a "
    "graffiti file of Prysm.",
)


def build_command(name: str) -> click.Command:
    """Return the command of a function of `wall`."""
    return build_picture(name) if name in PICTURES else build_comparison(name)


def build_picture(name: str) -> click.Command:
    """Return the command that writes a picture of the wall."""
    source, function = RowsInput(LOADER, ["region", "summarize"]), getattr(functions, name)

    @command(
        *source.options(),
        name=name,
        text=f"{PICTURES[name]}\n\nFILE is a file of load {LOADER}. Without FILE, the wall is "
        "loaded.",
        options=list_arguments(function, NOT_OPTIONS, texts=TEXTS),
    )
    def write_wall(options: dict[str, Any], *, picture: OutputFile, **values: Any) -> None:
        with source.open(values, **select_region(options)) as (rows, about):
            function(rows, picture.out, **options, **about)
        report_file(picture.out, {"rows": rows.height})

    return write_wall


def select_region(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the region of an image as the argument of its loader, which has no "all"."""
    region = options.get("region", "all")
    return {} if region == "all" else {"region": region}


def build_comparison(name: str) -> click.Command:
    """Return the command that compares the wall with a picture."""
    source, function = RowsInput(LOADER, ["region", "since", "summarize"]), getattr(functions, name)

    @command(
        *([GRAFFITI] if name == "plan" else []),
        *source.options(),
        name=name,
        text=f"{COMPARISONS[name]}\n\nTARGET is a picture, such as logo.png. FILE is a file of "
        f"load {LOADER} --since 0. Without FILE, all of the wall is loaded.",
        options=list_arguments(function, NOT_OPTIONS, texts=TEXTS),
    )
    def compare_wall(
        target: Path, options: dict[str, Any], *, chosen: Output, **values: Any
    ) -> None:
        graffiti = values.pop("graffiti", None)
        if graffiti is not None:
            check_target(graffiti, overwrite=chosen.overwrite)
        with source.open(values, since=0) as (rows, _):
            result = function(rows, target, **options)
        if graffiti is not None:
            functions.save_graffiti(result, graffiti)
        chosen.write(result, {})

    return compare_wall


wall = BuiltGroup(
    "wall",
    names=lambda: [*PICTURES, *COMPARISONS],
    build=build_command,
    help="Draw the graffiti wall, pixel by pixel, and plan pictures on it. For a chart with axes, "
    "use plot wall.",
)
