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


LARGE_ARRAYS = """
from pathlib import Path
from beaconframes.memory import map_large_arrays
size = 20 * 2**20
array = b"x" * size
del array
{map}
arrays = [b"x" * size for _ in range(5)]
later = [b"x" * 600 for _ in range(10_000)]
del arrays
print(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
"""

needs_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other C libraries retain other memory"
)


@needs_glibc
def test_large_arrays_are_returned_to_the_system():
    """F9: without it, five arrays of 20 MB stay in the process, because later objects do."""
    retained, returned = (
        int(subprocess.check_output([sys.executable, "-c", LARGE_ARRAYS.format(map=call)]))
        for call in ("", "map_large_arrays()")
    )

    assert retained - returned > 90_000


@needs_glibc
def test_threads_share_one_heap():
    """Without it, threads have heaps of their own."""
    counts = []
    for share in ("", "share_heap()"):
        command = [sys.executable, "-c", PROGRAM.format(share=share)]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        counts.append(done.stderr.count("Arena "))

    assert counts[0] > counts[1] == 1
