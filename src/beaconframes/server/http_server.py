"""The HTTP server of the local explorer, in a thread of this process."""

from __future__ import annotations

import logging
import socket
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypedDict
from urllib.parse import urlsplit

import uvicorn

from beaconframes.answers.memory_cache import CACHE_BYTES
from beaconframes.errors import UsageError
from beaconframes.server.access import (
    NO_KEY,
    TIERS,
    Access,
    Limits,
    Tier,
    parse_limits,
)
from beaconframes.server.app import build_app
from beaconframes.server.faults import parse_faults
from beaconframes.server.service import Service
from beaconframes.server.uvicorn_server import RequestDeadlineProtocol, StoppableServer
from beaconframes.server.wire import Wire  # noqa: TC001 - for get_type_hints
from beaconframes.setting_rules import parse_size
from beaconframes.simulator.head_clock import HeadClock
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from beaconframes.dataset import Dataset

LOOPBACK = "127.0.0.1"
STARTUP_SECONDS = SHUTDOWN_SECONDS = 10.0
PLANS = (NO_KEY, *TIERS)


class ServerOptions(TypedDict, total=False):
    """The arguments of `Server` that `Local` passes on."""

    rate: int | None
    limits: str | Sequence[str]
    faults: str | Sequence[str]
    live: bool
    start: int | None
    speed: float
    cache_bytes: int | str


class Server:
    """A running local explorer; close it, or use it as a ``with`` block."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        port: int = 0,
        keys: Mapping[str, Tier] | Collection[str] = (),
        require_key: bool = False,
        wire: Wire = "spec",
        rate: int | None = None,
        limits: str | Sequence[str] = (),
        faults: str | Sequence[str] = (),
        origins: Collection[str] = (),
        old_queues: bool = False,
        live: bool = False,
        start: int | None = None,
        speed: float = 1.0,
        cache_bytes: int | str = CACHE_BYTES,
    ) -> None:
        """Serve *dataset* on a loopback port; port 0 means any free port.

        Parameters
        ----------
        dataset, keys, limits, faults, cache_bytes
            As for `local`. A list of keys means premium keys.
        port
            The port on loopback.
        require_key
            Whether every request needs a key, also if *keys* is empty; any key is then accepted.
            V2 of the public wire always needs one.
        wire
            The names, shapes and errors of the specification, or of the ``"public"`` service.
        rate
            Requests per second that each key may send.
        origins
            Origins whose web pages may read answers: ``["http://localhost:3000"]``.
        old_queues
            Whether ``queues`` of V2 has its shape before July 2026, which many clients read.
        live
            Whether the head follows the clock, slot by slot, through the simulated *dataset*:
            later rows are hidden, and an epoch is final two epochs later. At the end of the
            dataset the head stops.
        start
            The epoch at which a live chain starts; by default that of the present time.
        speed
            How many times faster than the clock a live chain moves.

        Raises
        ------
        UsageError
            A value is not valid, or the port is in use.
        """
        if wire not in ("spec", "public"):
            raise UsageError(f"wire={wire!r} is not valid", hint="Use 'spec' or 'public'")
        if (size := parse_size(cache_bytes)) is None:
            raise UsageError(
                f"cache_bytes={cache_bytes!r} is not a size",
                hint='Use a number of bytes above 0, or a text such as "64MB"',
            )
        limits = [limits] if isinstance(limits, str) else limits
        if not live and (start is not None or speed != 1.0):
            raise UsageError("start and speed need a live chain", hint="Add live=True")
        clock = HeadClock(dataset, start=start, speed=speed) if live else None
        access = Access(
            keys, wire=wire, require_key=require_key, limits=resolve_limits(limits, rate, wire)
        )
        self.service = Service(
            dataset,
            wire,
            clock=clock,
            cache_bytes=size,
            # It drops attestation duties after 100 epochs; a dataset has all of them.
            drops_old_units="service" in limits,
            old_queues=old_queues,
        )
        application = build_app(self.service, access, parse_faults(faults), check_origins(origins))
        self._socket = bind_socket(port)
        self.url = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}"
        self._server = StoppableServer(
            uvicorn.Config(
                application,
                http=RequestDeadlineProtocol,
                lifespan="off",
                # uvicorn's own configuration would close the log handlers of the user's program.
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=2,
            )
        )
        # Polars raises KeyboardInterrupt in any computing thread, the server's included.
        logging.getLogger("uvicorn.error").addFilter(should_log)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="beaconframes-local", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + STARTUP_SECONDS
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)

    @property
    def requests(self) -> int:
        """Return the number of requests that the server has answered."""
        return self.service.requests

    @property
    def is_running(self) -> bool:
        """Return whether the server answers requests."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the server stops."""
        # Before Python 3.13, a thread counts as ended after a signal has interrupted its join.
        while self._thread.is_alive():
            time.sleep(0.1)

    def close(self) -> None:
        """Stop the server and release its port."""
        self._server.stop()
        self._thread.join(SHUTDOWN_SECONDS)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def should_log(record: logging.LogRecord) -> bool:
    """Return whether a log record should be written: all but Ctrl-C and simulated faults."""
    kind = record.exc_info[0] if record.exc_info else None
    is_interrupt = kind is not None and issubclass(kind, KeyboardInterrupt)
    # The faults "hang" and "truncate" send no complete answer.
    return not (is_interrupt or str(record.msg).startswith("ASGI callable returned without"))


def check_origins(origins: Collection[str]) -> list[str]:
    """Return the *origins* in lower case, or raise UsageError for one that is not an origin."""
    listed = [origins] if isinstance(origins, str) else list(origins)
    for origin in listed:
        address = urlsplit(origin)
        is_origin = address.scheme in {"http", "https"} and address.hostname is not None
        if not is_origin or f"{address.scheme}://{address.netloc}" != origin or "@" in origin:
            raise UsageError(
                f"{shorten(origin)} is not an origin", hint="Write 'http://localhost:3000'"
            )
    return [origin.lower() for origin in listed]


def resolve_limits(limits: Sequence[str], rate: int | None, wire: Wire) -> dict[str, Limits]:
    """Return the limits of each tier: those of *limits*, with *rate* requests per second."""
    if rate is not None and rate < 1:
        raise UsageError(
            f"rate={rate!r} permits no request", hint="Use 1 or more requests per second"
        )
    by_tier = parse_limits(limits)
    if rate is not None:
        return {tier: replace(by_tier.get(tier, Limits()), second=rate) for tier in PLANS}
    if wire == "public" and not by_tier:
        # The public service sends rate-limit headers with every answer.
        return dict.fromkeys(PLANS, Limits())
    return by_tier


def bind_socket(port: int) -> socket.socket:
    """Return a socket on a loopback *port*; raise UsageError if the port is in use."""
    # asyncio sets TCP_NODELAY only if the socket's protocol is TCP. Without TCP_NODELAY, each
    # answer on a keep-alive connection waits 40 ms for an acknowledgement.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
    except OSError as error:
        bound.close()
        raise UsageError(
            f"port {port} cannot be used ({error.strerror})",
            hint="Choose another port, or 0 for any free port",
        ) from None
    return bound
