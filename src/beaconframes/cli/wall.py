"""``beaconframes wall``: the graffiti wall as an image or an animation; the plan of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from beaconframes.cli import chart_input, output
from beaconframes.cli.argument_texts import parse_region
from beaconframes.cli.common_options import (
    FILE,
    SuggestingGroup,
    add_common_options,
    json_option,
    overwrite_option,
    pop_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

LOADER = "graffiti-wall"
REGION_HELP = 'Region of the wall, or "all" of it. The default is the painted area.'
"""The help of the region of an image, shared with the chart."""


def build_command(
    name: str, help_text: str, write: Callable[..., Path], *more: str
) -> click.Command:
    """Return a command that writes the wall."""
    options: dict[str, click.Option] = {
        "region": click.Option(
            ["--region"], metavar="X1,Y1,X2,Y2", help=REGION_HELP
        ),
        "scale": click.Option(
            ["--scale"], type=click.IntRange(min=1),
            help="Width and height of each pixel of the wall, in pixels of the image. "
            "The default fills a screen: up to 1,000 pixels.",
        ),
        "background": click.Option(
            ["--background"],
            help="Colour of unpainted pixels, such as #ffffff; the default is transparent.",
        ),
        "seconds": click.Option(
            ["--seconds"], type=float,
            help="Length of the animation; the default is 10, or more for many frames.",
        ),
        "frames": click.Option(
            ["--frames"], type=click.IntRange(min=1),
            help="Number of frames; the default is 20 per second.",
        ),
        "every": click.Option(
            ["--every"], help="Time between two frames: 7200 slots, 1d, 1w, 1mo."
        ),
        "fps": click.Option(
            ["--fps"], type=float,
            help="Frames per second, instead of --seconds or of the number of frames.",
        ),
        "hold": click.Option(
            ["--hold"], type=float, default=2.0, show_default=True,
            help="Duration of the last frame in seconds, part of --seconds.",
        ),
        "dates": click.Option(
            ["--dates/--no-dates"], default=True, show_default=True,
            help="Write the date of each frame below the wall.",
        ),
    }  # fmt: skip
    chosen = [options[word] for word in ("region", "scale", "background", *more)]
    return click.Command(
        name,
        params=[
            *chosen,
            click.Option(["--out"], type=FILE, required=True, help="The file to write."),
            overwrite_option(),
            json_option(),
            *chart_input.input_options(LOADER, ("region", "summarize")),
        ],
        help=f"{help_text}\n\nFILE is a file of load {LOADER}. Without FILE, the wall is loaded.",
        callback=lambda **values: write_wall(write, tuple(o.name or "" for o in chosen), values),
    )


def write_wall(write: Callable[..., Path], names: tuple[str, ...], values: dict[str, Any]) -> None:
    """Write the wall to a file."""
    out: Path = values.pop("out")
    output.check_target(out, overwrite=values.pop("overwrite"))
    as_json = values.pop("as_json")
    image_options = pop_options(values, names)
    image_options["region"], shared = parse_image_region(image_options["region"])
    if str(image_options.get("every") or "").isdecimal():
        image_options["every"] = int(image_options["every"])
    file = values["file"]
    rows, about = chart_input.read_input(LOADER, values, shared)
    with chart_input.explain_missing_columns(file, LOADER, rows):
        write(rows, out, **image_options, **about)
    output.report_file(out, {"rows": rows.height}, as_json=as_json)


def parse_image_region(text: str | None) -> tuple[Any, dict[str, str]]:
    """Return the region of an image, and the options of its loader, which has no "all"."""
    if text is None or text == "all":
        return text, {}
    return parse_region("--region", text), {"region": text}


def build_target_command(name: str, help_text: str, *more: click.Option) -> click.Command:
    """Return a command that compares the wall with a picture."""
    return click.Command(
        name,
        params=[
            click.Argument(["target"], type=FILE),
            click.Option(
                ["--at"], type=(int, int), metavar="X Y", help="Upper left corner of the picture."
            ),
            click.Option(
                ["--width"], type=click.IntRange(min=1), help="Resize the picture to this width."
            ),
            *more,
            *output.output_options(),
            *chart_input.input_options(LOADER, ("region", "since", "summarize")),
        ],
        help=f"{help_text}\n\nTARGET is a picture, such as logo.png. FILE is a file of load "
        f"{LOADER} --since 0. Without FILE, all of the wall is loaded.",
        callback=lambda **values: compare_wall(name, [o.name or "" for o in more], values),
    )


def plan_options() -> list[click.Option]:
    """Return the options of the plan of a picture only."""
    from beaconframes.wall.target import Form, Order

    return [
        click.Option(
            ["--form"], type=click.Choice(get_args(Form)), default="long", show_default=True,
            help="Form of the graffiti; the short one leaves room for other text.",
        ),
        click.Option(
            ["--order"], type=click.Choice(get_args(Order)), default="center", show_default=True,
            help="Order of the pixels.",
        ),
        click.Option(
            ["--graffiti"], type=FILE,
            help="Write the graffiti of the pixels to paint to this file, one per line; a .yaml "
            "file is a graffiti file of Prysm.",
        ),
    ]  # fmt: skip


def compare_wall(name: str, names: list[str], values: dict[str, Any]) -> None:
    """Compare the wall with a picture, and write the rows."""
    from beaconframes import wall

    chosen = output.pop_output_options(values)
    options = pop_options(values, ("at", "width", *names))
    graffiti = options.pop("graffiti", None)
    if graffiti is not None:
        output.check_target(graffiti, overwrite=chosen["overwrite"])
    target, file = values.pop("target"), values["file"]
    rows, _ = chart_input.read_input(LOADER, values, {"since": "0"})
    with chart_input.explain_missing_columns(file, LOADER, rows):
        result = getattr(wall, name)(rows, target, **options)
    if graffiti is not None:
        write_graffiti(result, graffiti)
    output.write_rows(result, chosen, {})


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


def _save(*arguments: Any, **options: Any) -> Path:
    from beaconframes.wall import save

    return save(*arguments, **options)


def _timelapse(*arguments: Any, **options: Any) -> Path:
    from beaconframes.wall import timelapse

    return timelapse(*arguments, **options)


class WallGroup(SuggestingGroup):
    """The group of the commands, which are built on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return ["save", "timelapse", "plan", "progress"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build one of the commands."""
        if cmd_name == "save":
            command = build_command(cmd_name, "Write the wall as a PNG image.", _save)
        elif cmd_name == "timelapse":
            text = "Write an animation of the wall: .gif, .png, .mp4 or .webm."
            more = ("seconds", "frames", "every", "fps", "hold", "dates")
            command = build_command(cmd_name, text, _timelapse, *more)
        elif cmd_name == "plan":
            command = build_target_command(
                cmd_name,
                "List the pixels of a picture in the order to paint them.",
                *plan_options(),
            )
        elif cmd_name == "progress":
            every = click.Option(
                ["--every"], default="1d", show_default=True, help="Time of a row."
            )
            command = build_target_command(cmd_name, "Follow a picture over time.", every)
        else:
            return None
        return add_common_options(command)


wall = WallGroup(
    name="wall",
    no_args_is_help=True,
    callback=lambda **_: None,
    help="Draw the graffiti wall, pixel by pixel, and plan pictures on it. For a chart with axes, "
    "use plot wall.",
)
