"""The storage format: a folder of immutable Parquet segments and a ledger that lists them.

The simulator, the store, the local explorer and exports share this format, so that each can read
what another one wrote::

    folder/
      ledger.sqlite                      the segments, and the origin of the data
      income_history/000001-8c1f….parquet
      blocks/000002-03ab….parquet

A dataset stores polars frames by table name, and metadata (``meta``). It does not depend on
chains, endpoints or HTTP. No file is changed in place: a commit writes new segments, makes them
durable, and lists them in one transaction of the ledger. A file that the ledger does not list is
not part of the dataset.
"""

from beaconframes.dataset.coverage import Covered, Grid, Selection
from beaconframes.dataset.dataset import Dataset, PublishedDataset, TableSize
from beaconframes.dataset.ledger import Segment
from beaconframes.dataset.maintenance import Damage
from beaconframes.dataset.segments import Writer
