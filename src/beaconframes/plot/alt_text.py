"""The text alternative of a matplotlib chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALT_TEXTS = "_beaconframes_alt_texts"
"""The attribute of Axes that has the texts."""


def add_alt_text(ax: Axes, text: str) -> None:
    """Attach the text alternative of a chart to its axes, after those of other charts."""
    vars(ax).setdefault(_ALT_TEXTS, []).append(text)


def alt_text(ax: Axes) -> str:
    """Return the text alternative of a chart, for readers who do not see the picture.

    It has the kind of the chart, what it shows of how many validators and when, and the highest,
    lowest and latest values. Publish it as the ``alt`` attribute of the picture.

    Parameters
    ----------
    ax
        The Axes that a chart of ``bf.plot`` returned.

    Examples
    --------
    >>> ax = bf.plot.income(income)  # doctest: +SKIP
    >>> ax.figure.savefig("income.png")  # doctest: +SKIP
    >>> print(f"![{bf.plot.alt_text(ax)}](income.png)")  # doctest: +SKIP
    """
    texts = getattr(ax, _ALT_TEXTS, None)
    if not texts:
        raise UsageError(
            f"{type(ax).__name__} has no chart of bf.plot",
            hint="Pass the Axes that bf.plot.income(...) or another chart returned.",
        )
    return " ".join(texts)
