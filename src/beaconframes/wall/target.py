"""The plan of a picture: what differs from the wall, in which order to paint it, its progress."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import polars as pl
from PIL import Image

from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, return_like
from beaconframes.wall.frame_times import find_periods
from beaconframes.wall.images import render
from beaconframes.wall.pixel_writes import SIZE, read_writes

if TYPE_CHECKING:
    from datetime import timedelta

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.wall.pixel_writes import Ints

    Target: TypeAlias = Image.Image | str | os.PathLike[str] | IntoFrame

Form: TypeAlias = Literal["long", "short"]
Order: TypeAlias = Literal["center", "rows", "random"]

_FORMS = {"long": "graffitiwall:{}:{}:#{:06x}", "short": "gw:{:03}{:03}{:06x}"}
_PLACE = ("region", "scale")
_OPAQUE = 128


def plan(
    frame: IntoFrameT,
    target: Target,
    *,
    at: tuple[int, int] | None = None,
    width: int | None = None,
    form: Form = "long",
    order: Order = "center",
) -> IntoFrameT:
    """Plan a picture on the wall. One row per pixel of the picture, in the order to paint them.

    *frame* is the present wall: ``bf.load_graffiti_wall(since=0)``. *target* is an image, or the
    path of one, with its upper left corner *at* ``(x, y)``. It is resized to *width* pixels, if
    given. The wall takes every colour of 24 bits, but no transparency: pixels with an opacity below
    one half are left out, others are painted as if opaque.

    ``painted`` is the present colour of a pixel, null for unpainted, and ``color`` that of the
    picture. ``is_right`` is whether they are equal. ``graffiti`` is the text for a block:
    ``graffitiwall:x:y:#rrggbb``, or with ``form="short"`` ``gw:xxxyyyrrggbb``, which leaves more of
    the 32 bytes for other text. Pixels that are right come last.

    *order* is ``"center"`` (from the middle outwards), ``"rows"``, or ``"random"``, in which the
    whole picture appears early. It is the same every time, also when a part is painted.
    """
    check_choice("order", order, get_args(Order))
    pixels = _compare(frame, _open_target(target, at, width), form)
    ranks = {
        "rows": pl.int_range(pl.len()),
        "center": sum((pl.col(axis) - pl.mean(axis)) ** 2 for axis in ("x", "y")),
        "random": pl.int_range(pl.len()).shuffle(seed=0),
    }
    return return_like(
        pixels.with_columns(rank=ranks[order])
        .sort("is_right", "rank", maintain_order=True)
        .drop("rank"),
        frame,
    )


def diff(
    frame: IntoFrameT,
    target: Target,
    *,
    at: tuple[int, int] | None = None,
    width: int | None = None,
    form: Form = "long",
) -> IntoFrameT:
    """List the pixels that differ from a target picture. One row per differing pixel.

    The arguments and columns are those of ``plan``. *target* may also be a frame, such as the wall
    until an earlier day: its unpainted pixels are left out. The default of *at* is the position in
    the picture's metadata, which ``render`` and ``save`` write, or else ``(0, 0)``. A picture that
    ``save`` has enlarged is reduced to one pixel for each pixel of the wall.

    Rows are sorted by ``y``, ``x``.
    """
    pixels = _compare(frame, _open_target(target, at, width), form)
    return return_like(pixels.filter(~pl.col("is_right")).drop("is_right"), frame)


def progress(
    frame: IntoFrameT,
    target: Target,
    *,
    at: tuple[int, int] | None = None,
    width: int | None = None,
    every: str | timedelta = "1d",
) -> IntoFrameT:
    """Follow a picture over time. One row per period of *every*, such as ``"12h"`` or ``"1w"``.

    *frame* has every write: ``bf.load_graffiti_wall(since=0)``. The other arguments are those of
    ``plan``. ``right`` is the number of pixels of the picture that are right at the end of the
    period which starts at ``time``, in UTC, and ``share`` their share of the picture. ``painted``
    is the number of writes in the period that made a pixel right, and ``damaged`` of those that
    painted over a right pixel in another colour. The last period ends with the last write of
    *frame*.
    """
    picture = _open_target(target, at, width)
    writes = read_writes(frame, times=True)
    starts, stops = find_periods(writes, every) if len(writes.slot) else (pl.Series([]), [])
    wanted = np.zeros((SIZE, SIZE), np.int64)
    wanted[picture.y, picture.x] = picture.value + 1
    index = np.flatnonzero(wanted.ravel()[writes.place])
    place = writes.place[index]
    rows = pl.DataFrame({"place": place, "right": wanted.ravel()[place] == writes.value[index] + 1})
    before = pl.col("right").shift().over("place").fill_null(value=False)
    period = np.searchsorted(stops, index, side="right")
    counts = {
        name: np.bincount(period[rows.select(made).to_series().to_numpy()], minlength=len(stops))
        for name, made in {
            "painted": pl.col("right") & ~before,
            "damaged": before & ~pl.col("right"),
        }.items()
    }
    right = np.cumsum(counts["painted"] - counts["damaged"])
    return return_like(
        pl.DataFrame(
            {"time": starts, "right": right, "share": right / max(len(picture.value), 1), **counts},
            schema={
                "time": pl.Datetime("us", "UTC"),
                "right": pl.Int64,
                "share": pl.Float64,
                "painted": pl.Int64,
                "damaged": pl.Int64,
            },
        ),
        frame,
    )


@dataclass(frozen=True, eq=False)
class _Picture:
    """The pixels of a target on the wall, row by row."""

    x: Ints
    y: Ints
    value: Ints


def _open_target(target: Target, at: tuple[int, int] | None, width: int | None) -> _Picture:
    """Open a target, and read its opaque pixels."""
    image, corner = _open_image(target, width)
    left, top = _check_corner(corner if at is None else at, image)
    pixels = np.asarray(image).astype(np.int64)
    values = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    y, x = np.nonzero(pixels[..., 3] >= _OPAQUE)
    return _Picture(x + left, y + top, values[y, x])


def _compare(frame: IntoFrame, picture: _Picture, form: Form) -> pl.DataFrame:
    """Compare the wall with a picture. One row per pixel of the picture, row by row."""
    check_choice("form", form, _FORMS)
    painted = read_writes(frame).paint()[picture.y, picture.x]
    rows = [*zip(picture.x.tolist(), picture.y.tolist(), picture.value.tolist(), strict=True)]
    return pl.DataFrame(
        {
            "x": picture.x,
            "y": picture.y,
            "painted": [f"{value - 1:06x}" if value else None for value in painted.tolist()],
            "color": [f"{row[2]:06x}" for row in rows],
            "is_right": painted == picture.value + 1,
            "graffiti": [_FORMS[form].format(*row) for row in rows],
        },
        schema={
            "x": pl.Int64,
            "y": pl.Int64,
            "painted": pl.String,
            "color": pl.String,
            "is_right": pl.Boolean,
            "graffiti": pl.String,
        },
    )


def _open_image(target: Target, width: int | None) -> tuple[Image.Image, tuple[int, int]]:
    """Open an image, or render a frame; return it with its position on the wall."""
    if isinstance(target, Image.Image):
        return _reduce_image(target, width)
    if not isinstance(target, str | os.PathLike):
        return _reduce_image(render(target), width)
    try:
        with Image.open(target) as image:
            return _reduce_image(image, width)
    except (OSError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"the picture {str(target)!r} cannot be opened: {error}",
            hint="Pass the path of a PNG, or a Pillow image.",
        ) from error


def _reduce_image(image: Image.Image, width: int | None) -> tuple[Image.Image, tuple[int, int]]:
    """Resize a picture, in RGBA; its size is checked before it is decoded.

    Without a width, the enlargement of a picture of the wall is undone. Pictures that were cut, and
    those without metadata, stay as they are, at (0, 0).
    """
    x0, y0, size = 0, 0, image.size
    # `render` writes a tuple and a number, and a PNG file has texts.
    text = " ".join(str(image.info.get(name, image.info.get(name.title(), ""))) for name in _PLACE)
    match [int(number) for number in re.findall(r"\d+", text)]:
        case [left, top, right, bottom, scale]:
            original = right - left + 1, bottom - top + 1
            if (original[0] * scale, original[1] * scale) == image.size:
                x0, y0, size = left, top, original
    method = Image.Resampling.NEAREST
    if width is not None:
        if type(width) is not int or not 1 <= width <= SIZE:
            raise UsageError(
                f"width={width!r} is not a valid width", hint=f"Pass an integer from 1 to {SIZE}."
            )
        size = width, max(1, round(image.height * width / image.width))
        method = Image.Resampling.BOX
    if max(size) > SIZE:
        raise UsageError(
            f"the picture has {size[0]} x {size[1]} pixels, the wall {SIZE} x {SIZE}",
            hint="Pass width= to make it smaller.",
        )
    if image.mode.startswith("I;16"):  # Pillow would clip 16 bits to 8.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert("RGBA").resize(size, method), (x0, y0)


def _check_corner(at: tuple[int, int], image: Image.Image) -> tuple[int, int]:
    """Raise if the image at this position would extend beyond the wall."""
    match at:
        case (int(x), int(y)):
            if 0 <= x <= SIZE - image.width and 0 <= y <= SIZE - image.height:
                return x, y
    raise UsageError(
        f"at={at!r} does not fit a picture of {image.width} x {image.height} pixels",
        hint=f"Pass (x, y) of its upper left corner; all of it must lie within 0 to {SIZE - 1}.",
    )
