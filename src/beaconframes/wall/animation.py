"""An animation in memory: the changes of each frame, and their images with a strip of dates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from beaconframes.wall.images import PALETTE, encode_palette

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from beaconframes.wall.pixel_writes import Ints


_SHADES = 4  # From the paper to the ink, so that texts are smooth.


@dataclass(frozen=True, eq=False)
class DateStrip:
    """The strip below the wall that has the date of a frame, in pixels of the image."""

    width: int
    paper: int
    """Its colour, 0xRRGGBB."""

    @property
    def font_size(self) -> int:
        """Return the size of the text."""
        return min(max(self.width // 40, 10), 24)

    @property
    def height(self) -> int:
        """Return the height; an even number, which videos need."""
        return self.font_size * 3 // 4 * 2

    @property
    def shades(self) -> Ints:
        """Return the colours from the paper to the ink, which is black or white."""
        paper = np.array([self.paper >> 16, self.paper >> 8 & 0xFF, self.paper & 0xFF])
        ink = 0 if paper.mean() >= 128 else 255
        red, green, blue = np.linspace(paper, ink, _SHADES).astype(np.int64).T
        shades: Ints = red << 16 | green << 8 | blue
        return shades

    def has_room(self, text: str) -> bool:
        """Return whether the strip is wide enough for a text."""
        return ImageFont.load_default(self.font_size).getlength(text) + self.height <= self.width

    def draw_text(self, text: str) -> NDArray[np.uint8]:
        """Draw a text; return the number of the shade of each pixel."""
        image = Image.new("L", (self.width, self.height))
        ImageDraw.Draw(image).text(
            (self.height // 2, self.height // 2),
            text,
            fill=255,
            font=ImageFont.load_default(self.font_size),
            anchor="lm",
        )
        return np.rint(np.asarray(image) * ((_SHADES - 1) / 255)).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class FrameChange:
    """The change of one frame: a rectangle of the wall, and its pixels with a new colour."""

    left: int
    top: int
    width: int
    height: int
    x: Ints
    y: Ints
    value: Ints
    label: str = ""
    """The text of the strip."""

    def select_colours(self, colours: Ints) -> FrameChange:
        """Keep the pixels whose new colour is one of *colours*, which are consecutive."""
        selected = (colours[0] <= self.value) & (self.value <= colours[-1])
        return replace(self, x=self.x[selected], y=self.y[selected], value=self.value[selected])


@dataclass(frozen=True, eq=False)
class Animation:
    """An animation: the first change covers the whole image, later ones are drawn over it."""

    width: int
    height: int
    scale: int
    delays: list[int]
    """Duration of each frame in milliseconds, including following frames that change nothing."""
    changes: Iterator[FrameChange]
    colours: Ints
    """Every colour that occurs, sorted."""
    entries: dict[str, str]
    rate: float
    """Frames per second."""
    paper: int
    """The colour of unpainted pixels in formats without transparency, 0xRRGGBB."""
    strip: DateStrip | None

    @property
    def palette_size(self) -> int:
        """Return how many colours of the wall one palette has room for."""
        return PALETTE - (_SHADES if self.strip else 0)

    @property
    def fits_palette(self) -> bool:
        """Return whether one palette has room for all colours."""
        return len(self.colours) <= self.palette_size

    @property
    def description(self) -> str:
        """Return the metadata in one line."""
        return "; ".join(f"{name}: {text}" for name, text in self.entries.items())

    def pair_delays(self) -> Iterator[tuple[FrameChange, int]]:
        """Yield every change with its delay."""
        return zip(self.changes, self.delays, strict=True)

    def find_corner(self, change: FrameChange) -> tuple[int, int]:
        """Return the position of the image of a change; with a strip, it has the whole width."""
        return 0 if self.strip else change.left * self.scale, change.top * self.scale

    def build_palette_image(self, change: FrameChange, colours: Ints) -> Image.Image:
        """Build an image with a palette; entry 0 is transparent, for unchanged pixels."""
        index = np.zeros((change.height, change.width), np.uint8)
        index[change.y, change.x] = np.searchsorted(colours, change.value) + 1
        shades = self.strip.shades if self.strip else colours[:0]
        entries = np.arange(len(shades)) + len(colours) + 1
        image = Image.fromarray(self._enlarge(index, change, entries))
        image.putpalette(encode_palette(np.concatenate([[0], colours, shades])))
        image.info["transparency"] = 0
        return image

    def build_rgba_image(self, change: FrameChange) -> Image.Image:
        """Build an image of any colours, transparent for unchanged pixels."""
        pixels = np.zeros((change.height, change.width), ">u4")
        pixels[change.y, change.x] = change.value << 8 | 0xFF
        shades = self.strip.shades if self.strip else self.colours[:0]
        large = self._enlarge(pixels, change, shades << 8 | 0xFF)
        return Image.fromarray(large.view(np.uint8).reshape(*large.shape, 4))

    def _enlarge(
        self, pixels: NDArray[Any], change: FrameChange, shades: NDArray[Any]
    ) -> NDArray[Any]:
        """Enlarge the pixels of a change, and add the strip, in these shades."""
        large = pixels.repeat(self.scale, 0).repeat(self.scale, 1)
        if self.strip is None:
            return large
        left, top = change.left * self.scale, change.top * self.scale
        height = self.height * self.scale - top + self.strip.height
        image = np.zeros((height, self.strip.width), pixels.dtype)
        image[: large.shape[0], left : left + large.shape[1]] = large
        image[-self.strip.height :] = shades[self.strip.draw_text(change.label)]
        return image
