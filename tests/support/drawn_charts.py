"""What matplotlib drew: labels, lines, cells and times."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_hex
from matplotlib.dates import num2date

from .chart_frames import GENESIS


def legend_labels(ax):
    """The texts of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def lines_by_name(ax):
    """The lines by their names."""
    return {line.get_label(): line for line in ax.lines}


def cell_colours(ax):
    """The colours of a map, row by row."""
    (image,) = ax.images
    return [[to_hex(cell, keep_alpha=cell[3] < 1) for cell in row] for row in image.get_array()]


def tick_labels(axis):
    """The labels of an axis, with those that are empty."""
    return [tick.get_text() for tick in axis.get_ticklabels()]


def line_slots(line):
    """The slots of the points of a line."""
    return [
        round((num2date(x) - GENESIS).total_seconds() / 12)
        for x in mpl.dates.date2num(line.get_xdata())
    ]


def bar_times(bars):
    """The time at the center of each bar."""
    return [num2date(bar.get_x() + bar.get_width() / 2) for bar in bars]


def texts(ax):
    """The texts on a chart, notes and caption included."""
    return [text.get_text() for text in ax.texts]


def caption(ax):
    """The caption below a chart."""
    lower = ax.figure.axes[-1]
    (text,) = (text.get_text() for text in lower.texts if text.get_gid() == "caption")
    return text


def split_at_gaps(line):
    """The intervals of a line between its gaps."""
    y = np.asarray(line.get_ydata(), float)
    return [list(y[run]) for run in np.ma.clump_unmasked(np.ma.masked_invalid(y))]
