"""A plotly figure whose HTML has a text alternative, and the height that its content needs."""

from __future__ import annotations

import json
from typing import Any

from plotly import graph_objects as go

from beaconframes.interactive.alt_text import alt_text
from beaconframes.interactive.style import AROUND_PLOT

# A page can be of any width, where a legend needs other rows. plotly would take their height from
# the plot. Its own resizing deletes the height, and two passes find it: ticks depend on it. A wall
# has square pixels.
_FIT_HEIGHT = """
let passes = 0;
const {xaxis: {range: columns}, yaxis: {range: rows, scaleanchor}} = figure._fullLayout;
const shape = Math.abs((rows[1] - rows[0]) / (columns[1] - columns[0]));
const fit = () => {
  const {height, _size: size, template} = figure._fullLayout;
  passes = figure.layout.height ? passes - 1 : 2;
  const room = template.layout.height - AROUND_PLOT;
  const plot = scaleanchor ? Math.min(size.w * shape, room)
    : Math.max(0.42 * figure.clientWidth, room);
  const needed = Math.round(plot + height - size.h);
  if (passes > 0 && needed !== height) Plotly.relayout(figure, {height: needed, autosize: true});
};
figure.on("plotly_afterplot", fit);
fit();
""".replace("AROUND_PLOT", str(AROUND_PLOT))


class AccessibleFigure(go.Figure):  # type: ignore[misc]
    """A figure of a chart, whose HTML has its text alternative as ``aria-label``.

    The height of a figure without one of its own follows the width of the page, and the legend.
    """

    def to_html(self, *args: Any, **kwargs: Any) -> str:
        """Return the HTML of ``plotly.graph_objects.Figure.to_html``, with an ``aria-label``."""
        html: str = super().to_html(*args, **_add_scripts(self, kwargs))
        return html

    def write_html(self, *args: Any, **kwargs: Any) -> None:
        """Write the HTML of ``plotly.graph_objects.Figure.write_html``, with an ``aria-label``."""
        super().write_html(*args, **_add_scripts(self, kwargs))


def _add_scripts(figure: go.Figure, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Add a script to the options of plotly that labels and resizes the element of the figure."""
    # "<" could end the script.
    label = json.dumps(alt_text(figure)).replace("<", "\\u003c")
    script = (
        'const figure = document.getElementById("{plot_id}");'
        f' figure.setAttribute("role", "figure"); figure.setAttribute("aria-label", {label});'
    )
    if figure.layout.height is None:
        script += _FIT_HEIGHT
    scripts = kwargs.get("post_script") or []
    return kwargs | {"post_script": [*([scripts] if isinstance(scripts, str) else scripts), script]}
