"""A server with faults on demand, on raw sockets so that it can break any rule of HTTP.

Without a fault its responses are correct. A fault is written "429_seconds?retry_after=2&times=1":
its name, its parameters, and for how many requests it holds (all, without `times`). The server
records each request with the time of its arrival, by a clock that the client does not share.

With an `upstream` it forwards the requests to that server, so that a fault can change its rows.
A fault with `path` holds only for requests whose target contains that text.
"""

from __future__ import annotations

import contextlib
import email.utils
import gzip
import json
import random
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl

from beaconframes.http.rate_limiter import Clock

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

ROWS = [{"epoch": epoch, "balance": 32_000_000_000 + epoch} for epoch in range(60)]
PAGING = {"next_cursor": "abc"}
LIMITS = ("ratelimit-limit", "x-ratelimit-limit-second", "x-ratelimit-limit-month")
ABSURD = (
    "0", "-1", "-99999", "NaN", "inf", "-inf", "Infinity", "soon", "", "1.5", "1e3", "0x10",
    "+5", "1_0", "\u0663", "5, 10", "9" * 5_000, "Thu, 01 Jan 1970 00:00:00 GMT", "3600",
    "Fri, 31 Dec 9999 23:59:59 GMT",
)  # fmt: skip


class StillClock(Clock):
    """A clock that only waiting moves."""

    def __init__(self, start: float = 1000.0) -> None:
        self.time = start

    def now(self) -> float:
        return self.time

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        self.time += seconds


class QuickClock(Clock):
    """A clock that runs five times as fast, for tests that have to wait for real."""

    SPEED = 5

    def now(self) -> float:
        return time.monotonic() * self.SPEED

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self.SPEED)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(seconds / self.SPEED)


class SteppedClock(Clock):
    """A clock that only `move` moves; waiting threads wait for it."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._read: dict[int, float] = {}
        self._waits: dict[int, float] = {}
        """By thread, the time at which it last found that it has to wait."""

    def now(self) -> float:
        self._read[threading.get_ident()] = self.time
        return self.time

    def sleep(self, seconds: float) -> None:
        self._note_wait()
        time.sleep(0.001)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        self._note_wait()
        condition.wait(0.001)

    def _note_wait(self) -> None:
        thread = threading.get_ident()
        self._waits[thread] = self._read[thread]

    def await_waiting(self, threads: int) -> None:
        """Return when this number of threads wait for the clock to move."""
        end = time.monotonic() + 60
        while list(self._waits.values()).count(self.time) < threads:
            assert time.monotonic() < end, "too few threads wait"
            time.sleep(0.001)

    def move(self, seconds: float) -> None:
        self.time += seconds


class FastClock(Clock):
    """A clock on which waiting takes no time; it sums up the waits."""

    def __init__(self) -> None:
        self.waited = 0.0

    def now(self) -> float:
        return time.monotonic() + self.waited

    def sleep(self, seconds: float) -> None:
        self.waited += seconds

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        self.waited += seconds


@dataclass
class Seen:
    """One request, as the server received it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    arrived: float
    answered: float = 0.0
    status: int = 0
    response_headers: dict[str, str] = field(default_factory=dict)

    @property
    def v2(self) -> bool:
        return "/api/v2/" in self.target

    @property
    def key(self) -> str:
        return self.headers.get("apikey", "") or self.headers.get("authorization", "")


