"""The plan of a picture: what differs from the wall, in which order to paint it, its progress."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from beaconframes.frames import check_choice, return_like, to_polars
from beaconframes.wall.frame_times import find_periods
from beaconframes.wall.pixel_writes import SIZE, read_writes
from beaconframes.wall.png_file import write_atomically
from beaconframes.wall.target_picture import open_target

if TYPE_CHECKING:
    import os
    from datetime import timedelta

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.wall.target_picture import Target, TargetPicture

Form: TypeAlias = Literal["long", "short"]
Order: TypeAlias = Literal["center", "rows", "random"]

_FORMS = {"long": "graffitiwall:{}:{}:#{:06x}", "short": "gw:{:03}{:03}{:06x}"}


def plan(
    frame: IntoFrameT,
    target: Target,
    *,
    at: tuple[int, int] | None = None,
    width: int | None = None,
    form: Form = "long",
    order: Order = "center",
) -> IntoFrameT:
    """Plan a picture on the wall. One row per pixel of the picture, in the order to paint them.

    The wall takes every colour of 24 bits, but no transparency: pixels with an opacity below one
    half are left out, others are painted as if opaque.

    Pictures of the wall, made by ``render`` and ``save``, contain their position and scale: they
    need neither *at* nor *width*. The default of *at* for others is ``(0, 0)``.

    ``painted`` is the present colour of a pixel, null for unpainted, and ``color`` that of the
    picture. ``is_right`` is whether they are equal. ``graffiti`` is the text for a block:
    ``graffitiwall:x:y:#rrggbb``, or with ``form="short"`` ``gw:xxxyyyrrggbb``, which leaves more of
    the 32 bytes for other text. Pixels that are right come last.

    The *order* is ``"center"`` (from the middle outwards), ``"rows"``, or ``"random"``, in which
    the whole picture appears early. It is the same every time, also when a part is painted.

    Parameters
    ----------
    frame
        The present wall: ``bf.load_graffiti_wall(since=0)``.
    target
        An image, or the path of one; or a frame, such as the wall until an earlier day, whose
        unpainted pixels are left out.
    at
        Upper left corner of the picture.
    width
        Resize the picture to this width.
    form
        Form of the graffiti; the short one leaves room for other text.
    order
        Order of the pixels.
    """
    check_choice("order", order, get_args(Order))
    pixels = _compare(frame, open_target(target, at, width), form)
    ranks = {
        "rows": pl.int_range(pl.len()),
        "center": sum((pl.col(axis) - pl.mean(axis)) ** 2 for axis in ("x", "y")),
        "random": pl.int_range(pl.len()).shuffle(seed=0),
    }
    return return_like(
        pixels.with_columns(rank=ranks[order])
        .sort("is_right", "rank", maintain_order=True)
        .drop("rank"),
        frame,
    )


def diff(
    frame: IntoFrameT,
    target: Target,
    *,
    at: tuple[int, int] | None = None,
    width: int | None = None,
    form: Form = "long",
) -> IntoFrameT:
    """List the pixels that differ from a target picture. One row per differing pixel.

    The arguments and columns are those of ``plan``, without ``is_right``. Rows are sorted by ``y``,
    ``x``.
    """
    pixels = _compare(frame, open_target(target, at, width), form)
    return return_like(pixels.filter(~pl.col("is_right")).drop("is_right"), frame)


def save_graffiti(plan: IntoFrame, path: str | os.PathLike[str]) -> Path:
    """Write the graffiti of the pixels to paint to a file, atomically, and return its path.

    Parameters
    ----------
    plan
        The result of ``bf.wall.plan(...)``.
    path
        A text file with one graffiti per line, or a graffiti file of Prysm (``.yaml``), which takes
        one after the other.
    """
    target = Path(path)
    texts = to_polars(plan).filter(is_right=False)["graffiti"].to_list()
    if target.suffix.lower() in {".yaml", ".yml"}:
        texts = ["ordered:", *(f'- "{text}"' for text in texts)]
    with write_atomically(target) as part:
        part.write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
    return target


def progress(
    frame: IntoFrameT,
    target: Target,
    *,
    at: tuple[int, int] | None = None,
    width: int | None = None,
    every: str | timedelta = "1d",
) -> IntoFrameT:
    """Follow a picture over time. One row per period of *every*, such as ``"12h"`` or ``"1w"``.

    *frame* has every write: ``bf.load_graffiti_wall(since=0)``. The other arguments are those of
    ``plan``. ``right`` is the number of pixels of the picture that are right at the end of the
    period which starts at ``time``, in UTC, and ``share`` their share of the picture. ``painted``
    is the number of writes in the period that made a pixel right, and ``damaged`` of those that
    painted over a right pixel in another colour. The last period ends with the last write of
    *frame*.
    """
    picture = open_target(target, at, width)
    writes = read_writes(frame, times=True)
    starts, stops = find_periods(writes, every) if len(writes.slot) else (pl.Series([]), [])
    wanted = np.zeros((SIZE, SIZE), np.int64)
    wanted[picture.y, picture.x] = picture.value + 1
    index = np.flatnonzero(wanted.ravel()[writes.place])
    place = writes.place[index]
    rows = pl.DataFrame({"place": place, "right": wanted.ravel()[place] == writes.value[index] + 1})
    before = pl.col("right").shift().over("place").fill_null(value=False)
    period = np.searchsorted(stops, index, side="right")
    counts = {
        name: np.bincount(period[rows.select(made).to_series().to_numpy()], minlength=len(stops))
        for name, made in {
            "painted": pl.col("right") & ~before,
            "damaged": before & ~pl.col("right"),
        }.items()
    }
    right = np.cumsum(counts["painted"] - counts["damaged"])
    return return_like(
        pl.DataFrame(
            {"time": starts, "right": right, "share": right / max(len(picture.value), 1), **counts},
            schema_overrides={"time": pl.Datetime("us", "UTC")},
        ),
        frame,
    )


def _compare(frame: IntoFrame, picture: TargetPicture, form: Form) -> pl.DataFrame:
    """Compare the wall with a picture. One row per pixel of the picture, row by row."""
    check_choice("form", form, _FORMS)
    painted = read_writes(frame).paint()[picture.y, picture.x]
    rows = [*zip(picture.x.tolist(), picture.y.tolist(), picture.value.tolist(), strict=True)]
    return pl.DataFrame(
        {
            "x": picture.x,
            "y": picture.y,
            "painted": [f"{value - 1:06x}" if value else None for value in painted.tolist()],
            "color": [f"{row[2]:06x}" for row in rows],
            "is_right": painted == picture.value + 1,
            "graffiti": [_FORMS[form].format(*row) for row in rows],
        },
        # Without a pixel, there is no text.
        schema_overrides=dict.fromkeys(("painted", "color", "graffiti"), pl.String),
    )
