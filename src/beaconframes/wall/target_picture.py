"""A picture to paint: opened, resized, and put at its place on the wall."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from PIL import Image

from beaconframes.calendar import to_integer
from beaconframes.errors import UsageError
from beaconframes.frames import check_count
from beaconframes.wall.images import render
from beaconframes.wall.pixel_writes import SIZE

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.pixel_writes import Ints

    Target: TypeAlias = Image.Image | str | os.PathLike[str] | IntoFrame

_PLACE = ("region", "scale")
_OPAQUE = 128


@dataclass(frozen=True, eq=False)
class TargetPicture:
    """The pixels of a target on the wall, row by row."""

    x: Ints
    y: Ints
    value: Ints


def open_target(target: Target, at: tuple[int, int] | None, width: int | None) -> TargetPicture:
    """Open a target, and read its opaque pixels."""
    image, corner = _open_image(target, width)
    left, top = _check_corner(corner if at is None else at, image)
    pixels = np.asarray(image).astype(np.int64)
    values = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    y, x = np.nonzero(pixels[..., 3] >= _OPAQUE)
    return TargetPicture(x + left, y + top, values[y, x])


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
    # Cameras store a preview as a second picture, in the format MPO.
    if getattr(image, "is_animated", False) and image.format != "MPO":
        raise UsageError(
            "the picture has more than one frame",
            hint="Pass one of them as a Pillow image: image.seek(number), then image.copy().",
        )
    x0, y0, size = 0, 0, image.size
    # `render` writes a tuple and a number, and a PNG file has texts.
    text = " ".join(str(image.info.get(name, image.info.get(name.title(), ""))) for name in _PLACE)
    match [int(number) for number in re.findall(r"\d+", text)]:
        case [left, top, right, bottom, *scales]:
            original = right - left + 1, bottom - top + 1
            scale = scales[0] if scales else 1  # Files of earlier versions do not have it.
            if (original[0] * scale, original[1] * scale) == image.size:
                x0, y0, size = left, top, original
    method = Image.Resampling.NEAREST
    if width is not None:
        check_count("width", width, SIZE)
        size = width, max(1, round(image.height * width / image.width))
        method = Image.Resampling.BOX
    if max(size) > SIZE:
        raise UsageError(
            f"the picture has {size[0]} x {size[1]} pixels, the wall {SIZE} x {SIZE}",
            hint="Pass width= to make it smaller.",
        )
    if image.mode.startswith("I"):  # Pillow would clip 16 bits to 8.
        values = np.asarray(image)
        shift = 8 if image.mode != "I" or values.max(initial=0) > 255 else 0
        image = Image.fromarray((values >> shift).clip(0, 255).astype(np.uint8))
    return image.convert("RGBA").resize(size, method), (x0, y0)


def _check_corner(at: tuple[int, int], image: Image.Image) -> tuple[int, int]:
    """Raise if the image at this position would extend beyond the wall."""
    with suppress(TypeError, ValueError):
        x, y = map(to_integer, at)
        if x is None or y is None:
            pass
        elif 0 <= x <= SIZE - image.width and 0 <= y <= SIZE - image.height:
            return x, y
    raise UsageError(
        f"at={at!r} does not fit a picture of {image.width} x {image.height} pixels",
        hint=f"Pass (x, y) of its upper left corner; all of it must lie within 0 to {SIZE - 1}.",
    )
