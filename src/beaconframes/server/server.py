"""The local explorer as a running server on this machine."""

from __future__ import annotations

import logging
import socket
import threading
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, Self

import polars as pl
import uvicorn

from beaconframes.client import Explorer, use
from beaconframes.client.defaults import local_store_of
from beaconframes.config import current as current_settings
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, UsageError
from beaconframes.server.app import Service, app
from beaconframes.server.slow_clients import PromptProtocol
from beaconframes.v1 import ENDPOINTS

if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from types import TracebackType

    from beaconframes.server.wire import Wire

LOOPBACK = "127.0.0.1"
PATIENCE = 10.0


class Server:
    """A running local explorer; close it, or use it as a ``with`` block."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        port: int = 0,
        keys: Collection[str] = (),
        wire: Wire = "spec",
        rate: int | None = None,
    ) -> None:
        """Serve *dataset* on loopback; port 0 is any free one.

        With *keys*, only to those who know one. On the ``"public"`` *wire* with the names, shapes
        and errors of the public service. With *rate*, at most so many requests a second.
        """
        if wire not in ("spec", "public"):
            raise UsageError(f"wire={wire!r} is neither 'spec' nor 'public'")
        if rate is not None and rate < 1:
            raise UsageError(f"rate={rate!r} permits nothing", hint="Give 1 or more a second")
        self.service = Service(dataset, keys, wire)
        application = app(self.service, rate)
        # asyncio sets TCP_NODELAY only on sockets whose protocol says TCP; without it, every answer
        # on a connection that is kept alive waits 40 ms for an acknowledgement.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((LOOPBACK, port))
        except OSError as error:
            self._socket.close()
            raise UsageError(
                f"port {port} cannot be used ({error.strerror})",
                hint="Choose another port, or 0 for any free one",
            ) from None
        self.url = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                http=PromptProtocol,
                lifespan="off",
                # Its own setting would close every handler that the user's program logs to.
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=2,
            )
        )
        # Polars raises KeyboardInterrupt in whichever thread computes, also in that of the server.
        logging.getLogger("uvicorn.error").addFilter(no_interrupt)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="beaconframes-local", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + PATIENCE
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)

    @property
    def requests(self) -> int:
        """Return how many requests the server has answered."""
        return self.service.requests

    def wait(self) -> None:
        """Wait until the server ends."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def close(self) -> None:
        """Stop the server and free its port."""
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._socket.close()

    def __enter__(self) -> Self:
        """Return the server itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


def no_interrupt(record: logging.LogRecord) -> bool:
    """Let everything be logged but that somebody pressed Ctrl-C."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, KeyboardInterrupt)


class Local(Server):
    """A local explorer that loaders ask until it is closed; see `local`."""

    def __init__(
        self, dataset: Dataset, *, store: bool | str | os.PathLike[str] | None = None
    ) -> None:
        """Serve *dataset* and let loaders ask it, and keep what it tells if *store* says so."""
        super().__init__(dataset)
        chain, head = self.service.chain, self.service.head
        self.explorer = Explorer(self.url, chain=chain, head=head, store=False)
        where = current_settings(store=store).store if store else False
        if where:
            self.explorer.local_store = local_store_of(
                where, address_of(dataset), chain, simulated=True
            )
        meta = dataset.meta
        self.explorer.about = {name: meta.get(name) for name in ("service", "simulated")}
        self._before = use(self.explorer)

    def __repr__(self) -> str:
        """Return where it listens and what it serves."""
        return f"Local({self.url!r}, {self.service.dataset.path.name!r})"

    def close(self) -> None:
        """Stop serving; loaders ask again whom they asked before."""
        current = use(self._before)
        if current is not self.explorer:
            use(current)
        self.explorer.close()
        super().close()


def local(
    dataset: str | os.PathLike[str] | Dataset | None = None,
    *,
    store: bool | str | os.PathLike[str] | None = None,
) -> Local:
    """Start a local explorer on a free loopback port and let every loader ask it.

    ::

        with bf.local():
            bf.load_validators(range(10))

    or, in a notebook, ``service = bf.local()`` and at the end ``service.close()``. Needs no
    network and no key.

    Parameters
    ----------
    dataset
        A dataset or its folder. Left out: a simulated chain of 2,000 validators, with a week in
        full and a year of yield-index days, made on first use and kept.
    store
        Whether to keep what is loaded, as from a service far away: True, or in which folder. Each
        dataset has a store of its own, which any later explorer of the same dataset finds again.
        Left out: nothing is kept, since asking costs nothing.
    """
    if dataset is None:
        from beaconframes.simulator import open_sample

        dataset = open_sample()
    elif not isinstance(dataset, Dataset):
        dataset = opened(dataset)
    return Local(dataset, store=store)


def opened(folder: str | os.PathLike[str]) -> Dataset:
    """Open a dataset that may be anybody's: before a row is read its files are held to be sound.

    Raises
    ------
    DatasetError
        It is no dataset, a file claims what is not there or leads elsewhere, or a table has other
        columns than those of its loader.
    """
    dataset = Dataset.open(folder)
    dataset.vet()
    known = {endpoint.table.table_name: endpoint.table for endpoint in ENDPOINTS}
    for name in dataset.tables().keys() & known.keys():
        found = dataset.schema(name) or pl.Schema()
        for column, dtype in known[name].schema().items():
            if found.get(column) != dtype:
                raise DatasetError(
                    f"table {name} of {folder} cannot be served: {column} is "
                    f"{found.get(column, 'not there')} instead of {dtype}",
                    hint="Serve a dataset that beaconframes wrote, of this version",
                )
    return dataset


def address_of(dataset: Dataset) -> str:
    """Return an address by which *dataset* has a store of its own, wherever it is served."""
    content = "".join(segment.sha256 for segment in dataset.segments())
    return f"local://{dataset.path.name}-{blake2b(content.encode(), digest_size=8).hexdigest()}"
