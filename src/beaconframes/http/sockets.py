"""Connections whose every wait is bounded by the call that waits.

An HTTP library bounds the wait for each piece. A service that sends a byte now and then, in its
headers for example, would never be given up; and a thread that waits could not be told to stop.
"""

from __future__ import annotations

import math
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import httpcore

if TYPE_CHECKING:
    import ssl

CONNECTIONS = 8
TICK = 0.2
"""Seconds: how soon a silent read notices that its call was stopped."""

TimeLeft = Callable[[], float]
"""The seconds that a call still has; raises when it has none, or was stopped."""


def _endless() -> float:
    return math.inf


class Deadline(threading.local):
    """The time that the call of the present thread still has."""

    left: TimeLeft = staticmethod(_endless)

    def reset(self) -> None:
        """Forget the call: what is read now has all the time there is."""
        self.left = _endless


def open_pool(
    base_url: str, context: ssl.SSLContext | None, patience: Deadline
) -> httpcore.ConnectionPool:
    """Return a pool of connections to the service at *base_url*."""
    return httpcore.ConnectionPool(
        ssl_context=context,
        proxy=_proxy(base_url),
        max_connections=CONNECTIONS,
        max_keepalive_connections=CONNECTIONS,
        keepalive_expiry=5.0,
        network_backend=_Backend(patience),
    )


def _proxy(base_url: str) -> httpcore.Proxy | None:
    """Return the proxy that the environment wants, which never gets to see a key."""
    address = urlsplit(base_url)
    # A proxy reads what passes through plain http, so only a tunnel will do.
    if address.scheme != "https" or urllib.request.proxy_bypass(address.hostname or ""):
        return None
    wanted = urllib.request.getproxies()
    url = wanted.get("https") or wanted.get("all")
    if not url:
        return None
    proxy = urlsplit(url if "://" in url else f"http://{url}")
    port = f":{proxy.port}" if proxy.port else ""
    user = (unquote(proxy.username), unquote(proxy.password or "")) if proxy.username else None
    return httpcore.Proxy(f"{proxy.scheme}://{proxy.hostname}{port}", auth=user)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, patience: Deadline) -> None:
        self._plain = httpcore.SyncBackend()
        self._patience = patience

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        seconds = min(math.inf if timeout is None else timeout, self._patience.left())
        stream = self._plain.connect_tcp(
            host,
            port,
            timeout=None if math.isinf(seconds) else seconds,
            local_address=local_address,
            socket_options=socket_options,
        )
        return _Stream(stream, self._patience)


class _Stream(httpcore.NetworkStream):
    def __init__(self, plain: httpcore.NetworkStream, patience: Deadline) -> None:
        self._plain = plain
        self._patience = patience

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            seconds = min(end - time.monotonic(), self._patience.left())
            if seconds <= 0:
                raise httpcore.ReadTimeout("silent for too long")
            try:
                return self._plain.read(max_bytes, min(seconds, TICK))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._patience.left()
        self._plain.write(buffer, timeout)

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        seconds = min(math.inf if timeout is None else timeout, self._patience.left())
        stream = self._plain.start_tls(
            ssl_context, server_hostname, None if math.isinf(seconds) else seconds
        )
        return _Stream(stream, self._patience)

    def close(self) -> None:
        self._plain.close()

    def get_extra_info(self, info: str) -> Any:
        return self._plain.get_extra_info(info)
