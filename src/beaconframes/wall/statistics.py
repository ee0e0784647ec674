"""Measures of the wall: age of the paint, overwrites, and territory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import return_like
from beaconframes.wall.pixel_writes import check_region, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from narwhals.stable.v2.typing import IntoFrameT

    from beaconframes.wall.pixel_writes import RegionChoice

_PLACE = ("x", "y")


def age(frame: IntoFrameT, *, until: int | None = None, region: RegionChoice = None) -> IntoFrameT:
    """Compute the age of the paint. One row per painted pixel, row by row of the wall.

    *frame* is the result of ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)``.
    ``slot``, ``time``, ``color`` and ``validator_index`` are those of the last write to the pixel,
    and ``age_slots`` is the number of slots from that write to *until*. Later writes do not count.
    Default of *until*: the last slot of *frame*.
    """
    rows = _read_region(frame, None, "time", "validator_index")
    if until is not None and (type(until) is not int or until < 0):
        raise UsageError(f"until={until!r} is not a slot", hint="Pass an integer from 0.")
    end = pl.col("slot").max() if until is None else pl.lit(until)
    rows_until = rows.filter(pl.col("slot") <= end).with_columns(age_slots=end - pl.col("slot"))
    columns = ("x", "y", "slot", "time", "color", "validator_index", "age_slots")
    return return_like(
        _select_last_writes(_select_region(rows_until, region)).select(columns), frame
    )


def overwrites(frame: IntoFrameT, *, region: RegionChoice = None) -> IntoFrameT:
    """Count how often pixels were painted over. One row per painted pixel, row by row of the wall.

    ``paints`` is the number of writes, ``overwrites`` of those after the first, ``recolours`` of
    those that changed the colour, and ``painters`` of the validators that wrote. ``first_slot`` and
    ``last_slot`` are the slots of the first and the last write.
    """
    rows = _read_region(frame, region, "validator_index")
    changed = pl.col("value").diff() != 0
    counts = rows.group_by(_PLACE).agg(
        paints=pl.len().cast(pl.Int64),
        overwrites=pl.len().cast(pl.Int64) - 1,
        recolours=changed.sum().cast(pl.Int64),
        painters=pl.col("validator_index").n_unique().cast(pl.Int64),
        first_slot=pl.col("slot").first(),
        last_slot=pl.col("slot").last(),
    )
    return return_like(counts.sort("y", "x"), frame)


def territory(
    frame: IntoFrameT,
    *,
    groups: Mapping[str, Iterable[int]] | None = None,
    per_pixel: bool = False,
    region: RegionChoice = None,
) -> IntoFrameT:
    """Count the pixels that each validator or group holds. One row per holder, largest first.

    The holder of a pixel is the validator that painted it last. ``pixels`` is the number held,
    ``share`` their share of all painted pixels, and ``paints`` the number of all writes of the
    holder, including those painted over.

    With *groups*, validators by name such as ``{"ours": range(250)}``, the column ``group``
    replaces ``validator_index``; null is every other validator. With *per_pixel*, there is one row
    per painted pixel instead: ``x``, ``y``, its holder, and the ``slot`` of the last write.
    """
    rows = _read_region(frame, region, "validator_index")
    holder = "validator_index"
    if groups is not None:
        holder = "group"
        rows = rows.join(
            _read_groups(groups), on="validator_index", how="left", maintain_order="left"
        )
    last = _select_last_writes(rows)
    if per_pixel:
        return return_like(last.select(*_PLACE, holder, "slot"), frame)
    pixel_counts = last.group_by(holder).agg(pixels=pl.len().cast(pl.Int64))
    return return_like(
        rows.group_by(holder)
        .agg(paints=pl.len().cast(pl.Int64))
        .join(pixel_counts, on=holder, how="left", nulls_equal=True)
        .with_columns(pl.col("pixels").fill_null(0))
        .with_columns(share=pl.col("pixels") / max(last.height, 1))
        .select(holder, "pixels", "share", "paints")
        .sort("pixels", "paints", holder, descending=[True, True, False], nulls_last=True),
        frame,
    )


def _read_region(frame: IntoFrameT, region: RegionChoice, *more: str) -> pl.DataFrame:
    """Read the writes to pixels of the region, oldest first."""
    return _select_region(read_rows(frame, *more).sort("slot", maintain_order=True), region)


def _select_region(rows: pl.DataFrame, region: RegionChoice) -> pl.DataFrame:
    """Keep the rows of the region."""
    x0, y0, x1, y1 = check_region(region)
    return rows.filter(pl.col("x").is_between(x0, x1), pl.col("y").is_between(y0, y1))


def _select_last_writes(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the last write to each pixel, row by row of the wall."""
    return rows.unique(_PLACE, keep="last", maintain_order=True).sort("y", "x")


def _read_groups(groups: Mapping[str, Iterable[int]]) -> pl.DataFrame:
    """Read the groups. One row per validator; no validator is in two groups."""
    hint = 'Pass validators by group name, such as {"ours": range(250)}.'
    try:
        pairs = [(index, name) for name, members in groups.items() for index in members]
        members = pl.DataFrame(
            {"validator_index": [pair[0] for pair in pairs], "group": [pair[1] for pair in pairs]},
            schema={"validator_index": pl.Int64, "group": pl.String},
        )
    except (AttributeError, TypeError, OverflowError):
        raise UsageError(f"groups={groups!r} are not groups", hint=hint) from None
    if twice := members.filter(pl.col("validator_index").is_duplicated()).rows():
        raise UsageError(f"validator {twice[0][0]} is in more than one group", hint=hint)
    return members
