"""A server on loopback that gives prepared answers and keeps what was asked."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Replay(ThreadingHTTPServer):
    """Answers a request line with the bytes that *replies* have for it, or for everything else."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, replies):
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies = replies
        self.status = 200
        self.arrived = []
        self.posted = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = f"{self.command} {self.path}"
        self.server.arrived.append(asked)
        self.server.posted.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        reply = self.server.replies.get(asked, self.server.replies.get("*"))
        self.send_response(400 if reply is None else self.server.status)
        reply = reply or b'{"status": "ERROR: not prepared for this", "data": null}'
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *args):
        """Keep quiet."""


@contextmanager
def replaying(replies):
    """Run a server with these replies."""
    server = Replay(replies)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
