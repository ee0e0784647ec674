"""The wall as it was painted: an animation."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from beaconframes.errors import UsageError
from beaconframes.wall.changes import SIZE, checked, read
from beaconframes.wall.files import about, whole
from beaconframes.wall.film import Film, Shot
from beaconframes.wall.movies import writer
from beaconframes.wall.painting import fits, solid

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.changes import Changes, Ints, Region

_FRAMES = 200
_MOST = 5000
_LONGEST = 16_383  # Pixels of a side; WebP has no more.


def timelapse(
    frame: IntoFrame,
    path: str | os.PathLike[str],
    *,
    frames: int | None = None,
    every: int | str | timedelta | None = None,
    fps: float = 20,
    hold: float = 2,
    region: Region | None = None,
    scale: int = 1,
    background: str | None = None,
    chain: str | None = None,
    simulated: bool | None = None,
) -> Path:
    """Write how the graffiti wall was painted, whole or not at all, and return the file's path.

    The end of the name chooses the form. GIF and (animated) PNG are the small ones: they hold only
    what changed from frame to frame, and writing them takes next to no memory. Like WebP they are
    exact to the pixel in every frame. MP4, which needs ``pip install "beaconframes[video]"``, blurs
    colours and has no transparency, but goes where only films go.

    Parameters
    ----------
    frame
        What ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)`` gives, in any order.
    path
        A name that ends in .gif, .png, .webp or .mp4.
    frames
        How many frames, of equally many slots each. Left out, and without *every*: 200.
    every
        Instead of *frames*, what one frame covers: so many slots (``7200``), or a time (``"1d"``,
        ``"1w"``, ``"1mo"``, in UTC, or a timedelta).
    fps
        Frames in a second, up to 50.
    hold
        Seconds for which the last frame stays before it begins anew.
    region, scale, background
        As in ``render``. What nobody painted is transparent, in MP4 black.
    chain, simulated
        As in ``save``: what the file tells about its data, beside the first and the last slot.
    """
    target = Path(path)
    write = writer(target)
    _within("fps", fps, 0.1, 50)
    _within("hold", hold, 0, 60)
    corners = checked(region)
    width, height = corners[2] - corners[0] + 1, corners[3] - corners[1] + 1
    fits(width, height, scale)
    if max(width, height) * scale > _LONGEST:
        raise UsageError(
            f"scale={scale!r} makes a side longer than {_LONGEST:,} pixels", hint="Take less."
        )
    unpainted = solid(background)
    changes = read(frame, times=isinstance(every, str | timedelta))
    # Frames without a write in them are the one before, shown for longer.
    merged = [
        (stop, sum(1 for _ in same)) for stop, same in groupby(_stops(changes, frames, every))
    ]
    tick = round(100 / fps) * 10  # GIF counts in hundredths of a second.
    shown = [tick * count for _, count in merged]
    shown[-1] += round(100 * hold) * 10
    film = Film(
        width=width,
        height=height,
        scale=scale,
        tick=tick,
        delays=shown,
        shots=_shots(changes, [stop for stop, _ in merged], corners, unpainted),
        colours=_colours(changes, unpainted),
        about=about(changes.span, chain, simulated),
    )
    with whole(target) as part:
        write(film, part)
    return target


def _colours(changes: Changes, unpainted: int) -> Ints:
    """Give every colour that occurs, in order."""
    values = pl.Series(changes.value).unique().to_numpy().astype(np.int64)
    return np.unique(np.append(values, unpainted >> 8) if unpainted else values)


def _within(name: str, value: float, least: float, most: float) -> None:
    """Refuse a number that is too small or too large."""
    if type(value) not in {int, float} or not least <= value <= most:
        raise UsageError(
            f"{name}={value!r} does not work", hint=f"Give a number from {least} to {most}."
        )


def _stops(changes: Changes, frames: int | None, every: int | str | timedelta | None) -> list[int]:
    """Tell of each frame how many of the changes it shows."""
    if frames is not None and every is not None:
        raise UsageError("frames and every both say how many frames there are", hint="Give one.")
    if every is None:
        count = _FRAMES if frames is None else frames
        _whole("frames", count, most=_MOST)
    elif isinstance(every, int):
        _whole("every", every)
    if not len(changes.slot):
        return [0]
    first, last = int(changes.slot[0]), int(changes.slot[-1])
    if every is None:
        ends = first + (last - first + 1) * np.arange(1, count + 1) // count
    elif isinstance(every, int):
        _few((last - first) // every, f"every={every!r}")
        ends = (np.arange(first // every, last // every + 1) + 1) * every
    else:
        return _stops_in_time(changes, every)
    return [int(stop) for stop in np.searchsorted(changes.slot, ends)]


def _stops_in_time(changes: Changes, every: str | timedelta) -> list[int]:
    """Tell the same where a frame covers a time."""
    times = pl.Series(changes.times)
    if times.null_count() or not times.is_sorted():
        raise UsageError(
            "the times of the frame do not follow its slots",
            hint="Keep the column time as bf.load_graffiti_wall(...) gives it.",
        )
    ends = times[[0, -1]]
    try:
        start = ends.dt.truncate(every)[0]
        following = pl.Series([start]).dt.offset_by(every if isinstance(every, str) else "0d")[0]
        step = following - start if isinstance(every, str) else every
        _few((ends[1] - start) // step, f"every={every!r}")
        starts = pl.datetime_range(start, ends[1], every, eager=True, time_unit="us")
    except (PolarsError, ZeroDivisionError, OverflowError):
        raise UsageError(
            f"every={every!r} is no length of time",
            hint='Give "12h", "1d", "1w", "1mo" or a timedelta; an integer counts slots.',
        ) from None
    stops = times.search_sorted(starts[1:], side="left").to_list()
    return [*stops, len(times)]


def _whole(name: str, value: object, *, most: int | None = None) -> None:
    """Refuse what is no count."""
    if type(value) is not int or value < 1 or (most is not None and value > most):
        upwards = f"from 1 to {most}" if most else "from 1 on"
        raise UsageError(f"{name}={value!r} does not work", hint=f"Give an integer {upwards}.")


def _few(count: int, argument: str) -> None:
    """Refuse more frames than anybody looks at."""
    if not 0 <= count < _MOST:
        raise UsageError(
            f"{argument} makes {count:,} frames, and {_MOST:,} are the most", hint="Take longer."
        )


def _shots(changes: Changes, stops: list[int], region: Region, unpainted: int) -> Iterator[Shot]:
    """Give for each frame what changed in the region, in the smallest rectangle around it."""
    x0, y0, x1, y1 = region
    now = np.full(SIZE * SIZE, -1)
    for start, stop in pairwise([0, *stops]):
        place, first = np.unique(changes.place[start:stop][::-1], return_index=True)
        value = changes.value[stop - 1 - first].astype(np.int64)
        if start == 0 and unpainted:
            whole = np.full(SIZE * SIZE, unpainted >> 8)
            whole[place] = value
            place, value = np.arange(SIZE * SIZE), whole
        y, x = np.divmod(place, SIZE)
        seen = (now[place] != value) & (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
        x, y, value = x[seen], y[seen], value[seen]
        now[place[seen]] = value
        left, top, right, bottom = region
        if start:
            # A frame in which nothing changes must have a pixel all the same.
            left, right = (x.min(), x.max()) if len(x) else (x0, x0)
            top, bottom = (y.min(), y.max()) if len(y) else (y0, y0)
        yield Shot(
            left=int(left) - x0,
            top=int(top) - y0,
            width=int(right - left) + 1,
            height=int(bottom - top) + 1,
            x=x - left,
            y=y - top,
            value=value,
        )
