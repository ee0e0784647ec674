"""CPU and requests of an earlier version of beaconframes and of this one, for the same calls.

Both versions simulate a chain of the same size, serve it, and load from it, in one process for
each call, alternately. The earlier version runs with the libraries of this environment.

    python benchmarks/releases.py --before REVISION
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VALIDATORS, EPOCHS = 400, 1_125

START = """
import json, resource, sys, tempfile, time
import beaconframes as bf
folder = tempfile.mkdtemp()
bf.load_slots, bf.plot, bf.analysis, bf.wall
"""
SERVE = """
service = bf.local(sys.argv[1])
last = int(bf.load_latest_state()["current_finalized_epoch"][0])
"""
STORED = SERVE.replace("(sys.argv[1])", "(sys.argv[1], store=folder)")
STORED_LOAD = "bf.load_income_history(range(400), since=last - 449, until=last)"
END = """
used = time.process_time() - started
print(json.dumps([used, service.requests - sent if service else 0]))
"""
ROWS = """
span = {"since": last - 899, "until": last}
income = bf.load_income_history(range(400), **span)
balances = bf.load_balance_history(range(400), since=last - 899, until=last)
validators = bf.load_validators(range(400))
"""
# The second request of a window prepares it for all validators.
ANSWERS = (
    SERVE
    + """
import httpx
client = httpx.Client(base_url=service.url)
window = f"latest_epoch={last}&limit=100"
def get(validators, route, times):
    for _ in range(times):
        client.get(f"/api/v1/validator/{validators}/{route}?{window}").raise_for_status()
hundred = ",".join(map(str, range(100)))
for route in ("incomedetailhistory", "balancehistory"):
    get("7", route, 2)
"""
)
SAVE = "import io; {}.figure.savefig(io.BytesIO())"
# What is measured, by name: the preparation, and the call.
CASES = {
    "first access to a loader": ("", ""),
    "income, 400 validators, 900 epochs": (
        SERVE, "bf.load_income_history(range(400), since=last - 899, until=last)",
    ),
    "balances, 400 validators, 900 epochs": (
        SERVE, "bf.load_balance_history(range(400), since=last - 899, until=last)",
    ),
    "attestations, 400 validators, 90 epochs": (
        SERVE, "bf.load_attestations(range(400), since=last - 89, until=last)",
    ),
    "blocks of 100 epochs": (
        SERVE + "bf.load_epoch_slots(since=last)  # the server builds its index once",
        "bf.load_epoch_slots(since=last - 99, until=last)",
    ),
    "500 slots": (SERVE, "bf.load_slots(range(32 * last - 499, 32 * last + 1))"),
    "4 days of the yield index, 20 times": (
        SERVE, "for _ in range(20): bf.load_yield_index(since=-4)",
    ),
    "400 validators, 20 times": (SERVE, "for _ in range(20): bf.load_validators(range(400))"),
    "graffiti wall": (SERVE, "bf.load_graffiti_wall()"),
    "answers of 10,000 rows of income, 20 times": (
        ANSWERS, "get(hundred, 'incomedetailhistory', 20)",
    ),
    "answers of 100 rows of balances, 200 times": (ANSWERS, "get('7', 'balancehistory', 200)"),
    "export of income, 400 validators, 450 epochs": (
        SERVE,
        "bf.export(bf.load_income_history, folder, validators=range(400), since=last - 449)",
    ),
    "store: income, 400 validators, 450 epochs, twice": (
        STORED, f"for _ in range(2): {STORED_LOAD}",
    ),
    "store: the same load once more": (
        STORED + STORED_LOAD, STORED_LOAD,
    ),
    "performance of 400 validators": (
        SERVE + ROWS, "bf.analysis.performance(validators, income, balances)",
    ),
    "chart of income": (SERVE + ROWS, "bf.plot.income(income)"),
    "chart of income, saved": (SERVE + ROWS, SAVE.format("bf.plot.income(income)")),
    "chart of balances": (SERVE + ROWS, "bf.plot.balances(balances)"),
    "picture of the wall": (
        SERVE + "wall = bf.load_graffiti_wall()", "bf.wall.render(wall)",
    ),
}  # fmt: skip


def run(source: Path, *arguments: str) -> str:
    """Return what a Python process prints that imports beaconframes from *source*."""
    environment = {**os.environ, "PYTHONPATH": str(source), "BEACONFRAMES_PROGRESS": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    ended = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"{source}: {ended.stderr[-2000:]}")
    return ended.stdout


def measure(source: Path, chain: Path, case: str) -> tuple[float, int]:
    """Return the CPU seconds and the requests of one case."""
    prepare, call = CASES[case]
    begin = "" if call else "import time; started = time.process_time(); service = None; sent = 0\n"
    middle = "sent = service.requests; started = time.process_time()\n" if call else ""
    code = "\n".join([begin, START, prepare, middle, call, END])
    used, requests = json.loads(run(source, "-c", code, str(chain)).splitlines()[-1])
    return used, requests


def main() -> None:
    """Print a table of medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--before", required=True, help="a revision of the repository")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", choices=CASES, action="append")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", arguments.before, "src"],  # noqa: S607
            stdout=subprocess.PIPE, check=True,
        ).stdout  # fmt: skip
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)  # noqa: S607
        sources = {"before": Path(folder, "src"), "now": ROOT / "src"}
        chains = {}
        for name, source in sources.items():
            chains[name] = Path(folder, f"chain-{name}")
            size = ["--validators", str(VALIDATORS), "--epochs", str(EPOCHS)]
            made = ["-m", "beaconframes", "simulate", *size, "--out", str(chains[name])]
            run(source, *made)
        print("| call | before | now | ratio | requests before, now |")
        print("| --- | --- | --- | --- | --- |")
        for case in arguments.case or CASES:
            found: dict[str, list[tuple[float, int]]] = {name: [] for name in sources}
            for _ in range(arguments.rounds):
                for name, source in sources.items():
                    found[name].append(measure(source, chains[name], case))
            before, now = (
                statistics.median(used for used, _ in found[name]) for name in ("before", "now")
            )
            requests = ", ".join(f"{found[name][0][1]:,}" for name in sources)
            print(
                f"| {case} | {before:.2f} s | {now:.2f} s | {now / before:.2f} | {requests} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
