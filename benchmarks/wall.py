"""CPU time of pictures of the graffiti wall, compared with numpy and Pillow.

Run: ``python benchmarks/wall.py``. A million writes to 1000 x 1000 pixels form overlapping
pictures; most are painted row by row, some in random order. Read the ratios: CPU seconds depend on
the machine.
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
from sizes import choose

from beaconframes import wall

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGES = choose(1_000_000, 20_000)
FRAMES = choose(300, 5)
ROUNDS = choose(9, 2)


def generate_writes(random_share: float) -> pl.DataFrame:
    """Return the writes, oldest first; *random_share* of the pictures is in random order."""
    rng = np.random.default_rng(5)
    palette = np.array([f"{colour:06x}" for colour in rng.integers(0, 1 << 24, 96)])
    pictures = []
    left = CHANGES
    while left:
        width, height = rng.integers(60, 260, 2)
        x0, y0 = rng.integers(0, 1000 - width), rng.integers(0, 1000 - height)
        count = min(left, int(width * height))
        order = rng.permutation(width * height) if rng.random() < random_share else np.arange(count)
        y, x = np.divmod(order[:count], width)
        disc = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 3) ** 2
        colour = rng.integers(0, 96, 6)[((3 * x + 5 * y) // rng.integers(10, 40) + disc) % 6]
        when = rng.random() + np.sort(rng.random(count)) * rng.uniform(0.02, 0.3)
        pictures.append((x + x0, y + y0, colour, when))
        left -= count
    x, y, colour, when = (np.concatenate(part) for part in zip(*pictures, strict=True))
    order = np.argsort(when, kind="stable")
    return pl.DataFrame(
        {
            "slot": np.arange(CHANGES),
            "x": x[order],
            "y": y[order],
            "color": palette[colour[order]],
        }
    )


def paint_array(frame: pl.DataFrame, pixels: np.ndarray) -> np.ndarray:
    """Write pixels to an RGB array in order."""
    value = frame["color"].str.to_integer(base=16).to_numpy()
    rgb = np.stack([value >> 16, value >> 8 & 255, value & 255], axis=-1)
    pixels[frame["y"].to_numpy(), frame["x"].to_numpy()] = rgb
    return pixels


def write_png_with_pillow(frame: pl.DataFrame, path: Path) -> None:
    """Write a PNG with an RGB array and Pillow."""
    Image.fromarray(paint_array(frame, np.zeros((1000, 1000, 3), np.uint8))).save(path)


def write_gif_with_pillow(frame: pl.DataFrame, path: Path) -> None:
    """Write a GIF with complete RGB frames and Pillow."""
    pixels = np.zeros((1000, 1000, 3), np.uint8)
    each = -(-CHANGES // FRAMES)
    pictures = [
        Image.fromarray(paint_array(part, pixels).copy()) for part in frame.iter_slices(each)
    ]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=50, loop=0)


def measure_cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of *work*."""
    start = time.process_time()
    work()
    return time.process_time() - start


def last_frame(path: Path) -> np.ndarray:
    """Return the last frame of an image file."""
    with Image.open(path) as image:
        image.seek(getattr(image, "n_frames", 1) - 1)
        return np.asarray(image.convert("RGBA"))


def main() -> None:
    """Print CPU, sizes and ratios."""
    frame = generate_writes(0.25)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.png", Path(folder) / "theirs.png"
        cases = {
            "ours": partial(wall.save, frame, ours),
            "theirs": partial(write_png_with_pillow, frame, theirs),
        }
        spent: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(ROUNDS + 1):
            for name, case in cases.items():
                seconds = measure_cpu(case)
                if number:
                    spent[name].append(seconds)
        cost = {name: statistics.median(times) for name, times in spent.items()}
        print_line("PNG", cost["ours"], ours)
        print_line("  numpy and Pillow, RGB", cost["theirs"], theirs)
        print(f"  ratio {cost['ours'] / cost['theirs']:.2f}")
        expected = np.asarray(wall.render(frame))

        seconds = {}
        for form in ("gif", "png"):
            path = Path(folder) / f"film.{form}"
            seconds[form] = measure_cpu(
                partial(wall.timelapse, frame, path, frames=FRAMES, dates=False)
            )
            if not np.array_equal(expected, last_frame(path)):
                raise SystemExit(f"the last frame of {path.name} is not the wall")
            print_line(f"{FRAMES} frames, {form.upper()}, last one exact", seconds[form], path)
        path = Path(folder) / "theirs.gif"
        theirs_seconds = measure_cpu(partial(write_gif_with_pillow, frame, path))
        print_line("  numpy and Pillow, RGB frames, GIF", theirs_seconds, path)
        for form, own in seconds.items():
            print(f"  {form.upper()}: ratio {own / theirs_seconds:.3f}")
        for share, words in ((0.0, "all row by row"), (1.0, "all in random order")):
            frame = generate_writes(share)
            path = Path(folder) / "other.gif"
            print_line(
                words,
                measure_cpu(partial(wall.timelapse, frame, path, frames=FRAMES, dates=False)),
                path,
            )


def print_line(name: str, seconds: float, path: Path) -> None:
    """Print one line of the table."""
    print(f"{name:<36}{seconds * 1e3:>9,.0f} ms{path.stat().st_size:>12,} bytes")


if __name__ == "__main__":
    main()
