"""Latency of the local explorer on a kept-alive connection, with real HTTP clients.

The server runs in a process of its own. Each client sends small requests one after another over
one connection. The comparison is a minimal Starlette application with a constant body, in the same
process layout: the lower limit of what this web server can do. Then two loads of many small
requests run against the local explorer.
"""

from __future__ import annotations

import argparse
import re
import socket
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import requests

import beaconframes as bf
from beaconframes.simulator import open_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = 500
MINIMAL = """
import socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

def answer(request):
    return Response(b'{"status":"OK","data":[]}', media_type="application/json")

listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
app = Starlette(routes=[Route("/{path:path}", answer)])
server = uvicorn.Server(uvicorn.Config(app, http="h11", lifespan="off", log_level="error"))
server.run([listener])
"""


@contextmanager
def run_server(*command: str) -> Iterator[str]:
    """Run a server in another process, and return its address."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        match = re.search(r"http://[0-9.:]+", process.stdout.readline())
        assert match is not None
        yield match[0]
    finally:
        process.terminate()
        process.wait(10)


def open_socket(url: str) -> Callable[[str], object]:
    """Return a function that sends one request over one socket."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(path: str) -> None:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(1 << 16)
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]
        while len(body) < length:
            body += connection.recv(1 << 16)

    return send


def find_median(client: str, url: str, path: str) -> float:
    """Return the median milliseconds of a request on one connection."""
    send = CLIENTS[client](url)
    for _ in range(20):
        send(path)
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        send(path)
        spent.append(time.perf_counter() - start)
    return statistics.median(spent) * 1e3


def open_with_httpx(url: str) -> Callable[[str], object]:
    """Return a function that sends one request with httpx."""
    return httpx.Client(base_url=url).get


def open_with_requests(url: str) -> Callable[[str], object]:
    """Return a function that sends one request with requests."""
    session = requests.Session()
    return lambda path: session.get(url + path)


CLIENTS = {
    "raw socket": open_socket,
    "httpx": open_with_httpx,
    "requests": open_with_requests,
}


def time_load(load: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    load()
    return time.perf_counter() - start


def main() -> None:
    """Print the median latency of each client and path, and the durations of two loads."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    sample = open_sample()
    epoch = sample.meta["finalized_epoch"] - 20
    slot = 32 * epoch
    paths = ("latestState", "validator/5", f"epoch/{epoch}", f"slot/{slot}")
    serve = ("-m", "beaconframes", "serve", str(sample.path), "--port", "0")
    with run_server(*serve) as url, run_server("-c", MINIMAL) as minimal:
        print(f"{'':<24}{'client':<12}{'ours ms':>9}{'minimal ms':>12}{'times':>7}   medians")
        for path in (f"/api/v1/{path}" for path in paths):
            for name in CLIENTS:
                measured, limit = find_median(name, url, path), find_median(name, minimal, path)
                print(f"{path:<24}{name:<12}{measured:>9.2f}{limit:>12.2f}{measured / limit:>7.1f}")
    with bf.local(sample):
        slots = time_load(lambda: bf.load_slots(range(slot, slot + 300)))
        days = time_load(lambda: bf.load_yield_index(since=0))
        print(f"load_slots of 300 slots {slots:.2f} s, yield index of all days {days:.2f} s")


if __name__ == "__main__":
    main()
