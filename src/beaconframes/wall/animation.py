"""An animation in memory: the changes of each frame, and their images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from beaconframes.wall.images import PALETTE, encode_palette

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from beaconframes.wall.pixel_writes import Ints


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

    @property
    def fits_palette(self) -> bool:
        """Return whether one palette has room for all colours."""
        return len(self.colours) <= PALETTE

    @property
    def description(self) -> str:
        """Return the metadata in one line."""
        return "; ".join(f"{name}: {text}" for name, text in self.entries.items())

    def pair_delays(self) -> Iterator[tuple[FrameChange, int]]:
        """Yield every change with its delay."""
        return zip(self.changes, self.delays, strict=True)

    def build_image(self, change: FrameChange) -> Image.Image:
        """Build the image of a change, with a palette if one has room."""
        return (
            self.build_palette_image(change, self.colours)
            if self.fits_palette
            else self.build_rgba_image(change)
        )

    def build_palette_image(self, change: FrameChange, colours: Ints) -> Image.Image:
        """Build an image with a palette; entry 0 is transparent, for unchanged pixels."""
        index = np.zeros((change.height, change.width), np.uint8)
        index[change.y, change.x] = np.searchsorted(colours, change.value) + 1
        image = Image.fromarray(self._enlarge(index))
        image.putpalette(encode_palette(np.append(0, colours)))
        image.info["transparency"] = 0
        return image

    def build_rgba_image(self, change: FrameChange) -> Image.Image:
        """Build an image of any colours, transparent for unchanged pixels."""
        pixels = np.zeros((change.height, change.width), ">u4")
        pixels[change.y, change.x] = change.value << 8 | 0xFF
        large = self._enlarge(pixels)
        return Image.fromarray(large.view(np.uint8).reshape(*large.shape, 4))

    def _enlarge(self, pixels: NDArray[Any]) -> NDArray[Any]:
        return pixels.repeat(self.scale, 0).repeat(self.scale, 1)
