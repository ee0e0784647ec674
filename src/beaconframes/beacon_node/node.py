"""`node`: your own beacon node as the source of all loaders."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from beaconframes.active_periods import NOT_IN_DATASET, REASON
from beaconframes.answers.dataset_source import ADDRESS
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.index.chain_index import ChainIndex
from beaconframes.beacon_node.index.verdicts import EXPLAINED, UNEXPLAINED, UNVERIFIED
from beaconframes.beacon_node.loads.growing_index import GrowingIndex
from beaconframes.beacon_node.loads.source import NodeSource
from beaconframes.cache.store_folder import store_folder
from beaconframes.client import Explorer, set_explorer
from beaconframes.client.quota import Quota
from beaconframes.config import current as current_settings
from beaconframes.config import settings as settings_block
from beaconframes.errors import ConfigError, UsageError
from beaconframes.load_context import CallTimeouts, change_load
from beaconframes.secret import Secret, hide_address
from beaconframes.summary import render_html, render_text

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from beaconframes.beacon_node.capabilities import Capabilities
    from beaconframes.endpoint import Endpoint
    from beaconframes.fetch.pipeline import LoadResult
    from beaconframes.setting_table import Settings

SMALL_REGISTRY = 10_000
"""Validators up to which an epoch is always indexed for all of them."""


class Node(Explorer):
    """A connection to a beacon node, which loaders use until it is closed; see `node`.

    ``print(node)`` lists the client, its head, its oldest state, and the tables that it can answer,
    with the reason for the others, and whether balances confirm the stored epochs.
    """

    shown_names = (*Explorer.shown_names, "capabilities", "coverage")

    def __init__(
        self,
        url: str | Secret,
        *,
        execution: str | Secret | None = None,
        rate: float | None = None,
        store: bool | str | os.PathLike[str] | None = None,
        frame: Literal["polars", "pandas"] | None = None,
        strict: bool | None = None,
        max_requests: int | None = None,
        timeout: float | tuple[float | None, float | None] | None = None,
        progress: bool | None = None,
    ) -> None:
        """Connect, and let loaders use the node."""
        # As secrets, so that no traceback of an error below has the credentials.
        url = hide_address(url, "url")
        execution = None if execution is None else hide_address(execution, "execution")
        self.is_closed = False
        self.connection = NodeConnection(url, execution, rate=rate)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        options = current_settings(store=store, timeout=timeout)
        timeouts = None
        if isinstance(options.timeout, tuple):
            clock = self.connection.api.session.rate_limiter.clock
            timeouts = CallTimeouts.start(options.timeout, clock.now())
        # The first requests have the same limits as the requests of a load.
        try:
            with change_load(timeouts=timeouts):
                self._open_index(options.store)
                # These settings are for a remote service, not for a node.
                with settings_block(rate=None, offline=False):
                    super().__init__(
                        ADDRESS,
                        chain=self.connection.chain,
                        store=False,
                        frame=frame,
                        strict=strict,
                        max_requests=max_requests,
                        timeout=timeout,
                        progress=progress,
                    )
        except BaseException:
            self._close_connections()
            raise
        self.about = {"service": self.connection.url, "simulated": False}
        set_explorer(self)

    def _open_source(self, settings: Settings, key: Secret | None) -> None:  # noqa: ARG002
        self.source = NodeSource(self.index)
        self.rate_limiter = self.connection.api.session.rate_limiter

    def _open_index(self, store: Path | bool | None) -> None:
        """Open the index of the chain, and write its head."""
        connection = self.connection
        # The probe runs now, so that plans send no request.
        connection.find_source(())
        has_all = not connection.api.request_has_validator(SMALL_REGISTRY)
        self._is_stored = store is not False
        chain_index = ChainIndex.open(
            self._find_folder(store, has_all=has_all),
            connection.spec,
            source=connection.url,
            validators=None if has_all else (),
            has_fixed_validators=False,
            has_execution=connection.execution is not None,
        )
        self.index = GrowingIndex(connection, chain_index, has_all_validators=has_all)
        self.index.refresh()

    def _find_folder(self, store: Path | bool | None, *, has_all: bool) -> Path:
        if store is False:
            self._temporary = tempfile.TemporaryDirectory(prefix="beaconframes-node-")
            return Path(self._temporary.name) / "index"
        root = store if isinstance(store, Path) else None
        # With an execution node, the income of the same epochs has other values: the fees.
        suffix = "" if self.connection.execution is None else "#execution"
        # A chain may grow until its index has chosen validators only.
        suffix += "#all" if has_all else ""
        return store_folder(root, self.connection.url + suffix, self.connection.chain)

    def __reduce__(self) -> NoReturn:
        """Raise a UsageError: connections cannot be pickled, and credentials must not be."""
        raise UsageError(
            "a connection to a node cannot be pickled or copied",
            hint="Call bf.node in each process",
        )

    def __repr__(self) -> str:
        """Return what the node can answer: client, head, oldest state, tables."""
        connection = vars(self).get("connection")
        if connection is None or "capabilities" not in vars(connection):
            # A traceback of a failed connection shows it as well.
            return f"Node({None if connection is None else connection.url!r})"
        return render_text(f"Beacon node {connection.url}", self._lines())

    def _repr_html_(self) -> str:
        return render_html(f"Beacon node {self.connection.url}", self._lines())

    def _lines(self) -> list[tuple[str, str]]:
        """Return what the node can answer, and whether balances confirm the stored epochs."""
        lines = self.capabilities.lines()
        if self.is_closed:  # Its index may be deleted.
            return lines
        verdicts = self.coverage()["status"]
        counts = [
            f"{count:,} {verdict}"
            for verdict in (EXPLAINED, UNEXPLAINED, UNVERIFIED)
            if (count := (verdicts == verdict).sum())
        ]
        stored = [("stored epochs", ", ".join(counts))] if counts else []
        return [*lines, *stored]

    def coverage(self) -> pl.DataFrame:
        """Return whether balances confirm the stored epochs, one row per epoch.

        The columns are those of `index`, and ``status`` is ``explained``, ``unexplained`` or
        ``unverified``. A load of rows of an unexplained epoch warns with `UnreconciledRows`.
        """
        self._require_open()
        return self.index.chain_index.coverage()

    @property
    def capabilities(self) -> Capabilities:
        """Return what the node can answer."""
        chosen = not self.index.has_all_validators
        return replace(self.connection.capabilities, loads_chosen_validators=chosen)

    @property
    def requests(self) -> int:
        """Return the number of requests sent to the node so far, including retries."""
        return self.connection.request_count

    @property
    def store_path(self) -> Path | None:
        """Return the folder of the stored epochs; None if they are not stored."""
        return self.index.chain_index.dataset.path if self._is_stored else None

    def read_quota(self) -> Quota:
        """Return the requests of this connection: a node of your own has no quota."""
        source = "the requests of this connection; your own node has no quota"
        return Quota(self.connection.url, self.rate, used=self.requests, source=source)

    def _load(self, endpoint: Endpoint, values: Mapping[str, Any], *, is_lazy: bool) -> LoadResult:
        """Load the rows; gaps that the node cannot fill state the reason."""
        self._require_open()
        result = super()._load(endpoint, values, is_lazy=is_lazy)
        if REASON in result.gaps.missing.columns:
            reason = self.index.explain_gap(endpoint) or "not available from the node"
            named = pl.col(REASON).replace(NOT_IN_DATASET, reason)
            result.gaps = result.gaps._replace(missing=result.gaps.missing.with_columns(named))
        return result

    def _require_open(self) -> None:
        if self.is_closed:
            raise UsageError(
                f"the connection to {self.connection.url} is closed",
                hint="Call bf.node again, and load before it is closed",
            )

    def close(self) -> None:
        """Close all connections; loaders use the previous explorer again."""
        self.is_closed = True
        super().close()
        self._close_connections()

    def _close_connections(self) -> None:
        self.connection.close()
        if self._temporary is not None:
            self._temporary.cleanup()


def node(
    url: str | None = None,
    *,
    execution: str | None = None,
    rate: float | None = None,
    store: bool | str | os.PathLike[str] | None = None,
    frame: Literal["polars", "pandas"] | None = None,
    strict: bool | None = None,
    max_requests: int | None = None,
    timeout: float | tuple[float | None, float | None] | None = None,
    progress: bool | None = None,
) -> Node:
    """Connect to your own beacon node, and let every loader use it.

    ::

        with bf.node("http://localhost:5052") as node:
            income = bf.load_income_history([1, 2, 3], since="30d")
            print(node)

    or, in a notebook, ``node = bf.node(...)`` and at the end ``node.close()``. Loaders return the
    same frames as from an explorer. What they request is checked against the balances of the chain
    and stored epoch by epoch, so that a later load does not request it again, and a load that was
    interrupted continues. ``bf.plan(loader, ..., explorer=node)`` estimates a load. For whole
    chains and long ranges, `index` writes a dataset.

    Parameters
    ----------
    url
        The address of the Beacon API. Credentials in it are sent to this address only, and shown
        nowhere. Default: ``BEACONFRAMES_NODE``.
    execution
        The address of the JSON-RPC of an execution node, for fees and deposits. Default:
        ``BEACONFRAMES_EXECUTION``, if *url* is not given either.
    rate
        Maximum number of requests per second to each node. Default: no limit.
    store
        Whether loaded epochs are stored: True, False, or a folder. Default: they are, in the
        platform's folder for data. Without it, they are stored until the node is closed.
    frame
        ``"polars"`` or ``"pandas"``: the kind of frame that loaders return.
    strict
        Whether missing rows, and rows that balances do not confirm, are an error instead of a
        warning.
    max_requests
        Maximum number of requests to the node of one load. A load that needs more raises
        `RequestLimitExceeded` before its first request.
    timeout
        Seconds for one request, or two numbers, for one request and for a whole load, such as
        ``(60, 3600)``. Default: a state may take half an hour, because some clients compute it.
    progress
        Whether to show the epochs and the remaining time of a load that takes over a second.
        Default: if the output is a terminal or a notebook.

    Warns
    -----
    UnreconciledRows
        By each load: balances do not confirm its rows.

    Raises
    ------
    ConfigError
        An address is missing or not valid.
    ConnectionFailed
        No node answers at the address.
    """
    try:
        beacon, beside = choose_addresses(url, execution)
    finally:
        # No traceback of an error has the credentials.
        del url, execution
    return Node(
        beacon,
        execution=beside,
        rate=rate,
        store=store,
        frame=frame,
        strict=strict,
        max_requests=max_requests,
        timeout=timeout,
        progress=progress,
    )


def choose_addresses(url: str | None, execution: str | None) -> tuple[Secret, Secret | None]:
    """Return the addresses of the nodes: the given ones, or those of the environment."""
    # The execution node of the environment belongs to the node of the environment.
    is_of_other_node = url is not None and execution is None
    settings = current_settings(node=url, execution=execution)
    del url, execution
    if settings.node is None:
        raise ConfigError(
            "no node is given",
            hint='Pass its address, such as bf.node("http://localhost:5052"), or set '
            "BEACONFRAMES_NODE",
        )
    return settings.node, None if is_of_other_node else settings.execution
