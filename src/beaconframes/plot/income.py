"""Income over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis import PENALTIES, net_income
from beaconframes.frames import choose, is_empty, to_polars
from beaconframes.plot import canvas
from beaconframes.units import to_eth

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from narwhals.stable.v2.typing import IntoFrame
    from numpy.typing import NDArray

    from beaconframes.analysis.income import Every

Unit = Literal["eth", "gwei", "wei"]
By = Literal["total", "component", "validator"]

_PER_ETH = {"eth": 1.0, "gwei": 1e9, "wei": 1e18}
_UNIT_NAMES = {"eth": "ETH", "gwei": "gwei", "wei": "wei"}
_TIME_NAMES = {"epoch": "Epoch", "day": "Day", "week": "Week from Monday", "month": "Month"}
_LENGTH = {"day": "1d", "week": "1w", "month": "1mo"}
_PARTS = {
    "attestation_reward_gwei": ("Attestations", colours.BLUE),
    "proposal_reward_gwei": ("Block proposals", colours.AMBER),
    "sync_committee_reward_gwei": ("Sync committee", colours.CYAN),
    "slashing_reward_gwei": ("Slashing rewards", colours.KHAKI),
    "execution_income_wei": ("Execution fees", colours.PURPLE),
    "attestation_penalty_gwei": ("Attestation penalties", colours.RED),
    "finality_delay_penalty_gwei": ("Finality delay penalties", colours.BROWN),
    "sync_committee_penalty_gwei": ("Sync committee penalties", colours.ORANGE),
    "slashing_penalty_gwei": ("Slashing penalties", colours.SLATE),
}
_DAYS = {"day": 1, "week": 7}
_NAMED = 10  # More lines than this cannot be told apart by colour.


def income(
    frame: IntoFrame,
    *,
    every: Every = "day",
    unit: Unit = "eth",
    by: By = "total",
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw an income history: bars for days, weeks or months (UTC), a line for epochs.

    *frame* is what ``bf.load_income_history(...)`` gives. Net income is rewards minus penalties on
    the consensus layer plus the fees of proposed blocks, summed exactly: only the drawn heights are
    floats. With *by* ``"component"`` rewards are stacked, with penalties below zero; with
    ``"validator"`` each validator has a line. Hatched bars and hollow markers lack epochs of their
    day, week or month, because the frame begins or ends inside of it or has holes.

    *kwargs* go to ``Axes.bar`` (bars), ``Axes.plot`` (lines) or ``Axes.fill_between`` (components
    by epoch).
    """
    choose("unit", unit, get_args(Unit))
    choose("by", by, get_args(By))
    rows = to_polars(net_income(frame, every=every, per_validator=by == "validator"))
    lacking = "no rows" if is_empty(frame) else "no row that has a time and every amount"
    with canvas.open_axes(ax) as axes:
        if rows.is_empty():
            canvas.nothing(axes, f"No income to draw: {lacking}")
        elif by == "validator":
            _validators(axes, rows, every, unit, kwargs)
        elif every != "epoch":
            _bars(axes, rows, every, unit, by, kwargs)
        elif by == "component":
            _steps(axes, rows, unit, kwargs)
        else:
            _line(axes, rows, unit, kwargs)
        if rows["time"].n_unique() == 1:
            canvas.note(axes, f"One {every} only", y=0.4)
        cut = "hollow" if by == "validator" else "hatched"
        cut = "" if rows["complete"].all() else f", {cut} where incomplete"
        canvas.time_axis(axes, f"{_TIME_NAMES[every]} (UTC{cut})", rows["time"], every=every)
        what = "Income" if by == "component" else "Net income"
        whose = " and validator" if by == "validator" else ""
        axes.set_ylabel(f"{what} per {every}{whose} ({_UNIT_NAMES[unit]})")
        if unit == "gwei":
            axes.yaxis.set_major_formatter("{x:,.0f}")
    return axes


def _heights(rows: pl.DataFrame, column: str, unit: Unit) -> NDArray[np.float64]:
    """Turn exact amounts into floats to draw, on the scale of the axis; penalties go downwards."""
    sign = -1 if column in PENALTIES else 1
    return to_eth(rows[column]).to_numpy() * (sign * _PER_ETH[unit])


