"""The differences between the wall and a target picture."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from PIL import Image

from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, return_like
from beaconframes.wall.images import render
from beaconframes.wall.pixel_writes import SIZE, read_writes

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

_FORMS = {"long": "graffitiwall:{}:{}:#{:06x}", "short": "gw:{:03}{:03}{:06x}"}
_TEXTS = ("painted", "color", "graffiti")
_PLACE = ("region", "scale")
_OPAQUE = 128


def diff(
    frame: IntoFrameT,
    target: Image.Image | str | os.PathLike[str] | IntoFrame,
    *,
    at: tuple[int, int] | None = None,
    form: str = "long",
) -> IntoFrameT:
    """List the pixels that differ from a target picture. One row per differing pixel.

    *frame* is the present wall: ``bf.load_graffiti_wall(since=0)``. *target* is an image, or the
    path of one, with its upper left corner *at* ``(x, y)``. Its pixels with an opacity below one
    half are ignored. *target* may also be a frame, such as the wall until an earlier day: its
    unpainted pixels are ignored. The default of *at* is the position in the picture's metadata,
    which ``render`` and ``save`` write, or else ``(0, 0)``.

    A picture that ``save`` has enlarged is reduced to one pixel for each pixel of the wall.

    ``painted`` is the present colour of a pixel, null for unpainted, and ``color`` the target
    colour. ``graffiti`` is the text for a block: ``graffitiwall:x:y:#rrggbb``,
    or with ``form="short"`` ``gw:xxxyyyrrggbb``, which leaves more of the 32 bytes for other text.
    Rows are sorted by ``y``, ``x``.
    """
    check_choice("form", form, _FORMS)
    image, corner = _open_image(target)
    left, top = _check_corner(corner if at is None else at, image)
    pixels = np.asarray(image.convert("RGBA")).astype(np.int64)
    target_values = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    painted_values = read_writes(frame).paint()[top : top + image.height, left : left + image.width]
    y, x = np.nonzero((painted_values != target_values + 1) & (pixels[..., 3] >= _OPAQUE))
    rows = [
        *zip((x + left).tolist(), (y + top).tolist(), target_values[y, x].tolist(), strict=True)
    ]
    todo = pl.DataFrame(
        {
            "x": [row[0] for row in rows],
            "y": [row[1] for row in rows],
            "painted": [
                f"{value - 1:06x}" if value else None for value in painted_values[y, x].tolist()
            ],
            "color": [f"{row[2]:06x}" for row in rows],
            "graffiti": [_FORMS[form].format(*row) for row in rows],
        },
        schema={"x": pl.Int64, "y": pl.Int64} | dict.fromkeys(_TEXTS, pl.String),
    )
    return return_like(todo, frame)


def _open_image(
    target: Image.Image | str | os.PathLike[str] | IntoFrame,
) -> tuple[Image.Image, tuple[int, int]]:
    """Open an image, or render a frame; return it with its position on the wall."""
    if isinstance(target, Image.Image):
        return _reduce_image(target)
    if not isinstance(target, str | os.PathLike):
        return _reduce_image(render(target))
    try:
        with Image.open(target) as image:
            return _reduce_image(image)
    except (OSError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"the picture {str(target)!r} cannot be opened: {error}",
            hint="Pass the path of a PNG, or a Pillow image.",
        ) from error


def _reduce_image(image: Image.Image) -> tuple[Image.Image, tuple[int, int]]:
    """Undo the enlargement of a picture of the wall; its size is checked before it is decoded.

    Pictures that were cut, and those without metadata, stay as they are, at (0, 0).
    """
    x0, y0, width, height = 0, 0, *image.size
    # `render` writes a tuple and a number, and a PNG file has texts.
    text = " ".join(str(image.info.get(name, image.info.get(name.title(), ""))) for name in _PLACE)
    match [int(number) for number in re.findall(r"\d+", text)]:
        case [left, top, right, bottom, scale]:
            original = right - left + 1, bottom - top + 1
            if (original[0] * scale, original[1] * scale) == image.size:
                x0, y0, (width, height) = left, top, original
    if max(width, height) > SIZE:
        raise UsageError(
            f"the picture has {image.width} x {image.height} pixels, the wall {SIZE} x {SIZE}",
            hint="Make it smaller, for example with image.resize(...).",
        )
    return image.resize((width, height), Image.Resampling.NEAREST), (x0, y0)


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
