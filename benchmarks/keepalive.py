"""Latency of the local explorer on a kept-alive connection, with real HTTP clients.

The server runs in a process of its own. Each client sends small requests one after another over
one connection. The comparison is a minimal Starlette application with a constant body, in the same
process layout: the lower limit of what this web server can do. Both alternate, request by request.
Then two loads of many small requests run against the local explorer, in one process.
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
from itertools import cycle, islice
from typing import TYPE_CHECKING

import httpx
import requests
from sizes import choose

import beaconframes as bf
from beaconframes.simulator import open_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROUNDS = choose(500, 5)
WARM_UP = 20
MINIMAL = """
import socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

def answer(request):
    return Response(b'{"status":"OK","data":[]}', media_type="application/json")

listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
listener.listen()
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


def find_medians(client: str, urls: Iterable[str], paths: Iterable[str]) -> list[float]:
    """Return the median milliseconds of a request to each server, on one connection each."""
    sends = [CLIENTS[client](url) for url in urls]
    spent: list[list[float]] = [[] for _ in sends]
    for path in paths:
        for send, seconds in zip(sends, spent, strict=True):
            start = time.perf_counter()
            send(path)
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds[WARM_UP:]) * 1e3 for seconds in spent]


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


def time_load(load: Callable[[], object]) -> str:
    """Return the seconds of one call, and the seconds of CPU."""
    start, start_of_cpu = time.perf_counter(), time.process_time()
    load()
    spent, cpu = time.perf_counter() - start, time.process_time() - start_of_cpu
    return f"{spent:.2f} s ({cpu:.2f} s of CPU)"


def main() -> None:
    """Print the median latency of each client and path, and the durations of two loads."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    sample = open_sample(validators=choose(2_000, None))
    epoch = sample.meta["finalized_epoch"] - 20
    slot = 32 * epoch
    cases = {path: [path] for path in ("latestState", "validator/5", f"epoch/{epoch}")}
    cases |= {"slot, always one": [f"slot/{slot}"]}
    cases |= {"slot, each another": [f"slot/{slot - n}" for n in range(ROUNDS + WARM_UP)]}
    serve = ("-m", "beaconframes", "serve", str(sample.path), "--port", "0")
    with run_server(*serve) as url, run_server("-c", MINIMAL) as minimal:
        print(f"{'':<20}{'client':<12}{'ours ms':>9}{'minimal ms':>12}{'times':>7}   medians")
        for case, paths in cases.items():
            sent = [f"/api/v1/{path}" for path in islice(cycle(paths), ROUNDS + WARM_UP)]
            for name in CLIENTS:
                ours, limit = find_medians(name, (url, minimal), sent)
                print(f"{case:<20}{name:<12}{ours:>9.2f}{limit:>12.2f}{ours / limit:>7.1f}")
    with bf.local(sample):
        slots = time_load(lambda: bf.load_slots(range(slot, slot + choose(300, 3))))
        days = time_load(lambda: bf.load_yield_index(since=0))
        print(f"load_slots of 300 slots: {slots}; yield index of all days: {days}")


if __name__ == "__main__":
    main()
