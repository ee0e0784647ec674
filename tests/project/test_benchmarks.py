"""Every benchmark runs to its end, with small sizes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
NOT_RUN = {
    "installation": "it installs packages from an index",
    "report_index": "it indexes two days of a chain, which takes minutes",
    "releases": "it needs an earlier revision of the repository",
    "sizes": "it is no benchmark",
}


@pytest.mark.more
@pytest.mark.parametrize(
    "name", sorted({path.stem for path in FOLDER.glob("*.py")} - NOT_RUN.keys())
)
def test_benchmark_runs(name):
    """It checks its own answers, and prints its figures."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py")],
        env={**os.environ, "BENCHMARK_SMALL": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, True) == (done.returncode, bool(done.stdout)), done.stderr[-2000:]
