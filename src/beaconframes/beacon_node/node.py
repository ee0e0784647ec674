"""`node`: your own beacon node as the source of all loaders."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from beaconframes.beacon_node.chain_index import ChainIndex
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.node_source import GrowingIndex, NodeSource
from beaconframes.cache.local_store import store_folder
from beaconframes.client import Explorer, set_explorer
from beaconframes.config import current as current_settings
from beaconframes.server.local_explorer import Server

if TYPE_CHECKING:
    import os

    from beaconframes.beacon_node.probe import Capabilities

SMALL_REGISTRY = 10_000
"""Validators up to which an epoch is always indexed for all of them."""


class Node(Explorer):
    """A beacon node that loaders use until it is closed; see `node`."""

    def __init__(
        self,
        url: str,
        *,
        execution: str | None = None,
        store: bool | str | os.PathLike[str] | None = None,
    ) -> None:
        """Connect, and let loaders use the node."""
        self.connection = NodeConnection(url, execution)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        spec, has_all = self.connection.spec, self.connection.has_few_validators(SMALL_REGISTRY)
        chain_index = ChainIndex.open(
            self._find_folder(store),
            spec,
            source=self.connection.url,
            validators=None if has_all else (),
            has_fixed_validators=False,
            has_execution=execution is not None,
        )
        self.index = GrowingIndex(self.connection, chain_index, has_all_validators=has_all)
        self.index.refresh()
        self._server = self.index.server = Server(chain_index.dataset)
        super().__init__(self._server.url, chain=spec.chain, store=False)
        (session,) = self.source.sessions
        self.source = NodeSource(session, self.index)
        self.source.stated_headers.update(self._server.service.headers)
        self.about = {"service": self.connection.url, "simulated": False}
        self._previous_explorer = set_explorer(self)

    @property
    def capabilities(self) -> Capabilities:
        """Return what the node can answer."""
        return self.connection.capabilities

    def __repr__(self) -> str:
        """Return what the node can answer: client, head, oldest state, tables."""
        return repr(self.capabilities)

    def _repr_html_(self) -> str:
        """Return the same as a table, for a notebook."""
        return self.capabilities._repr_html_()

    def close(self) -> None:
        """Close all connections; loaders use the previous explorer again."""
        current = set_explorer(self._previous_explorer)
        if current is not self:
            set_explorer(current)
        super().close()
        self._server.close()
        self.connection.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _find_folder(self, store: bool | str | os.PathLike[str] | None) -> Path:
        """Return the folder of the index: in the store, or a temporary one."""
        setting = current_settings(store=store).store
        if setting is False:
            self._temporary = tempfile.TemporaryDirectory(prefix="beaconframes-node-")
            return Path(self._temporary.name) / "index"
        root = setting if isinstance(setting, Path) else None
        # With an execution node, the income of the same epochs has other values: the fees.
        suffix = "" if self.connection.execution is None else "#execution"
        return store_folder(root, self.connection.url + suffix, self.connection.chain)


def node(
    url: str,
    *,
    execution: str | None = None,
    store: bool | str | os.PathLike[str] | None = None,
) -> Node:
    """Connect to your own beacon node, and let every loader use it.

    ::

        with bf.node("http://localhost:5052") as node:
            income = bf.load_income_history([1, 2, 3], since="30d")
            print(node)

    or, in a notebook, ``node = bf.node(...)`` and at the end ``node.close()``. Loaders return the
    same frames as from an explorer. What they request is checked against the balances of the chain
    and stored, so that a later load does not request it again. For whole chains and long ranges,
    `index` writes a dataset.

    Parameters
    ----------
    url
        The address of the Beacon API. Credentials in it are sent to this address only, and shown
        nowhere.
    execution
        The address of the JSON-RPC of an execution node, for fees and deposits.
    store
        Whether loaded epochs are stored: True, False, or a folder. Default: as for an explorer.
    """
    return Node(url, execution=execution, store=store)
