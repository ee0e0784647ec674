"""The wall as an image: which write to a pixel counts, and its colour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from PIL import Image, ImageColor

from beaconframes.errors import UsageError
from beaconframes.frames import collect, take

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from numpy.typing import NDArray

SIZE = 1000

Region = tuple[int, int, int, int]

_LARGEST = 2**27  # Pixels; Pillow takes an image much larger than this for an attack.


@dataclass(frozen=True)
class Picture:
    """A painted region: per pixel 0 where nobody painted, else 1 + the place in *colours*."""

    index: NDArray[np.int32]
    colours: NDArray[np.uint32]
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
    picture = paint(frame, region)
    return scaled(rgba(picture, background), scale, picture)


def paint(frame: IntoFrame, region: Region | None) -> Picture:
    """Let the changes fall on the wall in the order of their slots, and cut out the region."""
    x0, y0, x1, y1 = _checked(region)
    changes = _readable(
        collect(take(frame, ("slot", "x", "y", "color"), loader="load_graffiti_wall"))
    )
    slots = changes["slot"].to_numpy()
    order = np.argsort(slots, kind="stable")
    ranked = slots[order]
    place = (changes["y"] * SIZE + changes["x"]).to_numpy()[order]
    # The largest rank of all writes to a pixel: exact, where assigning to repeated places is not.
    last = np.full(SIZE * SIZE, -1)
    np.maximum.at(last, place, np.arange(len(place)))
    last = last.reshape(SIZE, SIZE)[y0 : y1 + 1, x0 : x1 + 1]
    painted = last >= 0
    values = changes["value"].to_numpy()[order[last[painted]]]
    # Tables of all 2^24 colours find the palette several times faster than sorting does.
    seen = np.zeros(1 << 24, np.bool_)
    seen[values] = True
    colours = np.flatnonzero(seen)
    entry_of = np.empty(1 << 24, np.int32)
    entry_of[colours] = np.arange(1, len(colours) + 1)
    index: NDArray[np.int32] = np.zeros(last.shape, np.int32)
    index[painted] = entry_of[values]
    span = {"first_slot": int(ranked[0]), "last_slot": int(ranked[-1])} if len(ranked) else {}
    return Picture(index, colours.astype(np.uint32), span)


def _readable(changes: pl.DataFrame) -> pl.DataFrame:
    """Turn places into integers and colours into numbers; refuse a row that is no pixel."""
    numbers = {}
    for column in ("slot", "x", "y"):
        kind, integer = changes.schema[column], pl.col(column).cast(pl.Int64, strict=False)
        if not kind.is_numeric() and changes.height:
            raise UsageError(f"the column {column} holds {kind}, not integers")
        whole = kind.is_integer() or not changes.height
        numbers[column] = integer if whole else pl.when(integer == pl.col(column)).then(integer)
    color = pl.col("color").cast(pl.String)
    readable = changes.with_columns(
        **numbers, value=color.str.to_integer(base=16, dtype=pl.UInt32, strict=False)
    )
    sound = readable.select(
        pl.col("slot").is_not_null()
        & pl.col("x").is_between(0, SIZE - 1)
        & pl.col("y").is_between(0, SIZE - 1)
        & pl.col("value").is_not_null()
        & (color.str.len_bytes() == 6)
        & ~color.str.starts_with("+")
    ).to_series()
    wrong = (~sound.fill_null(value=False)).arg_true()
    if len(wrong):
        slot, x, y, text = changes.row(wrong[0])
        raise UsageError(
            f"row {wrong[0]} is no pixel of the wall: slot={slot}, x={x}, y={y}, color={text!r}",
            hint=f"x and y are 0 to {SIZE - 1}, color is six hex digits without a hash sign.",
        )
    return readable


def _checked(region: Region | None) -> Region:
    """Refuse a region that does not lie on the wall."""
    if region is None:
        return 0, 0, SIZE - 1, SIZE - 1
    match region:
        case (int(x0), int(y0), int(x1), int(y1)):
            if 0 <= x0 <= x1 < SIZE and 0 <= y0 <= y1 < SIZE:
                return x0, y0, x1, y1
    raise UsageError(
        f"region={region!r} is no part of the wall",
        hint=f"Give (x0, y0, x1, y1), borders included: 0 <= x0 <= x1 <= {SIZE - 1}, so for y.",
    )


def _entry(background: str | None) -> int:
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


def scaled(image: Image.Image, scale: int, picture: Picture) -> Image.Image:
    """Make every pixel a square, and note the slots."""
    width, height = image.size
    largest = int((_LARGEST / (width * height)) ** 0.5)
    if type(scale) is not int or not 1 <= scale <= largest:
        raise UsageError(
            f"scale={scale!r} does not work", hint=f"Give an integer from 1 to {largest}."
        )
    if scale > 1:
        image = image.resize((width * scale, height * scale), Image.Resampling.NEAREST)
    image.info.update(picture.slots)
    return image


def rgba(picture: Picture, background: str | None) -> Image.Image:
    """Give every pixel its colour and opacity."""
    entries = np.append(_entry(background), picture.colours << 8 | 0xFF).astype(">u4")
    pixels = entries[picture.index].view(np.uint8).reshape(*picture.index.shape, 4)
    return Image.fromarray(pixels)


def indexed(picture: Picture, background: str | None) -> Image.Image:
    """Give every pixel the place of its colour in a palette, which makes small files."""
    entries = np.append(_entry(background) >> 8, picture.colours).astype(">u4")
    image = Image.fromarray(picture.index.astype(np.uint8))
    image.putpalette(entries.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes())
    if background is None:
        image.info["transparency"] = 0
    return image
