"""Animations of the history of the wall."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from beaconframes.errors import UsageError
from beaconframes.progress import show_elapsed
from beaconframes.wall.animation import Animation, FrameChange
from beaconframes.wall.animation_formats import choose_writer
from beaconframes.wall.images import choose_scale, parse_background
from beaconframes.wall.pixel_writes import SIZE, check_region, find_region, read_writes
from beaconframes.wall.png_file import describe_data, write_atomically

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.pixel_writes import Ints, PixelWrites, Region, RegionChoice

_FRAMES = 200
_MOST = 5000
_LONGEST = 65_535  # Pixels of a side; GIF has no more.


@show_elapsed
def timelapse(
    frame: IntoFrame,
    path: str | os.PathLike[str],
    *,
    frames: int | None = None,
    every: int | str | timedelta | None = None,
    fps: float = 20,
    hold: float = 2,
    region: RegionChoice = None,
    scale: int | None = None,
    background: str | None = None,
    chain: str | None = None,
    simulated: bool | None = None,
) -> Path:
    """Write an animation of the wall's history to a file, atomically, and return its path.

    The extension chooses the format: GIF or animated PNG. Every frame is exact to the pixel. The
    file contains only the changes between frames, so it is small, and writing it needs little
    memory.

    Parameters
    ----------
    frame
        Result of ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)``, in any order.
    path
        A name that ends in .gif or .png.
    frames
        Number of frames, of equally many slots each. Default, without *every*: 200.
    every
        Instead of *frames*, the length of one frame: a number of slots (``7200``), or a time
        (``"1d"``, ``"1w"``, ``"1mo"``, in UTC, or a timedelta).
    fps
        Frames per second, up to 50.
    hold
        Seconds for which the last frame is shown before the animation starts again.
    region, scale, background
        As in ``save``: by default, all frames show the area that is painted in the last one, and
        fill a screen. Unpainted pixels are transparent.
    chain, simulated
        As in ``save``: metadata of the file, besides the region, the scale and the slots.
    """
    target = Path(path)
    write = choose_writer(target)
    _check_number("fps", fps, 0.1, 50)
    _check_number("hold", hold, 0, 60)
    check_region(region)
    unpainted = parse_background(background)
    writes = read_writes(frame, times=isinstance(every, str | timedelta))
    corners = find_region(region, writes.place % SIZE, writes.place // SIZE)
    width, height = corners[2] - corners[0] + 1, corners[3] - corners[1] + 1
    scale = choose_scale(width, height, scale)
    if max(width, height) * scale > _LONGEST:
        raise UsageError(
            f"scale={scale!r} makes a side longer than {_LONGEST:,} pixels",
            hint="Use a smaller scale.",
        )
    # A frame without a write extends the delay of the frame before.
    merged = [
        (stop, sum(1 for _ in same)) for stop, same in groupby(_find_stops(writes, frames, every))
    ]
    tick = round(100 / fps) * 10  # GIF counts in hundredths of a second.
    shown = [tick * count for _, count in merged]
    shown[-1] += round(100 * hold) * 10
    animation = Animation(
        width=width,
        height=height,
        scale=scale,
        delays=shown,
        changes=_build_changes(writes, [stop for stop, _ in merged], corners, unpainted),
        colours=_find_colours(writes, unpainted),
        entries=describe_data(writes.span | {"region": corners, "scale": scale}, chain, simulated),
    )
    with write_atomically(target) as part:
        write(animation, part)
    return target


def _find_colours(writes: PixelWrites, unpainted: int) -> Ints:
    """Return every colour that occurs, sorted."""
    values = pl.Series(writes.value).unique().to_numpy().astype(np.int64)
    return np.unique(np.append(values, unpainted >> 8) if unpainted else values)


def _check_number(name: str, value: float, least: float, most: float) -> None:
    """Raise unless a number is within its limits."""
    if type(value) not in {int, float} or not least <= value <= most:
        raise UsageError(
            f"{name}={value!r} is out of range", hint=f"Pass a number from {least} to {most}."
        )


def _find_stops(
    writes: PixelWrites, frames: int | None, every: int | str | timedelta | None
) -> list[int]:
    """Return for each frame how many of the writes it shows."""
    if frames is not None and every is not None:
        raise UsageError("frames and every both set the number of frames", hint="Pass only one.")
    if every is None:
        count = _FRAMES if frames is None else frames
        _check_count("frames", count, most=_MOST)
    elif isinstance(every, int):
        _check_count("every", every)
    if not len(writes.slot):
        return [0]
    first, last = int(writes.slot[0]), int(writes.slot[-1])
    if every is None:
        ends = first + (last - first + 1) * np.arange(1, count + 1) // count
    elif isinstance(every, int):
        _check_frame_count((last - first) // every, f"every={every!r}")
        ends = (np.arange(first // every, last // every + 1) + 1) * every
    else:
        return _find_stops_by_time(writes, every)
    return [int(stop) for stop in np.searchsorted(writes.slot, ends)]


def _find_stops_by_time(writes: PixelWrites, every: str | timedelta) -> list[int]:
    """Return for each frame of a fixed duration how many of the writes it shows."""
    times = pl.Series(writes.times)
    if times.null_count() or not times.is_sorted():
        raise UsageError(
            "the times of the frame are not in the order of its slots",
            hint="Keep the column time as bf.load_graffiti_wall(...) returns it.",
        )
    ends = times[[0, -1]]
    try:
        start = ends.dt.truncate(every)[0]
        following = pl.Series([start]).dt.offset_by(every if isinstance(every, str) else "0d")[0]
        step = following - start if isinstance(every, str) else every
        _check_frame_count((ends[1] - start) // step, f"every={every!r}")
        starts = pl.datetime_range(start, ends[1], every, eager=True, time_unit="us")
    except (PolarsError, ZeroDivisionError, OverflowError):
        raise UsageError(
            f"every={every!r} is not a length of time",
            hint='Pass "12h", "1d", "1w", "1mo" or a timedelta; an integer counts slots.',
        ) from None
    stops = times.search_sorted(starts[1:], side="left").to_list()
    return [*stops, len(times)]


def _check_count(name: str, value: object, *, most: int | None = None) -> None:
    """Raise unless a value is a count within its limits."""
    if type(value) is not int or value < 1 or (most is not None and value > most):
        bounds = f"from 1 to {most}" if most else "from 1"
        raise UsageError(f"{name}={value!r} is out of range", hint=f"Pass an integer {bounds}.")


def _check_frame_count(count: int, argument: str) -> None:
    """Raise if there are more than the maximum number of frames."""
    if not 0 <= count < _MOST:
        raise UsageError(
            f"{argument} makes {count:,} frames, more than the maximum of {_MOST:,}",
            hint="Use longer frames.",
        )


def _build_changes(
    writes: PixelWrites, stops: list[int], region: Region, unpainted: int
) -> Iterator[FrameChange]:
    """Yield for each frame the changes in the region, in their bounding rectangle."""
    x0, y0, x1, y1 = region
    current = np.full(SIZE * SIZE, -1)
    for start, stop in pairwise([0, *stops]):
        place, first = np.unique(writes.place[start:stop][::-1], return_index=True)
        value = writes.value[stop - 1 - first].astype(np.int64)
        if start == 0 and unpainted:
            background = np.full(SIZE * SIZE, unpainted >> 8)
            background[place] = value
            place, value = np.arange(SIZE * SIZE), background
        y, x = np.divmod(place, SIZE)
        changed = (current[place] != value) & (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
        x, y, value = x[changed], y[changed], value[changed]
        current[place[changed]] = value
        left, top, right, bottom = region
        if start:
            # A frame without a change still needs one pixel.
            left, right = (x.min(), x.max()) if len(x) else (x0, x0)
            top, bottom = (y.min(), y.max()) if len(y) else (y0, y0)
        yield FrameChange(
            left=int(left) - x0,
            top=int(top) - y0,
            width=int(right - left) + 1,
            height=int(bottom - top) + 1,
            x=x - left,
            y=y - top,
            value=value,
        )
