"""Charts in matplotlib: a frame in (polars, pandas, ...), the Axes out.

Every chart draws on ``ax``, or on a new figure in the style of beaconframes. It shows nothing and
saves nothing. ``plot.style()`` gives your own charts the same style. All charts share four
arguments:

- *title*: the title above the chart; by default there is none. ``"auto"`` states what a chart of
  income found, such as "38 validators earned 0.74 ETH in 7 days".
- *figsize*: width and height of a new figure in inches, by default ``(7.6, 4.2)``. A figure of
  ``(3.6, 3.6)`` is readable on a phone: its legend is below the chart.
- *caption*: the line below the chart; ``""`` leaves it out. By default it has the number of
  validators, the time range, and whether the data are simulated. The frames of ``bf.local()`` are
  marked as simulated; rows that polars computes from them are not.
- *ax*: the Axes to draw on, for example of ``plt.subplots(2, 2, layout="constrained")``. In a
  figure without a layout, legends are inside of the axes, and captions are drawn where they fit.

On a dark theme, such as ``plt.style.use("dark_background")``, the colours of a chart are those for
a dark background. ``plot.alt_text(ax)`` describes a chart for readers who do not see it.
"""

from beaconframes.charts import CHARTS
from beaconframes.charts.library import Library
from beaconframes.misspelled_names import missing_name
from beaconframes.plot.alt_text import alt_text
from beaconframes.plot.canvas import draw_chart
from beaconframes.plot.style import style
from beaconframes.plot.wall import wall
from beaconframes.text import for_matplotlib

_CHARTS = Library(
    "beaconframes.plot",
    draw_chart,
    for_matplotlib,
    second_panel="``ax.figure.axes[-1]``",
).make_functions(CHARTS)
# Type checkers and editors read these names in `__init__.pyi`, which `make docs` writes.
globals().update(_CHARTS)

__all__ = ["alt_text", "style", "wall"]
__all__ += list(_CHARTS)
__all__.sort()


def __getattr__(name: str) -> object:
    """Raise an AttributeError that suggests a public name."""
    raise missing_name(__name__, name, __all__)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return __all__
