"""The charts of ``beaconframes.plot`` in plotly: a frame in (polars, pandas, ...), the Figure out.

Names and arguments are the same. Every figure carries its own style, sets no title, shows nothing
and saves nothing; none has a button that uploads its data. ``interactive.style()`` gives your own
figures the same look.
"""

from beaconframes.interactive.style import style

__all__ = [
    "style",
]
