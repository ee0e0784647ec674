"""The text alternative of a plotly chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def alt_text(figure: Figure) -> str:
    """Return the text alternative of a chart, for readers who do not see the picture.

    *figure* is the result of a chart of ``bf.interactive``. The text is also the ``aria-label`` in
    the HTML of the figure. It has the kind of the chart, what it shows of how many validators and
    when, and the highest, lowest and latest values.
    """
    meta = getattr(getattr(figure, "layout", None), "meta", None)
    text = meta.get("alt_text") if isinstance(meta, dict) else None
    if text is None:
        raise UsageError(
            f"this {type(figure).__name__} is not a chart of bf.interactive",
            hint="Pass the figure that bf.interactive.income(...) or another chart returned.",
        )
    return str(text)
