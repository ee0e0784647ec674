"""The graffiti wall: a picture, and the many hands that paint it, one pixel a block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from beaconframes.simulator.picture import draw

if TYPE_CHECKING:
    from beaconframes.simulator.preset import Bools, Floats, Ints

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
    # Close to painting, but no paint: outside the wall, and a digit short.
    "graffitiwall:1200:40:#ff0000",
    "gw:50060efefef",
)
_CROWD: Final = 0.72  # share of blocks that paint
_NIGHT_SHIFT: Final = 0.88  # towards the end
_NIGHT_SLOTS: Final = 9_900  # less than what the wall shows when nobody says since when
_VANDALS: Final = 0.03
_COLUMNS: Final = ("slot", "x", "y", "color", "validator_index")


@dataclass
class Stroke:
    """One pixel to be painted."""

    x: int
    y: int
    color: str

    def text(self, hand: int) -> str:
        """Return the graffiti that paints it, as one of three kinds of painters writes it."""
        if hand == 0:
            return f"graffitiwall:{self.x}:{self.y}:#{self.color}"
        short = f"gw:{self.x:03}{self.y:03}{self.color.upper()}"
        return short if hand == 1 else f"night watch ({short})"


class Mural:
    """Says what each block writes: a stroke of the picture, or what clients write."""

    def __init__(self, seed: int, first_slot: int, slots: int) -> None:
        """Fit the picture to the number of slots, so that it can be finished."""
        self._rng = np.random.default_rng([seed, 4])
        night = min(_NIGHT_SLOTS, slots // 4)
        self._night_begins = first_slot + slots - night
        pixels = (slots - night) * _CROWD * 0.96 / (1 + 2 * _VANDALS)
        self.width = max(25, min(200, int(math.sqrt(pixels * 5 / 3))))
        self.height = self.width * 3 // 5
        self.left, self.top = (WALL - self.width) // 2, (WALL - self.height) // 2
        picture, bright = draw(self.width, self.height)
        self._days = self._day_strokes(picture)
        self._nights = self._strokes(picture, self._rng.permutation(np.argwhere(bright)))
        self._painted: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def write(self, slots: Ints, proposers: Ints, paints: Bools) -> list[str]:
        """Return the graffiti of blocks; only those that may paint do."""
        chances = self._rng.random(len(slots))
        client = self._rng.integers(0, len(CLIENTS), len(slots))
        texts = []
        for slot, proposer, may, chance, other in zip(
            slots.tolist(), proposers.tolist(), paints.tolist(), chances, client, strict=True
        ):
            night = slot >= self._night_begins
            todo = self._nights if night and self._nights else self._days
            if may and todo and chance < (_NIGHT_SHIFT if night else _CROWD):
                texts.append(self._paint(todo.pop(), slot, proposer))
            else:
                # Most operators run one client, and now and then try another.
                usual = proposer // 24 % (len(CLIENTS) - 4)
                texts.append(CLIENTS[usual if chance < 0.99 else int(other)])
        return texts

    def taken(self) -> dict[str, list[Any]]:
        """Return the columns of what was painted since this was last asked."""
        painted, self._painted = self._painted, {name: [] for name in _COLUMNS}
        return painted

    def _paint(self, stroke: Stroke, slot: int, proposer: int) -> str:
        hand = proposer % 7 % 3
        color = stroke.color.upper() if hand else stroke.color
        for name, value in {
            "slot": slot,
            "x": stroke.x,
            "y": stroke.y,
            "color": color,
            "validator_index": proposer,
        }.items():
            self._painted[name].append(value)
        return stroke.text(hand)

    def _strokes(self, picture: Ints, pixels: Ints) -> list[Stroke]:
        return [
            Stroke(self.left + x, self.top + y, f"{picture[y, x]:06x}") for y, x in pixels.tolist()
        ]

    def _day_strokes(self, picture: Ints) -> list[Stroke]:
        """Return the picture in random order, with vandals' pixels that are painted over later."""
        rng = self._rng
        pixels = np.argwhere(np.ones_like(picture, np.bool_))
        base = rng.random(len(pixels))
        spoiled = rng.choice(len(pixels), int(len(pixels) * _VANDALS), replace=False)
        harm: Floats = base[spoiled] + (0.9 - base[spoiled]) * rng.random(len(spoiled))
        repair = harm + (1 - harm) * rng.random(len(spoiled))
        loud = np.array([0xFF00AA, 0x00FF66, 0xFFFFFF, 0xFF6600])[rng.integers(0, 4, len(spoiled))]
        good = picture[pixels[:, 0], pixels[:, 1]]
        when = np.concatenate([base, harm, repair])
        where = np.concatenate([pixels, pixels[spoiled], pixels[spoiled]])
        color = np.concatenate([good, loud, good[spoiled]])
        # Backwards, because strokes are taken from the end.
        order = np.argsort(when, kind="stable")[::-1]
        return [
            Stroke(self.left + x, self.top + y, f"{c:06x}")
            for (y, x), c in zip(where[order].tolist(), color[order].tolist(), strict=True)
        ]
