"""The picture on the wall: a lighthouse at night, in any size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools, Floats, Ints

_FONT: Final = {
    "b": "10000 10000 10110 11001 10001 10001 11110",
    "e": "00000 00000 01110 10001 11111 10000 01110",
    "a": "00000 00000 01110 00001 01111 10001 01111",
    "c": "00000 00000 01110 10000 10000 10001 01110",
    "o": "00000 00000 01110 10001 10001 10001 01110",
    "n": "00000 00000 10110 11001 10001 10001 10001",
}
_SKY: Final = (0x0B1026, 0x101738, 0x172048, 0x202C5C, 0x2E3A70, 0x4A4580, 0x74507F, 0xA8616F)
_SEA: Final = (0x1D4460, 0x17384F, 0x122C41, 0x0D2234)
_LIGHT: Final = (0xFFF3B0, 0xFFE27A, 0xF7CE52)
_FOAM, _STAR, _MOON = 0x5C93A8, 0xFDF6D8, 0xF6E9B2
_ROCK, _ROCK_EDGE = 0x2B2A33, 0x4A4855
_RED, _WHITE, _DARK, _SHADE = 0xC8372D, 0xF4EFE4, 0x23202B, 0x8C8794
_LETTER, _LETTER_SHADE, _FRAME = 0xFFB52E, 0x3B2415, 0xC9A227


class Canvas:
    """The pixels of a picture, and which of them are part of its main shapes."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.colors: Ints = np.zeros((height, width), np.int64)
        self.bright: Bools = np.zeros((height, width), np.bool_)
        self.y, self.x = np.mgrid[0:height, 0:width]
        self.u: Floats = (self.x + 0.5) / width
        self.v: Floats = (self.y + 0.5) / height
        bayer = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])
        self.dither: Floats = (bayer[self.y % 4, self.x % 4] + 0.5) / 16

    def paint(self, where: Bools, color: int | Ints, *, bright: bool = True) -> None:
        """Paint the pixels *where* the mask is true."""
        self.colors = np.where(where, color, self.colors)
        if bright:
            self.bright |= where


def draw_picture(width: int, height: int) -> tuple[Ints, Bools]:
    """Return the picture as RGB numbers (height x width), and the mask of its main shapes."""
    canvas = Canvas(width, height)
    _draw_sky(canvas)
    _draw_sea(canvas)
    _draw_beam(canvas)
    _draw_island(canvas)
    _draw_tower(canvas)
    _draw_boat(canvas)
    _draw_word(canvas)
    edge = (canvas.x == 0) | (canvas.y == 0) | (canvas.x == width - 1) | (canvas.y == height - 1)
    canvas.paint(edge, _FRAME)
    return canvas.colors, canvas.bright


def _draw_sky(canvas: Canvas) -> None:
    depth = np.clip(canvas.v / 0.72, 0, 0.999) ** 1.3 * (len(_SKY) - 1)
    shade = np.minimum(np.floor(depth + canvas.dither), len(_SKY) - 1).astype(np.int64)
    canvas.paint(np.ones_like(canvas.bright), np.array(_SKY)[shade], bright=False)
    rng = np.random.default_rng(12)  # the same stars for every seed
    for u, v, big in zip(rng.random(70), rng.random(70) * 0.5, rng.random(70), strict=True):
        x, y = int(u * canvas.width), int(v * canvas.height)
        star = (canvas.x == x) & (canvas.y == y)
        if big > 0.85 and canvas.width >= 100:
            star |= (abs(canvas.x - x) + abs(canvas.y - y)) <= 1
        canvas.paint(star, _STAR)
    disc = np.hypot(canvas.u - 0.15, (canvas.v - 0.15) * 0.6) < 0.055
    bite = np.hypot(canvas.u - 0.172, (canvas.v - 0.128) * 0.6) < 0.048
    canvas.paint(disc & ~bite, _MOON)


def _draw_sea(canvas: Canvas) -> None:
    sea = canvas.v > 0.72
    depth = (canvas.v - 0.72) / 0.28 * (len(_SEA) - 1)
    shade = np.clip(np.floor(depth + canvas.dither), 0, len(_SEA) - 1).astype(np.int64)
    canvas.paint(sea, np.array(_SEA)[shade], bright=False)
    canvas.paint(sea & (canvas.v <= 0.72 + 1.01 / canvas.height), _FOAM)
    row = np.floor((canvas.v - 0.72) * 25).astype(np.int64)
    swell = np.sin(canvas.u * 46 + row * 2.4) + np.sin(canvas.u * 17 - row * 1.7)
    first = np.floor((canvas.v - 0.72 - 1 / canvas.height) * 25).astype(np.int64) != row
    canvas.paint(sea & first & (swell > 1.05), _FOAM)


