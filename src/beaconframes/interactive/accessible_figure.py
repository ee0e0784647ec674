"""A plotly figure whose HTML has a text alternative, for readers who do not see the picture."""

from __future__ import annotations

import json
from typing import Any

from plotly import graph_objects as go

from beaconframes.interactive.alt_text import alt_text


class AccessibleFigure(go.Figure):  # type: ignore[misc]
    """A figure of a chart, whose HTML has its text alternative as ``aria-label``."""

    def to_html(self, *args: Any, **kwargs: Any) -> str:
        """Return the HTML of ``plotly.graph_objects.Figure.to_html``, with an ``aria-label``."""
        html: str = super().to_html(*args, **_add_label(self, kwargs))
        return html

    def write_html(self, *args: Any, **kwargs: Any) -> None:
        """Write the HTML of ``plotly.graph_objects.Figure.write_html``, with an ``aria-label``."""
        super().write_html(*args, **_add_label(self, kwargs))


def _add_label(figure: go.Figure, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Add a script to the options of plotly that labels the element of the figure."""
    # "<" could end the script.
    label = json.dumps(alt_text(figure)).replace("<", "\\u003c")
    script = (
        'const figure = document.getElementById("{plot_id}");'
        f' figure.setAttribute("role", "figure"); figure.setAttribute("aria-label", {label});'
    )
    scripts = kwargs.get("post_script") or []
    return kwargs | {"post_script": [*([scripts] if isinstance(scripts, str) else scripts), script]}