class Connection:
    """The connection of one request, as a fault uses it."""

    def __init__(self, sock: socket.socket, seen: Seen, stopping: threading.Event) -> None:
        self._socket = sock
        self._seen = seen
        self.stopping = stopping
        self.open = True

    def raw(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(data)

    def head(self, status: int, headers: dict[str, Any]) -> None:
        self._seen.status = status
        self._seen.response_headers = {name.lower(): str(text) for name, text in headers.items()}
        self._seen.answered = time.monotonic()
        lines = [f"HTTP/1.1 {status} Something", *(f"{n}: {text}" for n, text in headers.items())]
        self.raw("\r\n".join([*lines, "", ""]).encode("utf-8"))

    def respond(self, status: int, body: bytes = b"", **headers: Any) -> None:
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        if status != 204:
            sent = {"Content-Type": "application/json", "Content-Length": len(body)} | sent
        self.head(status, sent)
        self.raw(body)

    def hang_up(self) -> None:
        self.open = False

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.open = False


class FaultServer:
    """Serves on a free port of this machine, inside a ``with`` block."""

    def __init__(
        self,
        fault: str = "",
        *,
        latency: float = 0.0,
        tls: ssl.SSLContext | None = None,
        upstream: str = "",
    ) -> None:
        self.upstream = upstream
        self.seen: list[Seen] = []
        self.latency = latency
        self.hold: threading.Event | None = None
        """If given, requests are answered once it is set."""
        self._tls = tls
        self.most_open = 0
        self._open = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.fault(fault)

    def fault(self, name: str) -> None:
        """Use this fault from now on; without a name, none."""
        what, _, text = name.partition("?")
        self._parameters = dict(parse_qsl(text, keep_blank_values=True))
        self._left = int(self._parameters.get("times", 10**9)) if what else 0
        self._do: Callable[[Connection, Seen, bytes, dict[str, str]], None] = FAULTS[what or "204"]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            # Closing alone would not wake the thread that waits in accept.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        with self._lock:
            self._open += 1
            self.most_open = max(self.most_open, self._open)
        with contextlib.suppress(OSError), accepted, self._secured(accepted) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (seen := _receive(sock)) is not None:
                with self._lock:
                    self.seen.append(seen)
                    is_faulty = self._left > 0 and self._parameters.get("path", "") in seen.target
                    self._left -= is_faulty
                if self.latency:
                    time.sleep(self.latency)
                if self.hold is not None:
                    self.hold.wait(60)
                connection = Connection(sock, seen, self._stopping)
                status, good = self._good(seen)
                if is_faulty and status == 200:
                    self._do(connection, seen, good, self._parameters)
                else:
                    connection.respond(status, good)
                if not connection.open:
                    break
        with self._lock:
            self._open -= 1

    def _good(self, seen: Seen) -> tuple[int, bytes]:
        if not self.upstream:
            return 200, v2_body() if seen.v2 else v1_body()
        forwarded = urllib.request.Request(
            self.upstream + seen.target, data=seen.body or None, method=seen.method
        )
        try:
            with urllib.request.urlopen(forwarded) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def _secured(self, sock: socket.socket) -> socket.socket:
        return sock if self._tls is None else self._tls.wrap_socket(sock, server_side=True)


def _receive(sock: socket.socket) -> Seen | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = sock.recv(65_536)
        if not part:
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {n.lower(): text for n, _, text in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += sock.recv(65_536)
    method, target, _ = first.split(" ")
    return Seen(method, target, headers, body, time.monotonic())


# --- counts of the received requests ------------------------------------------------------------


def max_requests_in_window(seen: list[Seen], seconds: float = 1.0) -> int:
    """Return the most requests that arrived in any window of this length."""
    moments = sorted(s.arrived for s in seen)
    return max(sum(t <= other < t + seconds for other in moments) for t in moments)


# --- bodies ------------------------------------------------------------------------------------


def v1_body(data: Any = ROWS, **other: Any) -> bytes:
    return json.dumps({"status": "OK", "data": data} | other).encode()


def v2_body(data: Any = ROWS, **other: Any) -> bytes:
    return json.dumps({"data": data, "paging": PAGING} | other).encode()


def ok(data: bytes) -> bytes:
    return b'{"status": "OK", "data": ' + data + b"}"


def error_body(seen: Seen, text: str) -> bytes:
    return json.dumps(
        {"error": text} if seen.v2 else {"status": f"ERROR: {text}", "data": None}
    ).encode()


PAGE = b"<!DOCTYPE html><html><head><style>b{}</style></head><body><b>Sorry</b></body></html>"
CHALLENGE = (
    b"<html><title>Just a moment...</title><script src='/cdn-cgi/challenge-platform'></html>"
)


def without(seen: Seen, good: bytes, name: str) -> bytes:
    return json.dumps({n: v for n, v in json.loads(good).items() if n != name}).encode()


# --- the faults: functions of connection, request, correct body and parameters ------------------

P = dict[str, str]


def too_many(connection: Connection, body: bytes = b"Too Many Requests\n", **headers: Any) -> None:
    connection.respond(429, body, **({"Content_Type": "text/plain; charset=utf-8"} | headers))


def by_date(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    now = time.time() + float(p.get("skew", 0))
    too_many(
        connection,
        Date=email.utils.formatdate(now, usegmt=True),
        Retry_After=email.utils.formatdate(now + float(p["delta"]), usegmt=True),
    )


def storm(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    too_many(connection, **({"retry-after": p["retry_after"]} if "retry_after" in p else {}))


def spent(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    reset = p.get("reset", str(14 * 86_400))
    too_many(
        connection,
        Date="Sat, 21 Nov 2026 12:00:00 GMT",
        ratelimit_window=p.get("window", "month"),
        ratelimit_limit=1000,
        ratelimit_remaining=0,
        ratelimit_reset=reset,
        retry_after=reset,
    )


def failed(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    kind = p.get("body", "json")
    body = {"html": PAGE, "json": error_body(seen, "internal server error"), "empty": b""}[kind]
    headers: dict[str, Any] = {"Content_Type": "text/html"} if kind == "html" else {}
    # Every response of the service has these headers; here they do not request a wait.
    headers |= {"ratelimit_reset": 1, "ratelimit_window": "second", "ratelimit_limit": 1000}
    if "retry_after" in p:
        headers["Retry_After"] = p["retry_after"]
    connection.respond(int(p.get("code", 503)), body, **headers)


def refused(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.respond(int(p["code"]), error_body(seen, p.get("text", "no")))


def moved(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.respond(int(p.get("code", 302)), b"", Location=p.get("to", seen.target))


def drop(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.hang_up()


def reset(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.reset()


def cut_headers(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    connection.hang_up()


def cut_body(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.head(200, {"Content-Length": len(good)})
    connection.raw(good[: len(good) // 2])
    connection.hang_up()


def cut_chunks(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.head(200, {"Transfer-Encoding": "chunked"})
    connection.raw(b"%x\r\n%s\r\n" % (len(good) // 2, good[: len(good) // 2]))
    connection.hang_up()


def bad_chunk(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.head(200, {"Transfer-Encoding": "chunked"})
    connection.raw(b"zz\r\n%s\r\n0\r\n\r\n" % good)
    connection.hang_up()


def garbage(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.raw(bytes(range(256)) * 4)
    connection.hang_up()


def gzip_corrupt(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    packed = bytearray(gzip.compress(good))
    packed[len(packed) // 2] ^= 0xFF
    connection.respond(200, bytes(packed), Content_Encoding="gzip")


def gzip_lie(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.respond(200, good, Content_Encoding="gzip")


def gzip_truncated(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    packed = gzip.compress(good)
    connection.respond(
        200, packed[: int(len(packed) * float(p["fraction"]))], Content_Encoding="gzip"
    )


def gzip_without_trailer(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.respond(200, gzip.compress(good)[:-8], Content_Encoding="gzip")


def gzipped(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.respond(200, gzip.compress(good), Content_Encoding="gzip")


def gzip_bomb(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.respond(200, gzip.compress(bytes(int(p["mb"]) * 2**20), 9), Content_Encoding="gzip")


def gzip_nested(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    layers = int(p["layers"])
    for _ in range(layers):
        good = gzip.compress(good)
    connection.respond(200, good, Content_Encoding=", ".join(["gzip"] * layers))


def no_length_close(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.head(200, {"Connection": "close"})
    connection.raw(good[: int(len(good) * float(p["fraction"]))])
    connection.hang_up()


def length_short(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.head(200, {"Content-Length": int(len(good) * float(p["fraction"]))})
    connection.raw(good)
    connection.hang_up()


def truncated_json(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.respond(200, good[: int(len(good) * float(p["fraction"]))])


def hang_headers(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.stopping.wait(60)
    connection.hang_up()


def hang_body(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.head(int(p.get("code", 200)), {"Content-Length": len(good)})
    connection.raw(good[:10])
    hang_headers(connection, seen, good, p)


def drip(connection: Connection, data: bytes, p: P) -> None:
    size = int(p.get("bytes_per_chunk", 1))
    for start in range(0, len(data), size):
        connection.raw(data[start : start + size])
        if connection.stopping.wait(float(p.get("ms", 50)) / 1000):
            break
    connection.hang_up()


def slow_drip(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.head(200, {"Content-Length": len(good)})
    drip(connection, good, p)


def slow_headers(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    drip(connection, b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000, p)


def header_bomb(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.respond(200, good, X="x" * 2**20)


def cookies(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    connection.head(200, {"Content-Length": len(good), "Set-Cookie": "session=abc; Path=/"})
    connection.raw(good)


def whole(text: bytes) -> Callable[[Connection, Seen, bytes, P], None]:
    """Return the fault that responds with 200 and exactly this body."""
    return lambda connection, seen, good, p: connection.respond(200, text)


def key_echo(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    text = f"{'x' * int(p.get('before', 0))} you sent {seen.key} to {seen.target}"
    connection.respond(
        int(p.get("code", 400)),
        error_body(seen, text),
        X_Echo=seen.key,
        Location=f"http://{seen.key.split(' ')[-1]}.example/",
    )


def bitflip(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    """Flip one bit of the body, which the `seed` selects."""
    dice = random.Random(int(p["seed"]))
    place, bit = dice.randrange(len(good)), 1 << dice.randrange(8)
    connection.respond(200, good[:place] + bytes([good[place] ^ bit]) + good[place + 1 :])


def page_overlap(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
    """Start each page after the first with the last three rows of the page before."""
    envelope = json.loads(good)
    rows = envelope["data"]
    if json.loads(seen.body).get("cursor"):
        envelope["data"] = [*json.loads(p["before"]), *rows]
    p["before"] = json.dumps(rows[-3:])
    connection.respond(200, json.dumps(envelope).encode())


def changed_rows(
    change: Callable[[list[Any], P], list[Any]],
) -> Callable[[Connection, Seen, bytes, P], None]:
    """Return the fault that responds with changed rows."""

    def respond(connection: Connection, seen: Seen, good: bytes, p: P) -> None:
        envelope = json.loads(good)
        rows = envelope["data"]
        envelope["data"] = change(rows if isinstance(rows, list) else [rows], p)
        connection.respond(200, json.dumps(envelope).encode())

    return respond


def conflicting(rows: list[Any], p: P) -> list[Any]:
    return [*rows, rows[0] | {p["field"]: rows[0][p["field"]] + 1}]


def foreign(rows: list[Any], p: P) -> list[Any]:
    return [*rows, rows[0] | {p["field"]: int(p["value"])}]


def without_cells(rows: list[Any], p: P) -> list[Any]:
    """Return the rows without those whose `fields` have the values of one of the `cells`."""
    names = p["fields"].split(",")
    cells = {tuple(map(int, cell.split("-"))) for cell in p["cells"].split(",")}
    return [row for row in rows if tuple(int(row[name]) for name in names) not in cells]


FAULTS: dict[str, Callable[[Connection, Seen, bytes, P], None]] = {
    "429_seconds": lambda connection, seen, good, p: too_many(
        connection, Retry_After=p["retry_after"]
    ),
    "429_date": by_date,
    "429_reset_only": lambda connection, seen, good, p: too_many(
        connection, ratelimit_reset=p["reset"]
    ),
    "429_none": lambda connection, seen, good, p: too_many(connection),
    "429_absurd": lambda connection, seen, good, p: too_many(
        connection, Retry_After=ABSURD[int(p["index"])]
    ),
    "429_month": spent,
    "429_revoked": lambda connection, seen, good, p: too_many(
        connection, **dict.fromkeys(LIMITS, 0)
    ),
    "429_html": lambda connection, seen, good, p: too_many(
        connection, PAGE, Content_Type="text/html"
    ),
    "429_json": lambda connection, seen, good, p: too_many(
        connection, error_body(seen, "slow down" * 100)
    ),
    "429_plain": lambda connection, seen, good, p: too_many(connection),
    "429_storm": storm,
    "5xx": failed,
    "db_error_400": lambda connection, seen, good, p: connection.respond(
        400, error_body(seen, "could not retrieve db results")
    ),
    "status": refused,
    "401": lambda connection, seen, good, p: connection.respond(
        401, error_body(seen, "invalid key")
    ),
    "403_tier": lambda connection, seen, good, p: connection.respond(
        403, error_body(seen, "not in your tier")
    ),
    "403_challenge": lambda connection, seen, good, p: connection.respond(
        403, CHALLENGE, Content_Type="text/html"
    ),
    "redirect": moved,
    "redirect_loop": moved,
    "drop": drop,
    "rst": reset,
    "disconnect_mid_headers": cut_headers,
    "disconnect_mid_body": cut_body,
    "chunk_truncated": cut_chunks,
    "bad_chunk": bad_chunk,
    "garbage": garbage,
    "gzip": gzipped,
    "gzip_corrupt": gzip_corrupt,
    "gzip_lie": gzip_lie,
    "gzip_truncated": gzip_truncated,
    "gzip_without_trailer": gzip_without_trailer,
    "gzip_bomb": gzip_bomb,
    "gzip_nested": gzip_nested,
    "no_length_close": no_length_close,
    "length_short": length_short,
    "truncated_json": truncated_json,
    "hang_headers": hang_headers,
    "hang_body": hang_body,
    "slow_drip": slow_drip,
    "slow_headers": slow_headers,
    "header_bomb": header_bomb,
    "cookies": cookies,
    "200_html": lambda connection, seen, good, p: connection.respond(
        200, PAGE, Content_Type="text/html"
    ),
    "204": lambda connection, seen, good, p: connection.respond(204),
    "empty_200": whole(b""),
    "bitflip": bitflip,
    "body": lambda connection, seen, good, p: connection.respond(200, bytes.fromhex(p["hex"])),
    "error_200": lambda connection, seen, good, p: connection.respond(
        200, error_body(seen, "no luck today")
    ),
    "page_overlap": page_overlap,
    "rows_drop": changed_rows(
        lambda rows, p: [
            row for n, row in enumerate(rows) if n % int(p.get("every", 10)) != int(p.get("at", 3))
        ]
    ),
    "rows_lack": changed_rows(without_cells),
    "rows_empty": changed_rows(lambda rows, p: []),
    "rows_dup": changed_rows(lambda rows, p: [*rows, *rows[::3]]),
    "rows_shuffle": changed_rows(lambda rows, p: [*rows[1::2], *reversed(rows[::2])]),
    "rows_conflict": changed_rows(conflicting),
    "rows_extra": changed_rows(foreign),
    "key_echo": key_echo,
    "learn": lambda connection, seen, good, p: connection.respond(
        200, good, ratelimit_limit=p["limit"], ratelimit_window=p.get("window", "second")
    ),
}
