"""The local explorer: start a server for a dataset, and let loaders use it."""

from __future__ import annotations

from contextlib import ExitStack
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, Self, Unpack

from beaconframes.answers.dataset_source import open_dataset
from beaconframes.answers.memory_cache import CACHE_BYTES
from beaconframes.client import Explorer, set_explorer
from beaconframes.client.defaults import create_local_store
from beaconframes.config import current as current_settings
from beaconframes.dataset import Dataset
from beaconframes.dataset.dataset import describe_origin
from beaconframes.errors import DatasetError, UsageError
from beaconframes.server.http_server import Server
from beaconframes.summary import render_html

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Mapping, Sequence

    from beaconframes.endpoint import Head
    from beaconframes.server.access import Tier
    from beaconframes.server.http_server import ServerOptions
    from beaconframes.server.wire import Wire

ANY_KEY = "local"
"""The key that loaders send where any key is accepted."""


class Local(Explorer):
    """A local explorer that loaders use until it is closed; see `local`."""

    shown_names = (*Explorer.shown_names, "wait")

    def __init__(
        self,
        dataset: Dataset,
        *,
        store: bool | str | os.PathLike[str] | None = None,
        frame: Literal["polars", "pandas"] | None = None,
        keys: Mapping[str, Tier] | Collection[str] = (),
        wire: Wire = "spec",
        **options: Unpack[ServerOptions],
    ) -> None:
        """Serve *dataset*, let loaders use it, and store what they load if *store* is set.

        Loaders return frames of the kind *frame*, and send the first of the *keys*.
        """
        with ExitStack() as on_failure:
            self.server = Server(dataset, keys=keys, wire=wire, **options)
            on_failure.callback(self.server.close)
            self.service = self.server.service
            chain, clock = self.service.chain, self.service.clock
            head: Head | Callable[[], Head] | None = None
            if clock is None:
                may_change = self.service.views.may_change
                head = (lambda: self.service.head) if may_change else self.service.head
            super().__init__(
                self.server.url,
                api_key=next(iter(keys), ANY_KEY if wire == "public" else None),
                chain=chain,
                frame=frame,
                head=head,
                store=False,
            )
            self.clock = clock
            for session in self.source.sessions:
                session.stated_headers.update(self.service.headers)
            settings = current_settings(store=store)
            location = settings.store if store else False
            if location:
                self.local_store = create_local_store(
                    location,
                    build_store_address(dataset),
                    chain,
                    simulated=True,
                    limit=settings.store_limit,
                )
            meta = dataset.meta
            self.about = {name: meta.get(name) for name in ("service", "simulated")}
            on_failure.pop_all()
        set_explorer(self)

    def __repr__(self) -> str:
        return f"Local({self.url!r}, {self.service.dataset.path.name!r})"

    def _repr_html_(self) -> str:
        return render_html(f"Local explorer {self.url}", self._describe())

    def _describe(self) -> list[tuple[str, str]]:
        """Return the facts about the dataset and the loads, each with its name."""
        dataset = self.service.dataset
        lines = [("status", "running" if self.server.is_running else "closed")]
        try:
            origin, head = describe_origin(dataset.meta), self.service.describe_head()
        except DatasetError:
            return [*lines, ("dataset", f"{dataset.path} cannot be read")]
        return [
            *lines,
            ("dataset", str(dataset.path)),
            *(line for line in origin if "epoch" not in line[0]),
            ("head", head),
            *(line for line in super()._describe() if line[0] in {"frames", "store"}),
            ("requests answered", f"{self.requests:,}"),
        ]

    @property
    def explorer(self) -> Self:
        """Return this explorer itself: in version 0.1, it was an attribute of the server."""
        return self

    @property
    def requests(self) -> int:
        """Return the number of requests that the server has answered, also to other clients."""
        return self.server.requests

    def wait(self) -> None:
        """Wait until the server stops."""
        self.server.wait()

    def close(self) -> None:
        """Stop the server; loaders use the previous explorer again."""
        super().close()
        self.server.close()


