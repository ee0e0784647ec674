"""What the charts share: where to draw, the time axis, holes in lines, legends and notes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib import dates
from matplotlib import pyplot as plt

from beaconframes.plot.style import style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray


_AROUND = {
    "slot": np.timedelta64(1, "m"),
    "epoch": np.timedelta64(20, "m"),
    "day": np.timedelta64(36, "h"),
    "week": np.timedelta64(11, "D"),
    "month": np.timedelta64(45, "D"),
}


@contextmanager
def open_axes(ax: Axes | None) -> Iterator[Axes]:
    """Give the Axes to draw on: the caller's as they are, or new ones in our style.

    A new figure belongs to pyplot, because a notebook shows no other beneath its cell.
    """
    if ax is not None:
        yield ax
        return
    with style():
        _, ax = plt.subplots(layout="constrained")
        # Ticks are made when first drawn, which is outside of this block: tell them now.
        now = mpl.rcParams
        grid = {"grid_color": now["grid.color"], "grid_linewidth": now["grid.linewidth"]}
        ax.tick_params(
            axis="x",
            color=now["xtick.color"],
            labelcolor=now["xtick.labelcolor"],
            labelsize=now["xtick.labelsize"],
            length=now["xtick.major.size"],
            **grid,
        )
        ax.tick_params(
            axis="y",
            color=now["ytick.color"],
            labelcolor=now["ytick.labelcolor"],
            labelsize=now["ytick.labelsize"],
            length=now["ytick.major.size"],
            **grid,
        )
        yield ax


def moments(times: pl.Series) -> NDArray[np.datetime64]:
    """Give UTC times as matplotlib draws them fastest."""
    return times.dt.replace_time_zone(None).to_numpy().astype("datetime64[us]")


def time_axis(ax: Axes, label: str, times: pl.Series, *, every: str) -> None:
    """Name the horizontal axis *label*; put UTC ticks on it for *times*, none finer than *every*.

    The name stands at the left, because year or date of the ticks stand at the right.
    """
    ax.set_xlabel(label, loc="left")
    buckets = times.n_unique()
    if buckets == 0:
        return
    if buckets == 1:
        # matplotlib would show years around a single moment.
        only = moments(times)[0]
        ax.set_xlim(only - _AROUND[every], only + _AROUND[every])
    locator: dates.DateLocator
    if every == "week" and buckets <= 16:
        every_nth = -(-buckets // 8)
        locator = dates.WeekdayLocator(dates.MO, every_nth, "UTC")  # type: ignore[no-untyped-call]
    else:
        # As many ticks as there are buckets: with more, days would be divided into hours.
        fewest = min(buckets, 3) if every in {"day", "week", "month"} else 3
        locator = dates.AutoDateLocator("UTC", fewest, 8)  # type: ignore[no-untyped-call]
    formatter = dates.ConciseDateFormatter(locator, "UTC")  # type: ignore[no-untyped-call]
    formatter.formats[2] = formatter.zero_formats[2] = "%b %d"
    formatter.offset_formats[2] = "%Y"
    formatter.zero_formats[3] = "%b %d"
    formatter.offset_formats[3:] = ["%b %d, %Y"] * 3
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(formatter)


def holes(numbers: pl.Series, *, most: int = 1) -> NDArray[np.bool_]:
    """Tell of every row but the first whether its number (epoch, slot, day) skips some before."""
    return np.abs(np.diff(numbers.to_numpy())) > most


def broken(
    x: NDArray[np.datetime64], y: NDArray[np.float64], where: NDArray[np.bool_]
) -> tuple[NDArray[np.datetime64], NDArray[np.float64]]:
    """Put a hole into the line before every row that *where* marks."""
    rows = np.flatnonzero(where) + 1
    return np.insert(x, rows, x[rows]), np.insert(y, rows, np.nan)


def line(ax: Axes, numbers: pl.Series, times: pl.Series, y: pl.Series, **kwargs: Any) -> Line2D:
    """Draw a line that stops where *numbers* skip some or *y* is unknown; ``Axes.plot`` draws it.

    A point with a hole on either side has no line to be seen by: it gets a marker.
    """
    heights = y.cast(pl.Float64).to_numpy()
    xs, ys = broken(moments(times), heights, holes(numbers))
    there = np.concatenate(([False], np.isfinite(ys), [False]))
    lonely = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])
    if len(lonely) and "marker" not in kwargs:
        kwargs |= {"marker": "o", "markevery": lonely.tolist()}
    (drawn,) = ax.plot(xs, ys, **kwargs)
    return drawn


def legend(ax: Axes, handles: Sequence[Any] | None = None, title: str | None = None) -> None:
    """Explain what is drawn, outside of the data, in the order of *handles*."""
    chosen = ax.get_legend_handles_labels()[0] if handles is None else handles
    figure = ax.get_figure(root=True)
    if figure is not None and figure.get_layout_engine() is None:
        # Nothing makes room at the side of such a figure; above the axes there is some.
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
    else:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
    ax.legend(handles=chosen, title=title, alignment="left", borderaxespad=0.1, **place)


def note(ax: Axes, text: str, *, y: float = 0.5) -> None:
    """Write *text* in the middle of the axes; *y* moves it out of the way of a single point."""
    ax.text(
        0.5,
        y,
        text,
        transform=ax.transAxes,
        ha="center",
        va="center",
        bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.85},
    )


def nothing(ax: Axes, text: str) -> None:
    """Say in the middle of the axes why nothing is drawn; an empty scale would mean nothing."""
    note(ax, text)
    if not ax.has_data():
        ax.set_xticks([])
        ax.set_yticks([])
