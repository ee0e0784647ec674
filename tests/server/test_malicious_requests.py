"""Requests that no client of the API sends: the local explorer refuses them and stays available."""

from __future__ import annotations

import gc
import gzip
import http.client
import inspect
import json
import os
import random
import socket
import string
import sys
import threading
import urllib.parse
from pathlib import Path

import httpx
import polars as pl
import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes.cli import commands
from beaconframes.dataset import Dataset
from beaconframes.server import Server
from beaconframes.server.service import Service
from beaconframes.v1 import ENDPOINTS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

PATHS = [endpoint.path for endpoint in (*ENDPOINTS, *ENDPOINTS_V2)]
DOCUMENTED = {200, 400, 401, 403, 404, 405, 421, 429}
PIECES = (
    "0", "1", "-1", "latest", "finalized", "1,2", "," * 9, "9" * 40, "1.5", "1e9", "NaN", "true",
    "null", "0x", "0x" + "ab" * 48, "%00", "%2e%2e", "..", "%2f", "%ff%fe", "%F0%9F%98%80", "'",
    '"', "<script>",
    "%0d%0aX:1", ";x", "&limit=", "?limit=1", "limit=101", "epoch=-5", "[]", "{}", " ", "*", "\\",
)  # fmt: skip
SQL = (
    "1;DROP TABLE validators", "1 OR 1=1", "1' OR '1'='1", "read_text('/etc/passwd')", "1--", "1/*",
    '1" UNION SELECT 1', "pg_sleep(9)", "${7*7}", "{{7*7}}", "/etc/passwd", "file:///etc/passwd",
)  # fmt: skip
TRAVERSALS = (
    "/%2e%2e/%2e%2e/etc/passwd", "/../../etc/passwd", "/..%5c..%5cetc%5cpasswd",
    "/..\\..\\etc\\passwd", "/api/v1/%00",
    "//127.0.0.1/etc/passwd", "/api/v1/epoch/1;x", "/api/v1/epoch/%c0%ae%c0%ae",
    "/api/v1/epoch/..%2f..%2fmeta", "/api/v1/chart/../../../etc/passwd", "/api/v1/chart/%2e%2e%2fx",
    "/api/v1/validator/" + ",".join(map(str, range(100_000))),
)  # fmt: skip


def address(server):
    """Return host and port of a server."""
    return "127.0.0.1", int(server.url.rpartition(":")[2])


def exchange(server, request, *, timeout=60):
    """Send bytes on a new connection; return the status and the body, 0 if it is just closed."""
    with socket.create_connection(address(server), timeout=timeout) as connection:
        try:
            connection.sendall(request)
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status, response.read()
        except (ConnectionError, http.client.HTTPException):
            return 0, b""


def build_request(server, line, headers="", body=b""):
    """Return the bytes of a request with the host of *server*."""
    host, port = address(server)
    return f"{line} HTTP/1.1\r\nHost: {host}:{port}\r\n{headers}\r\n".encode("latin-1") + body


def assert_available(server):
    """Assert that an ordinary request is answered."""
    status, body = exchange(server, build_request(server, "GET /api/v1/epoch/3"))

    assert (200, 3) == (status, json.loads(body)["data"]["epoch"])


