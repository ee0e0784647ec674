"""The peak memory of a process, on Linux.

``getrusage`` is not used: a new process starts there with the peak of the process that started it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")
READ_PEAK = f"int(open('{STATUS}').read().split('VmHWM:')[1].split()[0]) // 1024"
"""An expression for the peak memory in MB, for programs that a test starts."""
needs_peak = pytest.mark.skipif(not STATUS.exists(), reason=f"reads the peak memory of {STATUS}")


def read_peak() -> int:
    """Return the peak memory of this process since the last `reset_peak`, in MB; 0 if unknown."""
    if not STATUS.exists():
        return 0
    return int(STATUS.read_text(encoding="ascii").split("VmHWM:")[1].split()[0]) // 1024


def reset_peak() -> None:
    """Let the peak memory of this process be what it uses now."""
    with suppress(OSError):
        STATUS.with_name("clear_refs").write_text("5", encoding="ascii")