def _stack(
    rows: pl.DataFrame, unit: Unit
) -> list[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Give name, base and height of the parts that occur, rewards upwards, penalties downwards."""
    top, bottom = np.zeros(rows.height), np.zeros(rows.height)
    stack = []
    for part in _PARTS:
        height = _heights(rows, part, unit)
        if height.any():
            base = bottom if part in PENALTIES else top
            stack.append((part, base.copy(), height))
            base += height
    return stack


def _explain(ax: Axes, drawn: dict[str, Any]) -> None:
    """List the parts as they lie on each other, and draw the line that they stand on."""
    ax.axhline(0, color=colours.SLATE, linewidth=0.8)
    above = [artist for part, artist in drawn.items() if part not in PENALTIES]
    below = [artist for part, artist in drawn.items() if part in PENALTIES]
    canvas.legend(ax, [*reversed(above), *below])


def _bars(
    ax: Axes, rows: pl.DataFrame, every: Every, unit: Unit, by: By, kwargs: dict[str, Any]
) -> None:
    """Draw a bar, or a stack of bars, over the start of each day, week or month."""
    x = canvas.moments(rows["time"])
    width = (canvas.moments(rows["time"].dt.offset_by(_LENGTH[every])) - x) * 0.8
    drawn: dict[str, BarContainer] = {}
    if by == "total":
        drawn["net"] = ax.bar(
            x, _heights(rows, "net_income_wei", unit), **{"width": width} | kwargs
        )
    else:
        for part, base, height in _stack(rows, unit):
            label, colour = _PARTS[part]
            look: dict[str, Any] = {"width": width, "label": label, "color": colour, "bottom": base}
            drawn[part] = ax.bar(x, height, **look | kwargs)
        _explain(ax, drawn)
    for bars in drawn.values():
        for bar, complete in zip(bars, rows["complete"], strict=True):
            if not complete:
                bar.set(hatch="/////", edgecolor=ax.get_facecolor(), linewidth=0)


def _steps(ax: Axes, rows: pl.DataFrame, unit: Unit, kwargs: dict[str, Any]) -> None:
    """Draw components as stacked steps, each as wide as its epoch."""
    x = canvas.moments(rows["time"])
    jumps = np.diff(rows["first_epoch"].to_numpy())
    # A single epoch does not tell its length, and nothing stands beside it: any width will do.
    width = (np.diff(x) // jumps).min() if len(jumps) else np.timedelta64(384, "s")
    holes = np.flatnonzero(jumps > 1) + 1
    # Where a run of epochs ends, its last step is closed, and a point without height parts it.
    ends = np.repeat(np.append(holes, len(x)), 2)
    closed = np.insert(x, ends, x[ends - 1] + width)

    def stepped(y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Repeat the last height of a run at its end, and put a hole behind."""
        last = y[ends - 1]
        last[1::2] = np.nan
        return np.insert(y, ends, last)

    # Every step reaches down to zero, the outermost drawn first, with an outline: so an epoch that
    # is narrower than a pixel keeps its colours.
    drawn = {}
    for part, base, height in reversed(_stack(rows, unit)):
        label, colour = _PARTS[part]
        look: dict[str, Any] = {"label": label, "color": colour, "linewidth": 0.5} | kwargs
        drawn[part] = ax.fill_between(closed, stepped(base + height), step="post", **look)
    drawn = dict(reversed(drawn.items()))
    _explain(ax, drawn)


def _line(ax: Axes, rows: pl.DataFrame, unit: Unit, kwargs: dict[str, Any]) -> None:
    """Draw a line through the epochs, with holes where epochs are missing."""
    heights = pl.Series(_heights(rows, "net_income_wei", unit))
    canvas.line(ax, rows["first_epoch"], rows["time"], heights, **{"linewidth": 1} | kwargs)


def _validators(
    ax: Axes, rows: pl.DataFrame, every: Every, unit: Unit, kwargs: dict[str, Any]
) -> None:
    """Draw a line per validator; where they are many, all in grey and their median in colour."""
    number = pl.col("first_epoch")
    if every == "month":
        number = pl.col("time").dt.year() * 12 + pl.col("time").dt.month()
    elif every != "epoch":
        number = pl.col("time").dt.epoch("d") // _DAYS[every]
    rows = rows.with_columns(number=number, y=pl.Series(_heights(rows, "net_income_wei", unit)))
    count = rows["validator_index"].n_unique()
    if count <= _NAMED:
        for one in rows.partition_by("validator_index", maintain_order=True):
            _dotted(ax, one, every, {"label": str(one["validator_index"][0])} | kwargs)
        canvas.legend(ax, title="Validator")
        return
    # One artist for all: a hole parts a validator from the next.
    rows = rows.sort("validator_index", "time")
    holes = canvas.holes(rows["number"]) | canvas.holes(rows["validator_index"], most=0)
    x, y = canvas.broken(canvas.moments(rows["time"]), rows["y"].to_numpy(), holes)
    label = f"Each of {count} validators"
    ax.plot(x, y, color=colours.GREY, linewidth=0.6, alpha=0.5, label=label)
    middle = rows.group_by("time", "number").agg(pl.median("y"), pl.any("complete")).sort("time")
    _dotted(ax, middle, every, {"label": "Median", "color": colours.BLUE} | kwargs)
    canvas.legend(ax)


def _dotted(ax: Axes, rows: pl.DataFrame, every: Every, look: dict[str, Any]) -> None:
    """Draw a line, with a marker for each day, week or month; hollow where epochs are missing."""
    if every == "epoch":
        canvas.line(ax, rows["number"], rows["time"], rows["y"], **{"linewidth": 1} | look)
        return
    line = canvas.line(ax, rows["number"], rows["time"], rows["y"], **{"marker": "o"} | look)
    cut = rows.filter(~pl.col("complete"))
    hollow: dict[str, Any] = {"color": line.get_color(), "markerfacecolor": ax.get_facecolor()}
    ax.plot(canvas.moments(cut["time"]), cut["y"], "o", zorder=line.get_zorder() + 0.1, **hollow)
