"""The Beacon API of a consensus node as a source of tables.

`node` connects loaders to a node; `index` writes a dataset. Both take the same path::

    NodeConnection      api, probe: routes, and what this node can answer
    ChainReader         blocks, states and duties, each requested once
    NODE_TABLES         the rows of each table of an epoch, from blocks, duties and amounts
    build_epoch         the tables of one epoch, and whether its balances are explained
    ChainIndex          a dataset to which epochs are added, each in one commit
"""

from beaconframes.beacon_node.node import Node, node

__all__ = ["Node", "node"]
