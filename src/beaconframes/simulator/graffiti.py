"""Graffiti of blocks: texts of clients, and pixels that paint a picture on the wall."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from beaconframes.simulator.wall_picture import draw_picture

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools, Floats, Ints

WALL: Final = 1000
CLIENTS: Final = (
    "Lighthouse/v8.0.1-ced49dd",
    "teku/v25.9.3",
    "Nimbus/v25.9.2-stateofus",
    "Prysm/v6.1.2",
    "Lodestar-v1.34.1/8d2a0f3",
    "Grandine/2.0.0",
    "",
    "",
    "GE-LH-8.0.1",
    "☕ gm from the lamp room",
    "one light, many keepers",
    # Texts that resemble pixels but are not: one outside the wall, one with a missing digit.
    "graffitiwall:1200:40:#ff0000",
    "gw:50060efefef",
)
_PAINTING: Final = 0.72  # share of blocks that paint
_PAINTING_LAST: Final = 0.88  # share of the last blocks
_LAST_SLOTS: Final = 9_900  # less than the wall's default range
_VANDALIZED: Final = 0.03  # share of pixels
_UPPER_CASE: Final = 23  # one of so many validators writes colors in upper case
_COLUMNS: Final = ("slot", "x", "y", "color", "validator_index")


class Pixel(NamedTuple):
    """One pixel to paint."""

    x: int
    y: int
    color: str

    def format(self, style: int) -> str:
        """Return the graffiti that paints the pixel, in one of three formats."""
        if style == 0:
            return f"graffitiwall:{self.x}:{self.y}:#{self.color}"
        short = f"gw:{self.x:03}{self.y:03}{self.color}"
        return short if style == 1 else f"night watch ({short})"


class GraffitiWriter:
    """Chooses the graffiti of each block: a pixel of the picture, or a client's text."""

    def __init__(self, seed: int, first_slot: int, slots: int) -> None:
        """Choose the size of the picture, so that the blocks of *slots* slots can complete it."""
        self._rng = np.random.default_rng([seed, 4])
        last_slots = min(_LAST_SLOTS, slots // 4)
        self._last_start = first_slot + slots - last_slots
        pixels = (slots - last_slots) * _PAINTING * 0.96 / (1 + 2 * _VANDALIZED)
        self.width = max(25, min(200, int(math.sqrt(pixels * 5 / 3))))
        self.height = self.width * 3 // 5
        self.left, self.top = (WALL - self.width) // 2, (WALL - self.height) // 2
        picture, bright = draw_picture(self.width, self.height)
        self._pixels = self._order_pixels(picture)
        bright_pixels = self._rng.permutation(np.argwhere(bright))
        self._last_pixels = self._make_pixels(bright_pixels, picture[tuple(bright_pixels.T)])
        self._painted: list[tuple[int, int, int, str, int]] = []

    def draw_texts(self, slots: Ints, proposers: Ints, may_paint: Bools) -> list[str]:
        """Return the graffiti of blocks; blocks with *may_paint* false have a client's text."""
        chances = self._rng.random(len(slots))
        client = self._rng.integers(0, len(CLIENTS), len(slots))
        texts = []
        for slot, proposer, may, chance, other in zip(
            slots.tolist(), proposers.tolist(), may_paint.tolist(), chances, client, strict=True
        ):
            is_last = slot >= self._last_start
            remaining = self._last_pixels if is_last and self._last_pixels else self._pixels
            if may and remaining and chance < (_PAINTING_LAST if is_last else _PAINTING):
                texts.append(self._paint(remaining.pop(), slot, proposer))
            else:
                # Most operators run one client, and rarely another.
                usual = proposer // 24 % (len(CLIENTS) - 4)
                texts.append(CLIENTS[usual if chance < 0.99 else int(other)])
        return texts

    def take_pixels(self) -> pl.DataFrame:
        """Return the pixels painted since the last call."""
        painted, self._painted = self._painted, []
        return pl.DataFrame(painted, schema=_COLUMNS, orient="row")

    def _paint(self, pixel: Pixel, slot: int, proposer: int) -> str:
        if proposer % _UPPER_CASE == 0:
            pixel = pixel._replace(color=pixel.color.upper())
        self._painted.append((slot, *pixel, proposer))
        return pixel.format(style=proposer % 7 % 3)

    def _make_pixels(self, positions: Ints, colors: Ints) -> list[Pixel]:
        return [
            Pixel(self.left + x, self.top + y, f"{color:06x}")
            for (y, x), color in zip(positions.tolist(), colors.tolist(), strict=True)
        ]

    def _order_pixels(self, picture: Ints) -> list[Pixel]:
        """Return the picture's pixels in random order; some are vandalized and repaired later."""
        rng = self._rng
        pixels = np.argwhere(np.ones_like(picture, np.bool_))
        base = rng.random(len(pixels))
        vandalized = rng.choice(len(pixels), int(len(pixels) * _VANDALIZED), replace=False)
        damage: Floats = base[vandalized] + (0.9 - base[vandalized]) * rng.random(len(vandalized))
        repair = damage + (1 - damage) * rng.random(len(vandalized))
        bright_colors = np.array([0xFF00AA, 0x00FF66, 0xFFFFFF, 0xFF6600])[
            rng.integers(0, 4, len(vandalized))
        ]
        colors = picture[pixels[:, 0], pixels[:, 1]]
        times = np.concatenate([base, damage, repair])
        positions = np.concatenate([pixels, pixels[vandalized], pixels[vandalized]])
        color = np.concatenate([colors, bright_colors, colors[vandalized]])
        # Reversed, because pixels are taken from the end.
        order = np.argsort(times, kind="stable")[::-1]
        return self._make_pixels(positions[order], color[order])
