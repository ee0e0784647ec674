"""The text alternative of a chart, for readers who do not see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from beaconframes.charts.caption import list_caption_parts
from beaconframes.charts.model import Area, Bars, Heatmap, Line, Points, ReferenceLine
from beaconframes.charts.series import format_day

if TYPE_CHECKING:
    from beaconframes.charts.model import Chart, Floats, Positions

    # Name, positions and heights.
    Series = tuple[str, Positions, Floats]

_KINDS = {Bars: "Bar chart", Heatmap: "Heatmap", Area: "Area chart", Line: "Line chart"}
_MOST = 5
"""More series than this are summarized together."""
_DIGITS, _MOST_DIGITS = 6, 12


def describe_chart(chart: Chart, title: str | None = None) -> str:
    """Return up to four sentences: kind and axes, caption, and the values that stand out."""
    if chart.empty_note:
        return f"Empty chart. {chart.empty_note}."
    kinds = [type(layer) for layer in chart.layers]
    kind = next((name for kind, name in _KINDS.items() if kind in kinds), "Point chart")
    sentences = [f"{title}: {kind[0].lower()}{kind[1:]}" if title else kind]
    sentences[0] += f" of {_start_lower(chart.y.label)} by {_start_lower(chart.x.label)}"
    sentences += [", ".join(list_caption_parts(chart)), *_describe_layers(chart)]
    if chart.panel:
        lines = _describe_layers(chart.panel)
        sentences.append(f"Second panel, {_start_lower(chart.panel.y.label)}: {' '.join(lines)}")
    return " ".join(f"{sentence}." for sentence in sentences if sentence).replace("\n", " ")


def _start_lower(label: str) -> str:
    """Return a label with a lower-case start, unless it starts with an abbreviation."""
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def _describe_layers(chart: Chart) -> list[str]:
    """Return the sentences about the values of the layers."""
    for layer in chart.layers:
        if isinstance(layer, Heatmap):
            return [_describe_heatmap(layer)]
    if texts := [text for layer in chart.layers if isinstance(layer, Bars) for text in layer.texts]:
        return ["; ".join(texts)]
    series = [found for layer in chart.layers if (found := _find_series(chart, layer))]
    if not series:
        return [", ".join(layer.name for layer in chart.layers if isinstance(layer, Points))]
    lines = [_describe_extremes(chart, *series[0])] if len(series) == 1 else []
    if 1 < len(series) <= _MOST:
        lines = ["; ".join(_describe_last(chart, *one) for one in series)]
    elif len(series) > _MOST:
        joined = (np.concatenate([one[i] for one in series]) for i in (1, 2))
        lines = [_describe_extremes(chart, "", *joined)]
    return lines + [layer.name for layer in chart.layers if isinstance(layer, ReferenceLine)]


def _find_series(chart: Chart, layer: object) -> Series | None:
    """Return the name, the positions and the heights of a layer; None if it has no height."""
    match layer:
        case Line():
            name, x, y = layer.name, layer.x, layer.y
        # Points on an axis of whole numbers are at the indices of validators.
        case Points() if not layer.strip and not chart.y.integers:
            name, x, y = layer.name, layer.x, layer.y
            if layer.validators and not chart.x.time_unit:
                x = np.array(layer.validators)
        case Bars():
            name, x, y = layer.name or "", layer.x, layer.height
        case Area() if layer.stepped and layer.hover_amounts is not None:
            # The end of an interval, before a gap, repeats its last height.
            starts = ~np.isnan(np.append(layer.hover_amounts[1:], np.nan))
            name, x, y = layer.name, layer.x[starts], layer.hover_amounts[starts]
        case _:
            return None
    # Without a label for numbers, a height is a rank.
    if not np.isfinite(y).any() or (chart.y.tick_labels and not _is_horizontal(layer)):
        return None
    return name, x, y


def _is_horizontal(layer: object) -> bool:
    return isinstance(layer, Bars) and layer.horizontal


def _describe_extremes(chart: Chart, name: str, x: Positions, y: Floats) -> str:
    """Describe the highest and the lowest value, and the latest one on a time axis."""
    start = f"{name}: highest" if name else "Highest"
    if np.nanmax(y) == np.nanmin(y):
        return (
            f"{name + ': all' if name else 'All'} values are {_format(chart, y[np.isfinite(y)][0])}"
        )
    digits = _count_digits(y)
    parts = [
        f"{word} {_format(chart, y[rank], digits)} {_locate(chart, x[rank])}"
        for word, rank in ((start, int(np.nanargmax(y))), ("lowest", int(np.nanargmin(y))))
    ]
    if chart.x.time_unit:
        rank = int(np.flatnonzero(np.isfinite(y))[-1])
        parts.append(f"latest {_format(chart, y[rank], digits)} {_locate(chart, x[rank])}")
    return ", ".join(parts)


def _describe_last(chart: Chart, name: str, x: Positions, y: Floats) -> str:
    """Describe the latest and the highest value; of penalties, the lowest one.

    A line that goes back is that of several validators, of which each has a latest value.
    """
    known = np.flatnonzero(np.isfinite(y))
    latest = y[known[-1]]
    low, high, digits = np.nanmin(y), np.nanmax(y), _count_digits(y)
    if (x[known][1:] < x[known][:-1]).any():
        ends = (_format(chart, end, digits) for end in (low, high))
        return f"{name}: {' to '.join(ends)}"
    extreme = f"lowest {_format(chart, low, digits)}"
    if high > 0 or low == 0:
        extreme = f"highest {_format(chart, high, digits)}"
    word = "latest" if chart.x.time_unit else "last"
    return f"{name}: {word} {_format(chart, latest, digits)}, {extreme}"


def _count_digits(y: Floats) -> int:
    """Return how many digits distinguish the values, such as balances of about 32 ETH."""
    spread = np.nanmax(y) - np.nanmin(y)
    if spread == 0:
        return _DIGITS
    needed = 2 + int(np.ceil(np.log10(np.nanmax(np.abs(y)) / spread)))
    return min(max(_DIGITS, needed), _MOST_DIGITS)


def _describe_heatmap(layer: Heatmap) -> str:
    """Describe the share of each kind of cells, or the mean and the range of the shares."""
    cells, text = layer.cells, ""
    values = cells if layer.percent is None else layer.percent
    if layer.quantity is not None:
        if not np.isfinite(values).any():
            return ""
        text = (
            f"{layer.quantity}: {np.nanmean(values):.4g} on average, "
            f"from {np.nanmin(values):.4g} to {np.nanmax(values):.4g}"
        )
        if not layer.kinds:
            return text
        text += ". Cells: "
    counts = np.bincount(cells.ravel(), minlength=len(layer.kinds) + 1)[1:]
    shares = 100 * counts / max(1, counts.sum())
    named = zip(layer.kinds, shares, strict=True)
    return text + ", ".join(f"{share:.3g} % {name.lower()}" for (name, _), share in named if share)


def _format(chart: Chart, value: float, digits: int = _DIGITS) -> str:
    """Format a value with the unit of its axis."""
    axis = chart.x if any(map(_is_horizontal, chart.layers)) else chart.y
    value += 0.0  # This makes a negative zero a zero.
    number = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.{digits}g}"
    return f"{number} {axis.unit}".strip()


def _locate(chart: Chart, position: object) -> str:
    """Format a position of the horizontal axis, the label of a bar, or a validator."""
    axis = chart.y if any(map(_is_horizontal, chart.layers)) else chart.x
    if axis.tick_labels and not isinstance(position, str):
        position = axis.tick_labels[int(position)]  # type: ignore[call-overload]
    if isinstance(position, np.datetime64):
        time = position.astype("datetime64[s]").item()
        if axis.time_unit in {"slot", "epoch"}:
            return f"on {format_day(time)}, {time:%H:%M} UTC"
        return f"in {time:%b %Y}" if axis.time_unit == "month" else f"on {format_day(time)}"
    return (
        f"for validator {position}"
        if axis.label.startswith(("Valid", "Memb"))
        else f"at {position}"
    )