def local(
    dataset: str | os.PathLike[str] | Dataset | None = None,
    *,
    validators: int | None = None,
    epochs: int | None = None,
    store: bool | str | os.PathLike[str] | None = None,
    frame: Literal["polars", "pandas"] | None = None,
    keys: Mapping[str, Tier] | Collection[str] = (),
    wire: Wire = "spec",
    rate: int | None = None,
    limits: str | Sequence[str] = (),
    faults: str | Sequence[str] = (),
    live: bool = False,
    start: int | None = None,
    speed: float = 1.0,
    cache_bytes: int | str = CACHE_BYTES,
) -> Local:
    """Start a local explorer on a free loopback port and let every loader use it.

    ::

        with bf.local():
            bf.load_validators(range(10))

    or, in a notebook, ``service = bf.local()`` and at the end ``service.close()``. It needs neither
    network nor API key. To load many rows of a dataset, `beaconframes.open` is faster.

    Parameters
    ----------
    dataset
        A dataset or its folder. By default the sample that comes with the package: a simulated
        chain of 1,000 validators, with a week of epochs and a year of yield-index days. The
        environment variable ``BEACONFRAMES_SAMPLE`` names the folder of another one.
    validators, epochs
        The size of another simulated chain, instead of a dataset: 2,000 validators take some
        seconds. It is simulated on first use and stored.
    store
        Whether to store loaded rows, as for a remote explorer: True, or the folder of the store.
        Each dataset has its own store, which later explorers of the same dataset use again.
        By default nothing is stored, because local requests are fast.
    frame
        ``"polars"`` or ``"pandas"``: the kind of frame that loaders return.
    keys
        API keys and their tiers, for example ``{"k": "free"}``, to try the limits of a tier.
        Loaders send the first one.
    wire
        ``"spec"``, or ``"public"`` for the names, shapes and errors of the public service.
    rate
        Requests per second that each key may send.
    limits
        ``"second=5,hour=1000,month=30000"``, ``"free:second=1,month=1000"``, a list of these, or
        ``"service"`` for the limits of the public service: to rehearse a quota. Only with
        ``"service"`` are epochs refused that the public service has dropped: attestation duties
        after 100 epochs.
    faults
        ``["503@10%", "hang@1%", "truncate@1%", "html@5%", "latency=80ms"]``: to rehearse an outage
        or a slow service.
    live
        Whether the head follows the clock, slot by slot, as on a real chain: to try pollers and
        recordings. Without a dataset, a simulated chain from two days ago to two days ahead is
        served; it has mainnet's epoch numbers. With one, it must reach beyond the present time:
        see *ends* of ``beaconframes.simulator.simulate``.
    start
        The epoch at which a live chain starts, instead of the present time.
    speed
        How many times faster than the clock a live chain moves: 100 is an epoch in 4 seconds.
    cache_bytes
        The largest size of the rows in memory: a number of bytes, or a text such as ``"64MB"``.
    """
    if dataset is None:
        from beaconframes.simulator import open_sample

        dataset = open_sample(live=live, validators=validators, epochs=epochs)
    elif validators is not None or epochs is not None:
        name = "epochs" if validators is None else "validators"
        raise UsageError(
            f"{name}= is the size of a chain to simulate, and a dataset has its own",
            hint=f"Leave out {name}=, or the dataset",
        )
    elif not isinstance(dataset, Dataset):
        dataset = open_dataset(dataset)
    return Local(
        dataset,
        store=store,
        frame=frame,
        keys=keys,
        wire=wire,
        rate=rate,
        limits=limits,
        faults=faults,
        live=live,
        start=start,
        speed=speed,
        cache_bytes=cache_bytes,
    )


def build_store_address(dataset: Dataset) -> str:
    """Return an address that identifies the store of *dataset*, by a hash of its content."""
    content = "".join(segment.sha256 for segment in dataset.segments())
    return f"local://{dataset.path.name}-{blake2b(content.encode(), digest_size=8).hexdigest()}"
