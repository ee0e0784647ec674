"""``beaconframes wall``: the graffiti wall as a picture, or as it was painted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import frames, nouns, results

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOUN = "graffiti-wall"
PAINT: dict[str, Any] = {"metavar": "X1,Y1,X2,Y2", "help": "Part of the wall."}


def command(name: str, help_text: str, write: Callable[..., Path], *more: str) -> click.Command:
    """Return a command that writes the wall."""
    known: dict[str, click.Option] = {
        "region": click.Option(["--region"], **PAINT),
        "scale": click.Option(
            ["--scale"], type=click.IntRange(min=1), default=1, show_default=True,
            help="Pixels of a side of each pixel.",
        ),
        "background": click.Option(
            ["--background"], help="Colour of what nobody painted, such as #ffffff; else nothing."
        ),
        "frames": click.Option(
            ["--frames"], type=click.IntRange(min=1), help="How many frames; 200 by default."
        ),
        "every": click.Option(["--every"], help="What a frame covers: 7200 slots, 1d, 1w, 1mo."),
        "fps": click.Option(
            ["--fps"], type=float, default=20.0, show_default=True, help="Frames a second."
        ),
        "hold": click.Option(
            ["--hold"], type=float, default=2.0, show_default=True,
            help="Seconds for which the last frame stays.",
        ),
    }  # fmt: skip
    chosen = [known[word] for word in ("region", "scale", "background", *more)]
    return click.Command(
        name,
        params=[
            *chosen,
            click.Option(["--out"], type=frames.FILE, required=True, help="The file."),
            click.Option(["--overwrite"], is_flag=True, help="Replace the file if it is there."),
            click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines."),
            *frames.options(NOUN, ("region", "summarize")),
        ],
        help=f"{help_text}\n\nFILE is one of load {NOUN}; without it, the wall is loaded.",
        callback=lambda **given: make(write, [o.name or "" for o in chosen], given),
    )


def make(write: Callable[..., Path], names: list[str], given: dict[str, Any]) -> None:
    """Write the wall into a file."""
    out: Path = given.pop("out")
    results.free(out, overwrite=given.pop("overwrite"))
    as_json = given.pop("as_json")
    look = {name: given.pop(name) for name in names}
    shared = {} if look["region"] is None else {"region": look["region"]}
    if look["region"] is not None:
        look["region"] = nouns.region("--region", look["region"])
    if str(look.get("every") or "").isdecimal():
        look["every"] = int(look["every"])
    file = given["file"]
    rows, about = frames.frame(NOUN, given, shared)
    with frames.whole(file, NOUN, rows):
        write(rows, out, **look, **about)
    results.tell_file(out, {"rows": rows.height}, as_json=as_json)


def _save(*arguments: Any, **options: Any) -> Path:
    from beaconframes.wall import save

    return save(*arguments, **options)


def _timelapse(*arguments: Any, **options: Any) -> Path:
    from beaconframes.wall import timelapse

    return timelapse(*arguments, **options)


class Walls(click.Group):
    """The commands, made when they are asked for: their options are those of a loader."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return both."""
        return ["save", "timelapse"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make one of them."""
        from beaconframes.cli import everywhere

        if cmd_name == "save":
            return everywhere(command(cmd_name, "Write the wall as a PNG file.", _save))
        if cmd_name == "timelapse":
            text = "Write how the wall was painted: .gif, .png, .webp or .mp4."
            more = ("frames", "every", "fps", "hold")
            return everywhere(command(cmd_name, text, _timelapse, *more))
        return None


wall = Walls(
    name="wall",
    no_args_is_help=True,
    callback=lambda **_: None,
    help="Draw the graffiti wall, pixel by pixel. With axes, it is plot wall.",
)