def _draw_beam(canvas: Canvas) -> None:
    """Draw two cones of light that fade with distance."""
    across, down = canvas.u - 0.76, (canvas.v - 0.23) * 0.6
    reach = np.hypot(across, down)
    angle = np.arctan2(down - across * -0.13, np.abs(across) + 1e-9)
    for side, width in ((across < 0, 0.13), (across > 0, 0.16)):
        strength = (1 - np.abs(angle) / width) * np.clip(1.15 - reach / 0.75, 0, 1)
        lit = side & (np.abs(angle) < width) & (canvas.v < 0.72)
        level = np.clip(np.floor((1 - strength) * 2.2 + canvas.dither), 0, 3).astype(np.int64)
        colors = np.array([*_LIGHT, 0])[level]
        canvas.paint(lit & (level < 3) & (strength + canvas.dither > 0.75), colors)


def _draw_island(canvas: Canvas) -> None:
    top = 0.86 - 0.13 * np.clip(1 - ((canvas.u - 0.78) / 0.19) ** 2, 0, 1)
    top += 0.012 * np.sin(canvas.u * 70) + 0.01 * np.sin(canvas.u * 151)
    inside = (np.abs(canvas.u - 0.78) < 0.2) & (canvas.v > top) & (canvas.v < 0.9)
    canvas.paint(inside, _ROCK)
    canvas.paint(inside & (canvas.v < top + 1.6 / canvas.height), _ROCK_EDGE)


def _draw_tower(canvas: Canvas) -> None:
    foot, gallery, half = 0.76, 0.31, 0.021 + 0.019 * (canvas.v - 0.31) / 0.45
    off = canvas.u - 0.76
    wall = (np.abs(off) < half) & (canvas.v > gallery) & (canvas.v < foot)
    stripe = np.floor((canvas.v - gallery) / (foot - gallery) * 6).astype(np.int64) % 2 == 1
    canvas.paint(wall, np.where(stripe, _WHITE, _RED))
    canvas.paint(wall & stripe & (off > half * 0.45), _SHADE)
    canvas.paint(wall & (np.abs(np.abs(off) - half) < 0.6 / canvas.width), _DARK)
    canvas.paint((np.abs(off) < 0.011) & (canvas.v > 0.69) & (canvas.v < foot), _DARK)
    canvas.paint((np.abs(off) < 0.034) & (canvas.v > 0.285) & (canvas.v < gallery), _DARK)
    canvas.paint((np.abs(off) < 0.019) & (canvas.v > 0.19) & (canvas.v < 0.285), _LIGHT[0])
    post = np.abs(np.abs(off) - 0.019) < 0.55 / canvas.width
    canvas.paint(post & (canvas.v > 0.19) & (canvas.v < 0.285), _DARK)
    roof = (np.abs(off) < 0.03 * (canvas.v - 0.11) / 0.08) & (canvas.v > 0.11) & (canvas.v < 0.19)
    canvas.paint(roof, _RED)


def _draw_boat(canvas: Canvas) -> None:
    across, up = canvas.u - 0.34, 0.745 - canvas.v
    hull = (up > -0.02) & (up < 0.012) & (np.abs(across) < 0.026 + 0.4 * up)
    canvas.paint(hull, _DARK)
    sail = (up > 0.018) & (up < 0.12) & (across > -0.002) & (across < 0.024 * (1 - up / 0.12))
    jib = (up > 0.018) & (up < 0.10) & (across < -0.005) & (across > -0.02 * (1 - up / 0.10))
    canvas.paint(sail | jib, _WHITE)


def _draw_word(canvas: Canvas) -> None:
    """Write the word in a pixel font, with a shadow."""
    scale = max(1, canvas.width // 62)
    left, top = math.ceil(canvas.width * 0.05), math.ceil(canvas.height * 0.79)
    if top + 7 * scale >= canvas.height - 1:
        top = canvas.height - 7 * scale - 2
    for color, shift in ((_LETTER_SHADE, max(1, scale // 2)), (_LETTER, 0)):
        for position, letter in enumerate("beacon"):
            rows = np.array([[bit == "1" for bit in row] for row in _FONT[letter].split()])
            block = np.kron(rows, np.ones((scale, scale), np.bool_))
            y, x = top + shift, left + shift + position * 6 * scale
            mask = np.zeros_like(canvas.bright)
            target = mask[y : y + block.shape[0], x : x + block.shape[1]]
            target |= block[: target.shape[0], : target.shape[1]]
            canvas.paint(mask, color)