@pytest.mark.parametrize(
    "count",
    [
        120,
        pytest.param(800, marks=pytest.mark.more),
        pytest.param(10_000, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("wire", ["spec", "public"])
def test_random_requests_have_documented_statuses(request, wire, count):
    """S01, S16: random requests have JSON answers with documented statuses, and no 5xx."""
    server = request.getfixturevalue("running" if wire == "spec" else "public")
    dice = random.Random(count)
    connection = http.client.HTTPConnection(*address(server), timeout=60)
    for _ in range(count):
        path = dice.choice(PATHS)
        while "{" in path:
            before, _, rest = path.partition("{")
            piece = urllib.parse.quote(dice.choice(PIECES), safe="%,'<>;&?[]")
            path = before + piece + rest.partition("}")[2]
        query = "&".join(
            f"{dice.choice(['limit', 'epoch', 'offset', 'apikey', 'x', 'startx'])}="
            f"{urllib.parse.quote(dice.choice(PIECES), safe='%')}"
            for _ in range(dice.randrange(3))
        )
        method = dice.choice(["GET", "GET", "POST", "HEAD", "PUT", "OPTIONS", "TRACE", "BREW"])
        body = dice.choice([b"", b"{", b'{"chain": 7}', b"[" * 99_000, os.urandom(40), b"null"])
        connection.request(method, f"{path}?{query}" if query else path, body)
        response = connection.getresponse()
        content = response.read()

        assert response.status in DOCUMENTED, (method, path, query, body[:40])
        assert response.headers.get("server") is None
        assert response.headers["x-content-type-options"] == "nosniff"
        # The public wire permits 1,000 requests per second, and refuses more with a plain text.
        if response.status not in (200, 429) and method != "HEAD":
            assert response.headers["content-type"] == "application/json"
            assert {"status", "data"} == set(json.loads(content)) or ["error"] == list(
                json.loads(content)
            )
    connection.close()


@pytest.mark.parametrize("path", ["/api/v1/validator", "/api/v2/ethereum/validators"])
@pytest.mark.parametrize("text", [b"[", b'{"a":'])
def test_a_nested_body_is_not_decoded(running, path, text):
    """Where py_ecc has raised the limit of recursion, decoding it would end the process."""
    sys.setrecursionlimit(100_000)
    answer = httpx.post(running.url + path, content=text * 99_000)

    assert 400 == answer.status_code


def test_random_bytes_are_refused(running):
    """S01: bytes that are no request close the connection or have status 400."""
    dice = random.Random(5)
    for length in range(0, 60, 5):
        letters = "".join(dice.choices(string.printable, k=length)).encode()
        status, _ = exchange(running, letters + b"\r\n\r\n")
        assert status in {0, 400}
    assert_available(running)


def test_malformed_http_is_refused(running, monkeypatch):
    """S07: oversized, contradictory and unusual requests have a 4xx or are closed."""
    with monkeypatch.context() as patch:
        patch.setattr("beaconframes.server.uvicorn_server.REQUEST_SECONDS", 0.3)
        found = send_malformed_requests(running)

    assert {} == {name: s for name, s in found.items() if not (s == 0 or 400 <= s < 500)}
    assert_available(running)


def send_malformed_requests(running):
    """Return the status of each request; 0 if its connection was just closed."""
    json_body = b'{"indicesOrPubkey": "1"}'
    bomb = gzip.compress(b'{"indicesOrPubkey": "' + b" " * 2**22)
    post = "POST /api/v1/validator"
    many = "".join(f"X-{number}: 1\r\n" for number in range(10_000))
    requests = {
        "a header of a megabyte": ("GET /api/v1/epoch/1", f"X: {'a' * 2**20}\r\n", b""),
        "10,000 headers": ("GET /api/v1/epoch/1", many, b""),
        "a body of 100 MB": (post, "Content-Length: 100000000\r\n", b"7" * 2**21),
        "a compressed bomb": (
            post, f"Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n", bomb,
        ),
        "a length that is too long": (post, "Content-Length: 999\r\n", json_body),
        "two lengths": (post, "Content-Length: 3\r\nContent-Length: 24\r\n", json_body),
        "a negative length": (post, "Content-Length: -1\r\n", json_body),
        "chunked with a length": (
            post, "Content-Length: 24\r\nTransfer-Encoding: chunked\r\n", json_body,
        ),
        "a chunk without a size": (post, "Transfer-Encoding: chunked\r\n", b"zz\r\n\r\n"),
        "CONNECT": ("CONNECT 127.0.0.1:1", "", b""),
        "TRACE": ("TRACE /api/v1/epoch/1", "", b""),
        "the address of another host": ("GET http://evil.example/api/v1/epoch/1", "", b""),
    }  # fmt: skip

    found = {
        name: exchange(running, build_request(running, *parts))[0]
        for name, parts in requests.items()
    }
    found["HTTP/0.9"] = exchange(running, b"GET /api/v1/epoch/1\r\n\r\n")[0]
    return found


def test_pipelined_requests_are_answered_in_order(running):
    """S07: a thousand requests of one client in one message have no effect on the others."""
    first = [build_request(running, f"GET /api/v1/nothing/{number}") for number in range(1_000)]
    last = build_request(running, "GET /api/v1/epoch/3", "Connection: close\r\n")
    with socket.create_connection(address(running), timeout=60) as connection:
        connection.sendall(b"".join([*first[:20], last]))
        answers = connection.makefile("rb").read()

    assert 20 == answers.count(b"HTTP/1.1 404")
    assert b'"epoch":3' in answers.rpartition(b"HTTP/1.1 200")[2].replace(b" ", b"")
    assert_available(running)


@pytest.mark.parametrize("path", TRAVERSALS, ids=range(len(TRAVERSALS)))
def test_no_path_reads_a_file(running, path):
    """S08: encoded, absolute and malformed paths are invalid or unknown."""
    status, body = exchange(running, build_request(running, f"GET {path}"))

    assert status in {0, 400, 404}
    assert b"root:" not in body


@pytest.mark.parametrize("path", ["validator/{}", "epoch/{}", "ens/lookup/{}", "slot/{}"])
def test_sql_is_an_invalid_value(running, path):
    """S09: SQL, templates and file names are invalid like any other word, and have no effect."""
    template = f"GET /api/v1/{path}"
    word, _ = exchange(running, build_request(running, template.format("word")))
    for text in SQL:
        quoted = urllib.parse.quote(text, safe="")
        status, body = exchange(running, build_request(running, template.format(quoted)))
        assert status in {word, 400, 404}, text
        assert b"root:" not in body
        assert b"<" not in body.replace(b"\\u003c", b"")
    assert_available(running)


def test_forged_cursors_are_refused(chain):
    """S11: forged, foreign and replayed cursors have status 400; no cursor contains a path."""
    body = {"chain": "mainnet", "slot": {"number": 5000}, "page_size": 3}
    (endpoint,) = (e for e in ENDPOINTS_V2 if e.name == "slot_withdrawals")

    def answer(service, **more):
        response = service.answer_v2(endpoint, json.dumps(body | more).encode(), "premium")
        return response.status_code, json.loads(bytes(response.body))

    service, other = Service(chain), Service(chain)
    status, page = answer(service)
    cursor = page["paging"]["next_cursor"]
    forged = [cursor[:-2], cursor[::-1], "AAAA" * 8, "../x", "1;DROP", "\u0663", "9" * 60, "="]

    assert 200 == status == answer(service, cursor=cursor)[0]
    assert {400} == {answer(service, cursor=text)[0] for text in forged}
    assert 400 == answer(other, cursor=cursor)[0]
    assert 400 == answer(service, cursor=cursor, slot={"number": 5001})[0]


def test_the_server_listens_on_loopback_only(chain):
    """S06: no option and no argument binds another address."""
    result = CliRunner().invoke(commands, ["serve", str(chain.path), "--host", "0.0.0.0"])

    assert 2 == result.exit_code
    assert "host" not in inspect.signature(Server).parameters
    with Server(chain) as server:
        assert server.url.startswith("http://127.0.0.1:")


def test_no_request_leaves_the_machine(chain, monkeypatch):
    """Q06, S13: loads and the local explorer connect to the explorer's address only."""
    opened = []
    connect = socket.socket.connect

    def record(self, target):
        opened.append(target)
        return connect(self, target)

    monkeypatch.setattr(socket.socket, "connect", record)
    with bf.local(chain) as local:
        bf.load_epochs(since=3, until=5)
        bf.load_chart("validators")
        bf.v2.load_slot("latest")
        bf.load_gas_fees()

        assert {address(local)} == set(opened)


@pytest.mark.more
def test_answers_are_of_one_version_of_the_dataset(tmp_path):
    """S12: rows that are added while a dataset is served change no answer in part."""
    from beaconframes.simulator import simulate

    dataset = simulate(tmp_path / "chain", validators=64, epochs=12, seed=3)
    with Server(dataset) as server:
        before = exchange(server, build_request(server, "GET /api/v1/epoch/3/slots"))
        found, is_done = [], threading.Event()

        def request_repeatedly():
            while not is_done.is_set():
                found.append(exchange(server, build_request(server, "GET /api/v1/epoch/3/slots")))

        thread = threading.Thread(target=request_repeatedly)
        thread.start()
        writer = Dataset.open(dataset.path)
        # As stored: hashes are numbers, from which texts are drawn when they are read.
        rows = pl.concat(
            pl.read_parquet(dataset.path / segment.path) for segment in writer.segments("blocks")
        )
        for _ in range(3):
            writer.write("blocks", [rows])
        is_done.set()
        thread.join()

    assert 200 == before[0]
    assert {before} == set(found)


@pytest.mark.more
def test_slow_connections_do_not_delay_other_clients(running, monkeypatch):
    """S03: a request is answered before any of 300 silent connections is closed."""
    monkeypatch.setattr("beaconframes.server.uvicorn_server.REQUEST_SECONDS", 600)
    silent = [socket.create_connection(address(running)) for _ in range(300)]
    try:
        for connection in silent[::3]:
            connection.sendall(b"POST /api/v1/validator HTTP/1.1\r\nContent-Length: 99\r\n")
        assert_available(running)
    finally:
        for connection in silent:
            connection.close()


@pytest.mark.more
def test_resources_do_not_grow_with_the_number_of_requests(chain):
    """S17: after 1,000 requests the server has as many threads, files and objects as before."""

    def count_resources():
        gc.collect()
        files = [*Path("/proc/self/fd").iterdir()]
        return threading.active_count(), len(files), len(gc.get_objects())

    with Server(chain) as server:
        connection = http.client.HTTPConnection(*address(server))

        def send(count):
            for number in range(count):
                connection.request("GET", f"/api/v1/validator/{number % 200}")
                connection.getresponse().read()

        send(200)
        threads, files, objects = count_resources()
        send(1_000)
        later = count_resources()
        connection.close()

    assert later[0] <= threads + 1
    assert later[1] <= files + 2
    # One object for each request would be 1,000.
    assert later[2] <= objects + 200
