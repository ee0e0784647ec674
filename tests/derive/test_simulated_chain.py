"""Derived tables of a simulated dataset, from the tables that a node has as well."""

from __future__ import annotations

import polars as pl
from polars.testing import assert_frame_equal

from beaconframes.derive import ChainTables, Coverage, derive_tables
from beaconframes.endpoint.chain_metadata import ChainMetadata

SERVED = {"deposit_events"}
"""Events that a node states as well; the other events are those of the simulator."""


class NodeTables:
    """The tables of a dataset that an indexed node has."""

    def __init__(self, dataset):
        self.dataset = dataset

    def tables(self):
        """Return the names of the tables."""
        names = self.dataset.tables()
        return [name for name in names if name in SERVED or not name.endswith("_events")]

    def scan(self, table, *, schema=None):
        """Return the rows of a table."""
        assert schema is not None or table in self.tables()
        known = table in self.tables()
        return self.dataset.scan(table, schema=schema) if known else pl.LazyFrame(schema=schema)


def test_tables_equal_those_of_the_simulation(chain):
    """Step 11: a chain from genesis with two whole days, and duties of a hundred epochs."""
    metadata = ChainMetadata.parse(chain.meta)
    last, final = metadata.head.epoch, metadata.head.finalized_epoch
    coverage = Coverage(
        [(0, last)], {"attestations": [(last - 100, last)], "income_history": [(0, final)]}
    )
    data = ChainTables(NodeTables(chain), metadata.chain, metadata.head, coverage)
    frames = {}
    for table, rows in derive_tables(data):
        frames.setdefault(table.table_name, []).append(rows)

    days = 0
    for name, parts in frames.items():
        rows, expected = pl.concat(parts), chain.scan(name).collect()
        if name == "validator_stats":
            # The simulated service has zeros where nothing is known: before genesis, and for the
            # balances of a validator that the last block of the day created.
            columns = ["missed_attestations", "^(min|max)_.*$"]
            assert {None} == set(rows["missed_attestations"])
            rows, expected = (
                frame.filter(pl.col("day") >= 0).sort("validator_index", "day")
                for frame in (rows, expected)
            )
            days = rows["day"].n_unique()
            assert_frame_equal(
                expected.select("^(min|max)_.*$"), rows.select("^(min|max)_.*$").fill_null(0)
            )
            rows, expected = (frame.select(pl.exclude(columns)) for frame in (rows, expected))
        if name == "epochs":
            rows, expected = (frame.filter("finalized") for frame in (rows, expected))
        assert_frame_equal(expected, rows)
    assert 2 == days
    assert 10 == len(frames)
