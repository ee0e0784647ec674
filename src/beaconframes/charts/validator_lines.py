"""Lines of validators: a coloured line each, or, for many, all in grey with their median."""

from __future__ import annotations

import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.model import Line


def build_lines(rows: pl.DataFrame, *, marked: bool) -> tuple[list[Line], str | None]:
    """Build the lines of validators, and return them with the title of their legend.

    *rows* has ``validator_index``, ``number`` (of the epoch, day, ...; a line stops where numbers
    are missing), ``time``, ``y`` and ``complete``, which is false for the hollow markers of a
    *marked* line.
    """
    rows = rows.sort("validator_index", "time")
    if rows["validator_index"].n_unique() <= series.MAX_NAMED:
        frames = rows.partition_by("validator_index", maintain_order=True)
        lines = [build_line(own, str(own["validator_index"][0]), marked=marked) for own in frames]
        return lines, "Validator"
    # One line for all validators, with a gap between one validator and the next.
    gaps = series.find_gaps(rows["number"]) | series.find_gaps(rows["validator_index"], most=0)
    x, y = series.insert_gaps(series.to_datetime64(rows["time"]), series.to_floats(rows["y"]), gaps)
    count = rows["validator_index"].n_unique()
    all_validators = Line(x, y, f"Each of {count:,} validators", colours.GREY, 0.6, 0.5)
    medians = rows.group_by("time", "number").agg(pl.median("y"), pl.any("complete")).sort("time")
    return [all_validators, build_line(medians, "Median", colours.BLUE, marked=marked)], None


def build_line(
    rows: pl.DataFrame, name: str, colour: str | None = None, *, marked: bool = True
) -> Line:
    """Build one line, with a marker per row; the marker is hollow where the row is not complete."""
    x, y = series.build_curve(rows["number"], rows["time"], series.to_floats(rows["y"]))
    if not marked:
        return Line(x, y, name, colour, 1, takes_kwargs=True)
    incomplete = (~rows["complete"]).cast(pl.Float64).to_numpy()
    hollow = series.build_curve(rows["number"], rows["time"], incomplete)[1] > 0
    return Line(x, y, name, colour, marked=True, hollow=hollow, takes_kwargs=True)
