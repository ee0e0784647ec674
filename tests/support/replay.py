"""A loopback server that sends prepared answers and records requests."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Replay(ThreadingHTTPServer):
    """Answers a request line with its bytes in *replies*, or with those of ``"*"``.

    A key may also be a request line and a JSON body, as formatted by `format_request`. A reply may
    be bytes; or status, headers and bytes; or a function that returns either for the JSON body.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, replies):
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies = replies
        self.status = 200
        self.arrived = []
        self.posted = []
        self.accepted = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave in one write: two make the client wait for 40 ms

    def do_GET(self):
        line = f"{self.command} {self.path}"
        self.server.arrived.append(line)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.posted.append(body)
        self.server.accepted.append(self.headers["Accept"])
        replies = self.server.replies
        reply = replies.get(line, replies.get("*"))
        if body:
            reply = replies.get(format_request(line, json.loads(body)), reply)
        if callable(reply):
            reply = reply(json.loads(body))
        status, headers, reply = reply if isinstance(reply, tuple) else (None, {}, reply)
        self.send_response(status or (400 if reply is None else self.server.status))
        for name, text in headers.items():
            self.send_header(name, text)
        reply = reply or b'{"status": "ERROR: not prepared for this", "data": null}'
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *args):
        """Write no log."""


def format_request(line, body):
    """Return a request line and its JSON body as one text; equal requests give equal text."""
    return f"{line} {json.dumps(body, sort_keys=True)}"


@contextmanager
def replaying(replies):
    """Run a server that sends *replies*."""
    server = Replay(replies)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
