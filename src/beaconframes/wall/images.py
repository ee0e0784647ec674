"""The wall as an image: the last write to a pixel counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageColor

from beaconframes.errors import UsageError
from beaconframes.wall.pixel_writes import check_region, read_writes

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.pixel_writes import Ints, Region

PALETTE = 255
"""Colours of an image with a palette, which has 256 entries; one of them means "unpainted"."""

_LARGEST = 2**27  # Pixels; Pillow takes an image much larger than this for an attack.


@dataclass(frozen=True, eq=False)
class Picture:
    """A painted region: per pixel 0 where nobody painted, else 1 + its colour."""

    pixels: Ints
    slots: dict[str, int] = field(default_factory=dict)


def render(
    frame: IntoFrame,
    *,
    region: Region | None = None,
    scale: int = 1,
    background: str | None = None,
) -> Image.Image:
    """Paint the graffiti wall as an RGBA image of 1000 x 1000 pixels; the last write to each wins.

    *frame* is what ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)`` gives, in any
    order. *region* ``(x0, y0, x1, y1)`` cuts out a part, borders included, and *scale* makes every
    pixel a square of so many. What nobody painted is transparent, or has the *background* colour.
    ``image.info`` tells the first and the last slot of *frame*.
    """
    picture = paint_region(frame, region)
    return enlarge_image(build_rgba_image(picture, background), scale, picture)


def paint_region(frame: IntoFrame, region: Region | None) -> Picture:
    """Let the changes fall on the wall in the order of their slots, and cut out the region."""
    x0, y0, x1, y1 = check_region(region)
    writes = read_writes(frame)
    return Picture(writes.paint()[y0 : y1 + 1, x0 : x1 + 1], writes.span)


def parse_background(background: str | None) -> int:
    """Give the colour of what nobody painted, as 0xRRGGBBAA."""
    if background is None:
        return 0
    try:
        red, green, blue, *opacity = ImageColor.getrgb(background)
    except (ValueError, TypeError):
        opacity = [0]
    if opacity:
        raise UsageError(
            f"background={background!r} is no solid colour",
            hint='Give "#rrggbb", or a name such as "white".',
        )
    return red << 24 | green << 16 | blue << 8 | 0xFF


def check_scale(width: int, height: int, scale: int) -> None:
    """Refuse a scale that is none, or makes too large an image."""
    largest = int((_LARGEST / (width * height)) ** 0.5)
    if type(scale) is not int or not 1 <= scale <= largest:
        raise UsageError(
            f"scale={scale!r} does not work", hint=f"Give an integer from 1 to {largest}."
        )


def enlarge_image(image: Image.Image, scale: int, picture: Picture) -> Image.Image:
    """Make every pixel a square, and note the slots."""
    width, height = image.size
    check_scale(width, height, scale)
    if scale > 1:
        image = image.resize((width * scale, height * scale), Image.Resampling.NEAREST)
    image.info.update(picture.slots)
    return image


def build_rgba_image(picture: Picture, background: str | None) -> Image.Image:
    """Give every pixel its colour and opacity."""
    values = picture.pixels
    pixels = np.where(values == 0, parse_background(background), values - 1 << 8 | 0xFF).astype(
        ">u4"
    )
    return Image.fromarray(pixels.view(np.uint8).reshape(*values.shape, 4))


def build_palette_image(picture: Picture, background: str | None) -> Image.Image | None:
    """Give every pixel the place of its colour in a palette, which makes small files.

    None if there are too many colours.
    """
    # A table of all colours, of which few pages are touched, is faster than sorting.
    entry_of = np.zeros((1 << 24) + 1, np.uint8)
    entry_of[picture.pixels] = 1
    entry_of[0] = 0
    used = np.flatnonzero(entry_of.view(np.bool_))
    if len(used) > PALETTE:
        return None
    entry_of[used] = np.arange(1, len(used) + 1)
    image = Image.fromarray(entry_of[picture.pixels])
    image.putpalette(encode_palette(np.append(parse_background(background) >> 8, used - 1)))
    if background is None:
        image.info["transparency"] = 0
    return image


def encode_palette(colours: Ints) -> bytes:
    """Write colours as Pillow's palettes hold them."""
    return colours.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
