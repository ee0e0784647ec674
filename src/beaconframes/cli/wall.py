"""``beaconframes wall``: the graffiti wall as an image or an animation; the plan of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes import wall as functions
from beaconframes.cli import output
from beaconframes.cli.chart_input import RowsInput
from beaconframes.cli.common_options import FILE, BuiltGroup, json_option, overwrite_option
from beaconframes.cli.from_signature import Argument, list_arguments, pop_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

LOADER = "graffiti-wall"
REGION_HELP = 'Region of the wall, or "all" of it. The default is the painted area.'
"""The help of the region of an image, shared with the chart."""
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
NOT_OPTIONS = ("path", "chain", "simulated")
TEXTS = {
    "region": REGION_HELP,
    "scale": "Width and height of each pixel of the wall, in pixels of the image. The default "
    "fills a screen: up to 1,000 pixels.",
    "background": "Colour of unpainted pixels, such as #ffffff; the default is transparent.",
    "every": "Time of a frame or row, such as 12h, 1d, 1w or 1mo; of a frame also slots, such as "
    "7200.",
    "at": "Upper left corner of the picture.",
    "width": "Resize the picture to this width.",
    "form": "Form of the graffiti; the short one leaves room for other text.",
    "order": "Order of the pixels.",
}
"""The help of arguments that the functions describe in their text, or together."""

GRAFFITI = click.Option(
    ["--graffiti"],
    type=FILE,
    help="Write the graffiti of the pixels to paint to this file, one per line; a .yaml file is a "
    "graffiti file of Prysm.",
)


def list_options(name: str) -> dict[str, Argument]:
    """Return the arguments of a function of `wall` that become options."""
    return list_arguments(getattr(functions, name), NOT_OPTIONS, texts=TEXTS)


def build_command(name: str) -> click.Command:
    """Return the command of a function of `wall`."""
    params: list[click.Parameter] = [option.build() for option in list_options(name).values()]
    if name in PICTURES:
        source = RowsInput(LOADER, ["region", "summarize"])
        out = click.Option(["--out"], type=FILE, required=True, help="The file to write.")
        params += [out, overwrite_option(), json_option()]
        text = f"{PICTURES[name]}\n\nFILE is a file of load {LOADER}. "
        text += "Without FILE, the wall is loaded."
    else:
        source = RowsInput(LOADER, ["region", "since", "summarize"])
        params.insert(0, click.Argument(["target"], type=FILE))
        params += [GRAFFITI] if name == "plan" else []
        params += output.output_options()
        text = f"{COMPARISONS[name]}\n\nTARGET is a picture, such as logo.png. FILE is a file of "
        text += f"load {LOADER} --since 0. Without FILE, all of the wall is loaded."
    run = write_wall if name in PICTURES else compare_wall
    return click.Command(
        name,
        params=[*params, *source.options()],
        help=text,
        callback=lambda **values: run(name, source, values),
    )


def write_wall(name: str, source: RowsInput, values: dict[str, Any]) -> None:
    """Write the wall to a file."""
    out: Path = values.pop("out")
    output.check_target(out, overwrite=values.pop("overwrite"))
    as_json, file = values.pop("as_json"), values.pop("file")
    options = pop_arguments(list_options(name), values)
    rows, about = source.read(file, values, **select_region(options))
    with source.explain_missing_columns(file, rows):
        getattr(functions, name)(rows, out, **options, **about)
    output.report_file(out, {"rows": rows.height}, as_json=as_json)


def select_region(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the region of an image as the argument of its loader, which has no "all"."""
    region = options.get("region", "all")
    return {} if region == "all" else {"region": region}


def compare_wall(name: str, source: RowsInput, values: dict[str, Any]) -> None:
    """Compare the wall with a picture, and write the rows."""
    chosen = output.Output.pop(values)
    options = pop_arguments(list_options(name), values)
    graffiti = values.pop("graffiti", None)
    if graffiti is not None:
        output.check_target(graffiti, overwrite=chosen.overwrite)
    target, file = values.pop("target"), values.pop("file")
    rows, _ = source.read(file, values, since=0)
    with source.explain_missing_columns(file, rows):
        result = getattr(functions, name)(rows, target, **options)
    if graffiti is not None:
        write_graffiti(result, graffiti)
    chosen.write(result, {})


def write_graffiti(plan: pl.DataFrame, out: Path) -> None:
    """Write the graffiti of the pixels to paint, one per line, or as Prysm reads them."""
    from beaconframes.wall.png_file import write_atomically

    texts = plan.filter(is_right=False)["graffiti"].to_list()
    if out.suffix.lower() in {".yaml", ".yml"}:
        lines = ["ordered:", *(f'- "{text}"' for text in texts)]
    else:
        lines = texts
    with write_atomically(out) as part:
        part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


wall = BuiltGroup(
    "wall",
    names=lambda: [*PICTURES, *COMPARISONS],
    build=build_command,
    help="Draw the graffiti wall, pixel by pixel, and plan pictures on it. For a chart with axes, "
    "use plot wall.",
)
