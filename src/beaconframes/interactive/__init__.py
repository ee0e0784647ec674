"""The charts of ``beaconframes.plot`` in plotly: a frame in (polars, pandas, ...), the Figure out.

Names and arguments are the same: *title*, *caption*, and *figsize* in inches of 100 pixels, by
default the width of the page. Every figure has its own style, shows nothing and saves nothing; no
figure has a button that uploads its data. ``interactive.style()`` gives your own figures the same
style.

``template="plotly_dark"``, or a dark default template of plotly, makes the chart dark. The HTML of
``Figure.write_html`` and ``to_html`` has the text of ``interactive.alt_text(figure)`` as its
``aria-label``.
"""

from beaconframes.charts import CHARTS
from beaconframes.charts.library import Library
from beaconframes.interactive.alt_text import alt_text
from beaconframes.interactive.figure import build_figure
from beaconframes.interactive.style import style
from beaconframes.interactive.wall import wall
from beaconframes.misspelled_names import missing_name
from beaconframes.text import for_plotly

_CHARTS = Library(
    "beaconframes.interactive",
    build_figure,
    for_plotly,
    second_panel="``layout.yaxis2``",
    keywords="*kwargs* go to ``Figure.update_layout``.",
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
