"""Participation of the members of sync committees, ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import analysis, colours
from beaconframes.frames import is_empty, to_polars
from beaconframes.plot import canvas

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

_NAMED = 20  # As many validator indices fit beneath the axis.
_LOWEST = 5


def sync_members(
    blocks: IntoFrame, committees: IntoFrame, *, ax: Axes | None = None, **kwargs: Any
) -> Axes:
    """Draw how much each member of sync committees signed, best first.

    *blocks* is what ``bf.load_epoch_slots(...)`` gives and *committees* what
    ``bf.load_sync_committees(...)`` gives, or the rows of it that are of interest. A member is
    judged by the proposed blocks of its periods that *blocks* has.

    *kwargs* go to the ``Axes.plot`` of the members.
    """
    rows = to_polars(analysis.sync_members(blocks, committees))
    lacking = "no proposed block of these committees"
    if is_empty(blocks) or is_empty(committees):
        lacking = "no rows"
    with canvas.open_axes(ax) as axes:
        if rows.is_empty():
            canvas.nothing(axes, f"No members to draw: {lacking}")
        else:
            _members(axes, rows, kwargs)
        if rows.height == 1:
            canvas.note(axes, "One member only", y=0.4)
        axes.set_xlabel("Validator, best first" if rows.height <= _NAMED else "Member, best first")
        axes.set_ylabel("Blocks signed (%)")
    return axes


def _members(ax: Axes, rows: pl.DataFrame, kwargs: dict[str, Any]) -> None:
    """Draw a dot per member and the mean of all; name all members, or the worst of many."""
    look: dict[str, Any] = {
        "marker": "o",
        "linestyle": "none",
        "markersize": 3,
        "color": colours.BLUE,
    }
    ranks = range(1, rows.height + 1)
    ax.plot(ranks, rows["rate"].to_numpy() * 100, **{"label": "Member"} | look | kwargs)
    mean = 100 * int(rows["signed"].sum()) / int(rows["duties"].sum())
    ax.axhline(
        mean, color=colours.SLATE, linestyle="--", linewidth=1, label=f"All together: {mean:.2f} %"
    )
    canvas.legend(ax)
    if rows.height <= _NAMED:
        names = [str(index) for index in rows["validator_index"]]
        ax.set_xticks(ranks, names, rotation=45, ha="right", rotation_mode="anchor")
        return
    worst = rows.tail(_LOWEST).reverse().select("validator_index", "rate")
    names = [f"validator {index}: {100 * rate:.1f} %" for index, rate in worst.iter_rows()]
    # Best first: the corner below the best is empty.
    ax.text(
        0.03,
        0.05,
        "\n".join(["Lowest:", *names]),
        transform=ax.transAxes,
        va="bottom",
        bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.85},
    )
