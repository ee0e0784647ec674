"""``beaconframes wall``: the graffiti wall as an image or an animation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def _save(*arguments: Any, **options: Any) -> Path:
    from beaconframes.wall import save

    return save(*arguments, **options)


def _timelapse(*arguments: Any, **options: Any) -> Path:
    from beaconframes.wall import timelapse

    return timelapse(*arguments, **options)


class WallGroup(SuggestingGroup):
    """The group of both commands, which are built on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of both commands."""
        return ["save", "timelapse"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build one of the commands."""
        if cmd_name == "save":
            command = build_command(cmd_name, "Write the wall as a PNG image.", _save)
        elif cmd_name == "timelapse":
            text = "Write an animation of the wall: .gif, .png, .mp4 or .webm."
            more = ("seconds", "frames", "every", "fps", "hold", "dates")
            command = build_command(cmd_name, text, _timelapse, *more)
        else:
            return None
        return add_common_options(command)


wall = WallGroup(
    name="wall",
    no_args_is_help=True,
    callback=lambda **_: None,
    help="Draw the graffiti wall, pixel by pixel. For a chart with axes, use plot wall.",
)
