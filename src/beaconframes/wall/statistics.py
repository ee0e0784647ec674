"""Measures of the wall: age of the paint, overwrites, and territory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import polars as pl

from beaconframes.analysis.engines import check_distinct
from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, return_like
from beaconframes.wall.painters import add_painters
from beaconframes.wall.pixel_writes import read_rows, select_region

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrameT

    from beaconframes.wall.painters import Groups, Names
    from beaconframes.wall.pixel_writes import RegionChoice

_By: TypeAlias = Literal["pixel", "painter"]
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
        _select_last_writes(select_region(rows_until, region)).select(columns), frame
    )


def overwrites(
    frame: IntoFrameT,
    *,
    by: _By = "pixel",
    groups: Groups | None = None,
    names: Names | None = None,
    region: RegionChoice = None,
) -> IntoFrameT:
    """Count how often pixels were painted over. One row per painted pixel, row by row of the wall.

    ``paints`` is the number of writes, ``overwrites`` of those after the first, ``recolours`` of
    those that changed the colour, and ``painters`` of the validators that wrote. ``first_slot`` and
    ``last_slot`` are the slots of the first and the last write.

    With ``by="painter"``, there is one row per painter and painter that it painted over, most
    overwrites first: ``validator_index``, ``over_validator_index``, ``overwrites`` and
    ``recolours``. *groups* and *names* are as in ``territory``. Writes over pixels of one's own are
    not counted.
    """
    check_choice("by", by, get_args(_By))
    rows = _read_region(frame, region, "validator_index")
    check_distinct(rows, ["slot", *_PLACE], loader="load_graffiti_wall")
    if by == "painter":
        return return_like(_count_pairs(*add_painters(rows, groups, names)), frame)
    if groups is not None or names is not None:
        raise UsageError(
            "groups and names belong to painters, not to pixels",
            hint='Pass by="painter" with them.',
        )
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


def _count_pairs(rows: pl.DataFrame, holder: list[str]) -> pl.DataFrame:
    """Count the writes of each painter over pixels of each other painter."""
    over = [f"over_{column}" for column in holder]
    is_own = [pl.col(column).eq_missing(pl.col(f"over_{column}")) for column in holder]
    return (
        rows.with_columns(
            pl.col("slot", "value", *holder).shift().over(_PLACE).name.prefix("over_")
        )
        .filter(pl.col("over_slot").is_not_null(), ~pl.all_horizontal(is_own))
        .group_by(*holder, *over)
        .agg(
            overwrites=pl.len().cast(pl.Int64),
            recolours=(pl.col("value") != pl.col("over_value")).sum().cast(pl.Int64),
        )
        .sort(*holder, *over, nulls_last=True)
        .sort("overwrites", descending=True, maintain_order=True)
    )


def territory(
    frame: IntoFrameT,
    *,
    groups: Groups | None = None,
    names: Names | None = None,
    per_pixel: bool = False,
    region: RegionChoice = None,
) -> IntoFrameT:
    """Count the pixels that each validator, group or painter holds. One row per holder.

    The holder of a pixel is the validator that painted it last. ``pixels`` is the number held,
    ``share`` their share of all painted pixels, and ``paints`` the number of all writes of the
    holder, including those painted over. The largest holder comes first.

    With *groups*, validators by name such as ``{"ours": range(250)}``, the column ``group``
    replaces ``validator_index``; null is every other validator. With *names*, names by validator
    such as ``{838: "Ada"}``, or the result of ``bf.load_validators(...)``, validators of one name
    are one holder: ``name`` is null for validators without one, and ``validator_index`` for all
    others. With *per_pixel*, there is one row per painted pixel instead: ``x``, ``y``, its holder,
    and the ``slot`` of the last write.
    """
    rows = _read_region(frame, region, "validator_index")
    check_distinct(rows, ["slot", *_PLACE], loader="load_graffiti_wall")
    rows, holder = add_painters(rows, groups, names)
    last = _select_last_writes(rows)
    if per_pixel:
        return return_like(last.select(*_PLACE, *holder, "slot"), frame)
    pixel_counts = last.group_by(holder).agg(pixels=pl.len().cast(pl.Int64))
    return return_like(
        rows.group_by(holder)
        .agg(paints=pl.len().cast(pl.Int64))
        .join(pixel_counts, on=holder, how="left", nulls_equal=True)
        .with_columns(pl.col("pixels").fill_null(0))
        .with_columns(share=pl.col("pixels") / max(last.height, 1))
        .select(*holder, "pixels", "share", "paints")
        .sort(
            "pixels",
            "paints",
            *holder,
            descending=[True, True, *[False] * len(holder)],
            nulls_last=True,
        ),
        frame,
    )


def _read_region(frame: IntoFrameT, region: RegionChoice, *more: str) -> pl.DataFrame:
    """Read the writes to pixels of the region, oldest first."""
    return select_region(read_rows(frame, *more).sort("slot", maintain_order=True), region)


def _select_last_writes(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the last write to each pixel, row by row of the wall."""
    return rows.unique(_PLACE, keep="last", maintain_order=True).sort("y", "x")
