"""An animation before it is a file: what each frame changes, and the images of that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from beaconframes.wall.painting import PALETTE, palette

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from beaconframes.wall.changes import Ints


@dataclass(frozen=True, eq=False)
class Shot:
    """What one frame changes: a rectangle of the wall, and the pixels in it that get a colour."""

    left: int
    top: int
    width: int
    height: int
    x: Ints
    y: Ints
    value: Ints

    def part(self, colours: Ints) -> Shot:
        """Keep the pixels that get one of the *colours*, which follow each other."""
        kept = (colours[0] <= self.value) & (self.value <= colours[-1])
        return replace(self, x=self.x[kept], y=self.y[kept], value=self.value[kept])


@dataclass(frozen=True, eq=False)
class Film:
    """An animation: the first shot covers all of it, each later one lies on what is there."""

    width: int
    height: int
    scale: int
    tick: int
    """Milliseconds of a frame in which something changes."""
    delays: list[int]
    """Milliseconds for which each frame is shown: longer where nothing follows for a while."""
    shots: Iterator[Shot]
    colours: Ints
    """Every colour that occurs, in order."""
    about: dict[str, str]

    @property
    def few(self) -> bool:
        """Whether one palette has room for all colours."""
        return len(self.colours) <= PALETTE

    @property
    def told(self) -> str:
        """What the file tells of its data, in one line."""
        return "; ".join(f"{name}: {text}" for name, text in self.about.items())

    def timed(self) -> Iterator[tuple[Shot, int]]:
        """Give every shot with its delay."""
        return zip(self.shots, self.delays, strict=True)

    def image(self, shot: Shot) -> Image.Image:
        """Make the image of a shot: with a palette if one does."""
        return self.indexed(shot, self.colours) if self.few else self.coloured(shot)

    def indexed(self, shot: Shot, colours: Ints) -> Image.Image:
        """Make an image with a palette; its entry 0 is transparent, for what does not change."""
        index = np.zeros((shot.height, shot.width), np.uint8)
        index[shot.y, shot.x] = np.searchsorted(colours, shot.value) + 1
        image = Image.fromarray(self._enlarged(index))
        image.putpalette(palette(np.append(0, colours)))
        image.info["transparency"] = 0
        return image

    def coloured(self, shot: Shot) -> Image.Image:
        """Make an image of all colours, transparent where nothing changes."""
        pixels = np.zeros((shot.height, shot.width), ">u4")
        pixels[shot.y, shot.x] = shot.value << 8 | 0xFF
        large = self._enlarged(pixels)
        return Image.fromarray(large.view(np.uint8).reshape(*large.shape, 4))

    def canvases(self) -> Iterator[Image.Image]:
        """Give every frame as all of it looks. It is one image, changed from frame to frame."""
        first = self.image(next(self.shots))
        yield first
        for shot in self.shots:
            change = self.image(shot)
            corner = (shot.left * self.scale, shot.top * self.scale)
            first.paste(change, corner, mask=change.convert("RGBA").getchannel("A"))
            yield first

    def _enlarged(self, pixels: NDArray[Any]) -> NDArray[Any]:
        return pixels.repeat(self.scale, 0).repeat(self.scale, 1)
