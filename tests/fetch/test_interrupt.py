"""Ctrl-C ends a load of many requests."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

import pytest

LOAD = """
import polars
import beaconframes as bf
from beaconframes.endpoint import Head

head = Head(epoch=1000, finalized_epoch=998, slot=32_031)
explorer = bf.Explorer("http://127.0.0.1:{port}", rate={rate}, store=False, head=head)
print("started", flush=True)
bf.load_epochs(since=0, until=300, explorer=explorer)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize(
    "rate",
    [
        pytest.param(None, id="one request", marks=pytest.mark.more),
        pytest.param(1000, id="parallel requests"),
    ],
)
def test_ctrl_c_ends_a_load_of_many_requests(rate):
    """C1: the service never answers; SIGINT ends the process while it waits for 301 epochs."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        code = LOAD.format(port=silent.getsockname()[1], rate=rate)
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert "started\n" == process.stdout.readline()
            silent.settimeout(20)
            connection, _ = silent.accept()
            time.sleep(0.3)
            sent_at = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
            seconds = time.monotonic() - sent_at
        connection.close()
    assert -signal.SIGINT == process.returncode
    assert errors.strip().endswith("KeyboardInterrupt")
    # 2 s on an idle machine; without the fix it takes until the read timeout of 30 s.
    assert 10 > seconds
