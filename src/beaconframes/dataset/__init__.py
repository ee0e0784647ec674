"""The one format at rest: a folder of immutable Parquet segments and a ledger that names them.

What the simulator writes, what loaders keep, what the local explorer serves and what is published
is this, so that each can stand in for the other::

    somewhere/
      ledger.sqlite                      which segments exist, and whose data it is
      income_history/000001-8c1f….parquet
      blocks/000002-03ab….parquet

A dataset stores polars frames by table name, beside facts about them (``meta``). It knows nothing
of chains, endpoints or HTTP. Nothing in it is ever changed in place: a commit writes new segments
beside, makes them durable, and names them all in one transaction of the ledger. A file that the
ledger does not name does not exist.
"""

from beaconframes.dataset.coverage import Covered, Grid
from beaconframes.dataset.covering import Damage, Selection
from beaconframes.dataset.folder import Dataset, TableSize
from beaconframes.dataset.segments import Segment
from beaconframes.dataset.writing import Writer

__all__ = [
    "Covered",
    "Damage",
    "Dataset",
    "Grid",
    "Segment",
    "Selection",
    "TableSize",
    "Writer",
]
