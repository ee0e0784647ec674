"""Memory of a process: what the C library retains."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, threading
from beaconframes.memory import share_heap
{share}
threads = [threading.Thread(target=lambda: [bytes(600) for _ in range(100)]) for _ in range(3)]
for thread in threads:
    thread.start()
    thread.join()
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no arenas")
def test_threads_share_one_heap():
    """Without it, threads have heaps of their own."""
    counts = []
    for share in ("", "share_heap()"):
        command = [sys.executable, "-c", PROGRAM.format(share=share)]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        counts.append(done.stderr.count("Arena "))

    assert counts[0] > counts[1] == 1
