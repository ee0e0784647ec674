"""The times of an animation: what its frames show, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from beaconframes.errors import UsageError
from beaconframes.frames import check_count

if TYPE_CHECKING:
    from beaconframes.wall.pixel_writes import PixelWrites

_SECONDS = 10
_RATE = 20  # Frames per second.
_FASTEST = 50  # Frames per second; browsers slow down shorter frames.
_MOST = 5000


@dataclass(frozen=True, eq=False)
class FrameTimes:
    """Which writes the frames show, and for how long. A frame without a write extends the last."""

    stops: list[int]
    """How many of the writes each frame shows."""
    delays: list[int]
    """In milliseconds."""
    rate: float
    """Frames per second."""


def find_frame_times(
    writes: PixelWrites,
    *,
    frames: int | None,
    every: int | str | timedelta | None,
    seconds: float | None,
    fps: float | None,
    hold: float,
) -> FrameTimes:
    """Find the frames and their rate: two of their number, the length and the rate are enough."""
    if frames is not None and every is not None:
        raise UsageError("frames and every both set the number of frames", hint="Pass only one.")
    is_counted = frames is not None or every is not None
    if is_counted and seconds is not None and fps is not None:
        raise UsageError(
            "seconds, fps and the number of frames contradict each other", hint="Pass only two."
        )
    history = _find_history(seconds, fps, hold)
    count = max(1, round(history * (fps or _RATE))) if frames is None else frames
    stops = _find_stops(writes, count, every)
    rate = fps if fps is not None and is_counted else len(stops) / history
    if rate > _FASTEST:
        if seconds is not None:
            raise UsageError(
                f"seconds={seconds!r} is too short for {len(stops):,} frames",
                hint=f"Pass fewer frames, or seconds={len(stops) / _FASTEST + hold:g} or more.",
            )
        rate = _FASTEST
    # Formats count in hundredths of a second; rounded ends add up to the length.
    ends = np.rint(np.arange(1, len(stops) + 1) * 100 / rate).astype(np.int64) * 10
    ends[-1] = round(100 * (len(stops) / rate + hold)) * 10
    last = dict(zip(stops, ends.tolist(), strict=True))
    return FrameTimes([*last], np.diff([0, *last.values()]).tolist(), rate)


def _find_history(seconds: float | None, fps: float | None, hold: float) -> float:
    """Return the length of the animation in seconds, without that of the last frame."""
    _check_number("hold", hold, 0, 60)
    if fps is not None:
        _check_number("fps", fps, 0.1, _FASTEST)
    if seconds is None:
        return max(_SECONDS - hold, 1)
    _check_number("seconds", seconds, 0.1, 600)
    if hold >= seconds:
        raise UsageError(
            f"hold={hold!r} leaves no time of seconds={seconds!r}",
            hint="Pass more seconds, or a shorter hold.",
        )
    return seconds - hold


def date_frames(writes: PixelWrites, stops: list[int]) -> list[str]:
    """Return the date of the last write that each frame shows; with the time for short frames."""
    times = _read_times(writes)
    shown = times.gather([stop - 1 for stop in stops if stop])
    step = shown.diff().median()
    is_daily = isinstance(step, timedelta) and step > timedelta(hours=23)
    texts = shown.dt.strftime("%Y-%m-%d" if is_daily else "%Y-%m-%d %H:%M UTC").to_list()
    return [""] * (len(stops) - len(texts)) + texts


def _read_times(writes: PixelWrites) -> pl.Series:
    """Return the times of the writes, which have the order of the slots."""
    times = pl.Series(writes.times)
    if times.null_count() or not times.is_sorted():
        raise UsageError(
            "the times of the frame are not in the order of its slots",
            hint="Keep the column time as bf.load_graffiti_wall(...) returns it.",
        )
    return times


def _check_number(name: str, value: float, least: float, most: float) -> None:
    if type(value) not in {int, float} or not least <= value <= most:
        raise UsageError(
            f"{name}={value!r} is out of range", hint=f"Pass a number from {least} to {most}."
        )


def _find_stops(writes: PixelWrites, frames: int, every: int | str | timedelta | None) -> list[int]:
    """Return for each frame how many of the writes it shows: *frames*, or one per *every*."""
    if every is None:
        check_count("frames", frames, _MOST)
    elif isinstance(every, int):
        check_count("every", every)
    if not len(writes.slot):
        return [0]
    first, last = int(writes.slot[0]), int(writes.slot[-1])
    if every is None:
        ends = first + (last - first + 1) * np.arange(1, frames + 1) // frames
    elif isinstance(every, int):
        _check_frame_count((last - first) // every, f"every={every!r}")
        ends = (np.arange(first // every, last // every + 1) + 1) * every
    else:
        return find_periods(writes, every)[1]
    return [int(stop) for stop in np.searchsorted(writes.slot, ends)]


def find_periods(writes: PixelWrites, every: str | timedelta) -> tuple[pl.Series, list[int]]:
    """Return the start of each period, and how many of the writes there are until its end."""
    times = _read_times(writes)
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
    return starts, [*stops, len(times)]


def _check_frame_count(count: int, argument: str) -> None:
    if not 0 <= count < _MOST:
        raise UsageError(
            f"{argument} makes {count:,} frames, more than the maximum of {_MOST:,}",
            hint="Use longer frames.",
        )
