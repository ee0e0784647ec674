"""Charts in matplotlib: a frame in (polars, pandas, ...), the Axes out.

Every chart draws on ``ax``, or on a new figure in the style of beaconframes; it sets no title,
shows nothing and saves nothing. ``plot.style()`` gives your own charts the same look.
"""

from beaconframes.plot.income import income
from beaconframes.plot.style import style
from beaconframes.plot.sync_members import sync_members
from beaconframes.plot.sync_participation import sync_participation
from beaconframes.plot.yield_index import yield_index

__all__ = [
    "income",
    "style",
    "sync_members",
    "sync_participation",
    "yield_index",
]
