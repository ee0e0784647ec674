"""What pictures of the graffiti wall cost, beside what a user would do with numpy and Pillow.

Run: ``python benchmarks/wall.py``. A million writes to 1000 x 1000 pixels: crews paint pictures of
their own over each other, most of them row by row, some in random order. The ratios count; CPU
seconds depend on the machine.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from PIL import Image

from beaconframes import wall

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGES = 1_000_000
FRAMES = 300
ROUNDS = 9


def painted(at_random: float) -> pl.DataFrame:
    """Return the writes, oldest first; a share of the crews paints in random order."""
    rng = np.random.default_rng(5)
    palette = np.array([f"{colour:06x}" for colour in rng.integers(0, 1 << 24, 96)])
    crews = []
    left = CHANGES
    while left:
        width, height = rng.integers(60, 260, 2)
        x0, y0 = rng.integers(0, 1000 - width), rng.integers(0, 1000 - height)
        count = min(left, int(width * height))
        order = rng.permutation(width * height) if rng.random() < at_random else np.arange(count)
        y, x = np.divmod(order[:count], width)
        disc = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 3) ** 2
        colour = rng.integers(0, 96, 6)[((3 * x + 5 * y) // rng.integers(10, 40) + disc) % 6]
        when = rng.random() + np.sort(rng.random(count)) * rng.uniform(0.02, 0.3)
        crews.append((x + x0, y + y0, colour, when))
        left -= count
    x, y, colour, when = (np.concatenate(part) for part in zip(*crews, strict=True))
    order = np.argsort(when, kind="stable")
    return pl.DataFrame(
        {
            "slot": np.arange(CHANGES),
            "x": x[order],
            "y": y[order],
            "color": palette[colour[order]],
        }
    )


def scattered(frame: pl.DataFrame, pixels: np.ndarray) -> np.ndarray:
    """Let the writes fall on an RGB array as they come."""
    value = frame["color"].str.to_integer(base=16).to_numpy()
    rgb = np.stack([value >> 16, value >> 8 & 255, value & 255], axis=-1)
    pixels[frame["y"].to_numpy(), frame["x"].to_numpy()] = rgb
    return pixels


def users_picture(frame: pl.DataFrame, path: Path) -> None:
    """Write a PNG as one does: an RGB array, and Pillow."""
    Image.fromarray(scattered(frame, np.zeros((1000, 1000, 3), np.uint8))).save(path)


def users_film(frame: pl.DataFrame, path: Path) -> None:
    """Write a GIF as one does: whole RGB frames, and Pillow."""
    pixels = np.zeros((1000, 1000, 3), np.uint8)
    each = -(-CHANGES // FRAMES)
    pictures = [Image.fromarray(scattered(part, pixels).copy()) for part in frame.iter_slices(each)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=50, loop=0)


def cpu(way: Callable[[], object]) -> float:
    """Return the CPU seconds that something takes."""
    start = time.process_time()
    way()
    return time.process_time() - start


def last_frame(path: Path) -> np.ndarray:
    """Return what is seen at the end."""
    with Image.open(path) as image:
        image.seek(getattr(image, "n_frames", 1) - 1)
        return np.asarray(image.convert("RGBA"))


def main() -> None:
    """Print CPU, sizes and ratios."""
    frame = painted(0.25)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.png", Path(folder) / "theirs.png"
        ways = {
            "ours": partial(wall.save, frame, ours),
            "theirs": partial(users_picture, frame, theirs),
        }
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, way in ways.items():
                seconds = cpu(way)
                if number:
                    spent[name].append(seconds)
        cost = {name: statistics.median(times) for name, times in spent.items()}
        told("PNG", cost["ours"], ours)
        told("  numpy and Pillow, RGB", cost["theirs"], theirs)
        print(f"  ratio {cost['ours'] / cost['theirs']:.2f}")
        expected = np.asarray(wall.render(frame))

        seconds = {}
        for form in ("gif", "png"):
            path = Path(folder) / f"film.{form}"
            seconds[form] = cpu(partial(wall.timelapse, frame, path, frames=FRAMES))
            if not np.array_equal(expected, last_frame(path)):
                raise SystemExit(f"the last frame of {path.name} is not the wall")
            told(f"{FRAMES} frames, {form.upper()}, last one exact", seconds[form], path)
        path = Path(folder) / "theirs.gif"
        theirs_seconds = cpu(partial(users_film, frame, path))
        told("  numpy and Pillow, RGB frames, GIF", theirs_seconds, path)
        for form, own in seconds.items():
            print(f"  {form.upper()}: ratio {own / theirs_seconds:.3f}")
        for share, words in ((0.0, "all crews row by row"), (1.0, "all crews at random")):
            frame = painted(share)
            path = Path(folder) / "other.gif"
            told(words, cpu(partial(wall.timelapse, frame, path, frames=FRAMES)), path)


def told(name: str, seconds: float, path: Path) -> None:
    """Print one line."""
    print(f"{name:<36}{seconds * 1e3:>9,.0f} ms{path.stat().st_size:>12,} bytes")


if __name__ == "__main__":
    main()
