"""Images of the wall: the last write to a pixel counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageColor

from beaconframes.errors import UsageError
from beaconframes.frames import check_count
from beaconframes.wall.pixel_writes import check_region, find_region, read_writes

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.pixel_writes import Ints, Region, RegionChoice

PALETTE = 255
"""Maximum colours of an image with a palette of 256 entries, one of which is "unpainted"."""

_SCREEN = 1000  # Pixels of the longer side of a file.
_LARGEST = 2**27  # Pixels; Pillow rejects much larger images as decompression bombs.


@dataclass(frozen=True, eq=False)
class Picture:
    """A painted region: 0 for an unpainted pixel, else 1 + its colour."""

    pixels: Ints
    region: Region
    slots: dict[str, int] = field(default_factory=dict)


def render(
    frame: IntoFrame,
    *,
    region: RegionChoice = None,
    scale: int = 1,
    background: str | None = None,
) -> Image.Image:
    """Render the painted area of the graffiti wall as an RGBA image.

    *frame* is the result of ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)``, in any
    order; the last write to a pixel counts. *scale* is the width of a pixel of the wall, in pixels
    of the image. Unpainted pixels are transparent, or have the *background* colour.

    *region* ``(x0, y0, x1, y1)`` cuts out a part, borders included; ``"all"`` is the whole wall of
    1000 x 1000 pixels. By default, it is the smallest rectangle that contains every painted pixel.
    ``image.info["region"]`` has its corners: the pixel ``(x, y)`` of the wall is at
    ``(x - x0, y - y0)`` of the image. ``image.info`` also has the first and the last slot of
    *frame*.
    """
    picture = paint_region(frame, region)
    return enlarge_image(build_rgba_image(picture, background), scale, picture)


def paint_region(frame: IntoFrame, region: RegionChoice) -> Picture:
    """Apply the writes in the order of their slots, and cut out the region."""
    check_region(region)
    writes = read_writes(frame)
    pixels = writes.paint()
    columns, lines = (np.flatnonzero(pixels.any(axis=axis)) for axis in (0, 1))
    x0, y0, x1, y1 = find_region(region, columns, lines)
    # numpy reads a part of an array several times as slowly as an array.
    part = np.ascontiguousarray(pixels[y0 : y1 + 1, x0 : x1 + 1])
    return Picture(part, (x0, y0, x1, y1), writes.span)


def parse_background(background: str | None) -> int:
    """Return the colour of unpainted pixels, as 0xRRGGBBAA."""
    if background is None:
        return 0
    try:
        # The column `color` of the wall has no "#", and in a shell it begins a comment.
        is_bare = re.fullmatch(r"[0-9A-Fa-f]{6}", background)
        red, green, blue, *opacity = ImageColor.getrgb(f"#{background}" if is_bare else background)
    except (ValueError, TypeError, AttributeError):
        opacity = [0]
    if opacity:
        raise UsageError(
            f"background={background!r} is not a solid colour",
            hint='Pass "rrggbb", "#rrggbb", or a name such as "white". Without background=, '
            "unpainted pixels are transparent.",
        )
    return red << 24 | green << 16 | blue << 8 | 0xFF


def choose_scale(width: int, height: int, scale: int | None) -> int:
    """Return the scale, by default one that fills a screen; raise if it is not valid."""
    if scale is None:
        return max(1, _SCREEN // max(width, height))
    check_count("scale", scale, int((_LARGEST / (width * height)) ** 0.5))
    return scale


def enlarge_image(image: Image.Image, scale: int | None, picture: Picture) -> Image.Image:
    """Enlarge every pixel to a square; add slots, region and scale to the metadata."""
    width, height = image.size
    scale = choose_scale(width, height, scale)
    if scale > 1:
        image = image.resize((width * scale, height * scale), Image.Resampling.NEAREST)
    image.info.update(picture.slots, region=picture.region, scale=scale)
    return image


def build_rgba_image(picture: Picture, background: str | None) -> Image.Image:
    """Build an image in which every pixel has its colour and opacity."""
    values = picture.pixels
    pixels = np.where(values == 0, parse_background(background), values - 1 << 8 | 0xFF).astype(
        ">u4"
    )
    return Image.fromarray(pixels.view(np.uint8).reshape(*values.shape, 4))


def build_palette_image(picture: Picture, background: str | None) -> Image.Image | None:
    """Build an image with a palette, which makes small files; None for too many colours."""
    # A table of all colours is faster than sorting; few of its memory pages are used.
    entry_of = np.zeros((1 << 24) + 8, np.uint8)
    entry_of[picture.pixels] = 1
    entry_of[0] = 0
    # Eight colours at a time, most of which are unused.
    eights = np.flatnonzero(entry_of.view(np.uint64).astype(np.bool_))
    used = (8 * eights[:, None] + np.arange(8)).ravel()
    used = used[entry_of[used] > 0]
    if len(used) > PALETTE:
        return None
    entry_of[used] = np.arange(1, len(used) + 1)
    image = Image.fromarray(entry_of[picture.pixels])
    image.putpalette(encode_palette(np.append(parse_background(background) >> 8, used - 1)))
    if background is None:
        image.info["transparency"] = 0
    return image


def encode_palette(colours: Ints) -> bytes:
    """Encode colours as Pillow stores palettes."""
    return colours.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
