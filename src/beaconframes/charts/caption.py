"""The caption of a chart: how many validators, the time range, and whether data are simulated."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from beaconframes.charts.series import format_day
from beaconframes.errors import UsageError
from beaconframes.frames import is_simulated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beaconframes.charts.model import Axis, Chart

# Indices below this are marked in an array of that size at most.
_MOST_VALIDATORS = 2**24
# Types of arguments of charts that are not frames.
_OPTIONS = (str, int, float, type(None))


def add_sources(chart: Chart, arguments: Iterable[Any]) -> Chart:
    """Return the chart with what its caption says of the frames among its *arguments*.

    The validators are those of the first frame that has a column ``validator_index``, unless the
    chart itself has their number.
    """
    if chart.empty_note:
        return chart
    # For a value that is not a frame, narwhals searches the installed packages for plugins.
    inputs = [value for value in arguments if not isinstance(value, _OPTIONS)]
    values = [nw.from_native(value, pass_through=True) for value in inputs]
    frames = [value for value in values if isinstance(value, nw.DataFrame | nw.LazyFrame)]
    validators = chart.validators
    if validators is None:
        validators = next(filter(None, map(_count_validators, frames)), None)
    simulated = any(is_simulated(frame.to_native()) for frame in frames)
    return replace(chart, validators=validators, is_simulated=simulated)


def _count_validators(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> int | None:
    """Return the number of validators in a frame; None if it does not name validators."""
    if "validator_index" not in frame.collect_schema().names():
        return None
    native = frame.to_native()
    if isinstance(native, pl.DataFrame):
        return _count_distinct(native["validator_index"].drop_nulls())
    index = nw.col("validator_index")
    # A null counts as a value. To filter it first would copy the column.
    counts = frame.lazy().select(index.n_unique(), nulls=index.null_count())
    values, nulls = counts.collect("polars").row(0)
    return int(values) - bool(nulls)


def _count_distinct(indices: pl.Series) -> int:
    """Return the number of different *indices*: without a hash table, if possible."""
    if indices.is_empty() or not indices.dtype.is_integer():
        return indices.n_unique()
    bounds: Any = (indices.min(), indices.max())
    first, last = bounds
    if first >= 0 and last < _MOST_VALIDATORS:
        occurs = np.zeros(last + 1, np.bool_)
        # The chunks of a series are not copied; to_numpy would join them first.
        for chunk in indices.get_chunks():
            occurs[chunk.to_numpy()] = True
        return int(np.count_nonzero(occurs))
    return indices.n_unique()


def state_finding(chart: Chart) -> str | None:
    """Return the sentence of ``title="auto"``; None for an empty chart."""
    if chart.empty_note:
        return None
    if not chart.finding:
        raise UsageError(
            'title="auto": no sentence follows from this chart', hint="Pass a text as title=."
        )
    return f"{_count_in_words(chart.validators or 0)} {chart.finding}"


def _count_in_words(validators: int) -> str:
    return f"{validators:,} validator{'' if validators == 1 else 's'}"


def list_caption_parts(chart: Chart) -> list[str]:
    """Return the parts of the caption; none for an empty chart."""
    if chart.empty_note:
        return []
    parts = []
    if chart.validators:
        parts.append(_count_in_words(chart.validators))
    x = chart.x if chart.days is None else replace(chart.x, time_unit="day", times=chart.days)
    parts += filter(None, (format_range(x), chart.note))
    return [*parts, "simulated data"] if chart.is_simulated else parts


def wrap_parts(parts: list[str], width: int) -> list[str]:
    """Join the parts of a caption to lines of at most *width* characters, if its words allow it."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" · {part}"
        else:
            lines += textwrap.wrap(part, width)
    return lines


def format_range(axis: Axis) -> str:
    """Return the time range of a time axis, such as "Oct 1 to Oct 7, 2026"; empty for others."""
    if axis.time_unit is None or axis.times is None or not len(axis.times):
        return ""
    first, last = axis.times.min(), axis.times.max()
    if axis.time_unit == "week":
        last += np.timedelta64(6, "D")
    begin, end = (time.astype("datetime64[s]").item() for time in (first, last))
    if axis.time_unit == "month":
        names = f"{begin:%b %Y}", f"{end:%b %Y}"
        return " to ".join(dict.fromkeys(names))
    if begin.date() != end.date():
        start = format_day(begin)
        if begin.year == end.year:
            start = start.rpartition(",")[0]
        return f"{start} to {format_day(end)}"
    if axis.time_unit in {"slot", "epoch"}:
        clock = " to ".join(dict.fromkeys((f"{begin:%H:%M}", f"{end:%H:%M}")))
        return f"{format_day(begin)}, {clock} UTC"
    return format_day(begin)
