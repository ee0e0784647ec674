"""Animations of the history of the wall."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.errors import UsageError, require_package
from beaconframes.frames import is_simulated
from beaconframes.progress import show_elapsed
from beaconframes.wall.animation import Animation, DateStrip, FrameChange
from beaconframes.wall.animation_formats import write_gif, write_png
from beaconframes.wall.frame_times import date_frames, find_frame_times
from beaconframes.wall.images import choose_scale, parse_background
from beaconframes.wall.pixel_writes import SIZE, check_region, find_region, read_writes
from beaconframes.wall.png_file import check_ending, describe_data, write_atomically
from beaconframes.wall.video_formats import VIDEOS, write_video

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.pixel_writes import PixelWrites, Region, RegionChoice

_WRITERS: dict[str, Callable[[Animation, Path], None]] = {
    ".gif": write_gif,
    ".png": write_png,
    **{ending: partial(write_video, ending=ending) for ending in VIDEOS},
}
_WHITE = 0xFFFFFF
_LONGEST = 65_535  # Pixels of a side; GIF has no more.


@show_elapsed
def timelapse(
    frame: IntoFrame,
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    frames: int | None = None,
    every: int | str | timedelta | None = None,
    fps: float | None = None,
    hold: float = 2,
    dates: bool = True,
    region: RegionChoice = None,
    scale: int | None = None,
    background: str | None = None,
    chain: str | None = None,
    simulated: bool | None = None,
) -> Path:
    """Write an animation of the wall's history to a file, atomically, and return its path.

    The extension chooses the format. Every frame of a GIF or an animated PNG is exact to the pixel,
    and the file contains only the changes between frames. MP4 and WebM are for places that take
    only videos, and need the extra ``video``. They are compressed with loss: colours differ by
    little, and edges are soft if *scale* is odd.

    Parameters
    ----------
    frame
        Result of ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)``, in any order.
    path
        A name that ends in .gif, .png, .mp4 or .webm.
    seconds
        Length of the animation, *hold* included. Default: 10, or more for many frames.
    frames
        Number of frames, of equally many slots each. Default, without *every*: 20 per second.
    every
        Instead of *frames*, the length of one frame: a number of slots (``7200``), or a time
        (``"1d"``, ``"1w"``, ``"1mo"``, in UTC, or a timedelta).
    fps
        Frames per second, up to 50, instead of *seconds* or of the number of frames.
    hold
        Seconds for which the last frame is shown before the animation starts again.
    dates
        Whether a strip below the wall has the date of the last write that a frame shows. A picture
        that is too narrow for the text has none.
    region, scale, background
        As in ``save``: by default, all frames show the area that is painted in the last one, and
        fill a screen; the scale of videos is even. Unpainted pixels are transparent, and white in
        videos.
    chain, simulated
        As in ``save``: metadata of the file, besides the region, the scale and the slots. Dates of
        a simulated wall say that it is one.
    """
    target = Path(path)
    check_ending(target, _WRITERS)
    ending = target.suffix.lower()
    if ending in VIDEOS:
        require_package("av", "a video", "'beaconframes[video]'")
    check_region(region)
    unpainted = parse_background(background)
    writes = read_writes(frame, times=dates or isinstance(every, str | timedelta))
    shown = find_frame_times(
        writes, frames=frames, every=every, seconds=seconds, fps=fps, hold=hold
    )
    corners = find_region(region, writes.place % SIZE, writes.place // SIZE)
    width, height = corners[2] - corners[0] + 1, corners[3] - corners[1] + 1
    chosen = choose_scale(width, height, scale)
    if scale is None and ending in VIDEOS:
        # Videos have one colour for two by two pixels.
        chosen = max(2, chosen // 2 * 2)
    if max(width, height) * chosen > _LONGEST:
        raise UsageError(
            f"scale={scale!r} makes a side longer than {_LONGEST:,} pixels",
            hint="Use a smaller scale.",
        )
    paper = unpainted >> 8 if unpainted else _WHITE
    labels, strip = [""] * len(shown.stops), None
    if dates:
        is_marked = is_simulated(frame) if simulated is None else simulated
        mark = ", simulated" if is_marked else ""
        labels = [text and text + mark for text in date_frames(writes, shown.stops)]
        strip = DateStrip(width * chosen, paper)
        if not strip.has_room(labels[-1]):
            strip = None
    values = pl.Series(writes.value).unique().to_numpy().astype(np.int64)
    animation = Animation(
        width=width,
        height=height,
        scale=chosen,
        delays=shown.delays,
        changes=_build_changes(writes, shown.stops, labels, corners, unpainted),
        colours=np.unique(np.append(values, unpainted >> 8) if unpainted else values),
        entries=describe_data(writes.span | {"region": corners, "scale": chosen}, chain, simulated),
        rate=shown.rate,
        paper=paper,
        strip=strip,
    )
    with write_atomically(target) as part:
        _WRITERS[ending](animation, part)
    return target


def _build_changes(
    writes: PixelWrites, stops: list[int], labels: list[str], region: Region, unpainted: int
) -> Iterator[FrameChange]:
    """Yield for each frame the changes in the region, in their bounding rectangle."""
    x0, y0, x1, y1 = region
    current = np.full(SIZE * SIZE, -1)
    for (start, stop), label in zip(pairwise([0, *stops]), labels, strict=True):
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
            label=label,
        )
