"""Memory of ``beaconframes serve`` after random requests, each for other rows.

``python benchmarks/served_memory.py [seed]``. The server is a process of its own, which serves the
sample with the default size of its cache. Allocators return free pages after ten seconds, so memory
is read at once and again after fifteen.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sizes import choose

import beaconframes as bf

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

REQUESTS = choose(2_000, 100)
EPOCHS = 1_400
"""The last epochs of the sample, which are requested."""

OF_EPOCHS: tuple[Callable[..., Any], ...] = (
    bf.load_income_history,
    bf.load_balance_history,
    bf.load_proposals,
    bf.load_validator_withdrawals,
    bf.v2.load_rewards,
    bf.v2.load_performance,
    bf.v2.load_balances,
)
OF_SLOTS: tuple[Callable[..., Any], ...] = (
    bf.load_slots,
    bf.load_slot_withdrawals,
    bf.load_slot_attestations,
    bf.v2.load_slot,
    bf.v2.load_block_rewards,
)
OF_WINDOWS: tuple[Callable[..., Any], ...] = (
    bf.v2.load_rewards_aggregate,
    bf.v2.load_performance_aggregate,
    bf.v2.load_apy_roi,
)
OF_VALIDATORS: tuple[Callable[..., Any], ...] = (
    bf.load_validators,
    bf.load_performance,
    bf.load_deposits,
    bf.load_attestations,
    bf.v2.load_validators,
)
OTHERS: tuple[Callable[..., Any], ...] = (
    bf.load_graffiti_wall,
    bf.load_leaderboard,
    bf.load_yield_index,
)


def load(chosen: random.Random, last: int) -> None:
    """Load the rows of random validators and epochs up to *last*."""
    validators = chosen.sample(range(900), chosen.choice((1, 10, 100)))
    first = chosen.randrange(last - EPOCHS, last - 9)
    until = first + chosen.choice((0, 1, 9))
    loader = chosen.choice((*OF_EPOCHS, *OF_SLOTS, *OF_WINDOWS, *OF_VALIDATORS, *OTHERS))
    if loader in OF_EPOCHS:
        loader(validators, since=first, until=until)
    elif loader in OF_SLOTS:
        loader(chosen.sample(range(first * 32, (first + 9) * 32), 3))
    elif loader in OF_WINDOWS:
        loader(validators, chosen.choice(("24h", "7d", "30d")))
    elif loader in OF_VALIDATORS:
        loader(validators)
    else:
        loader()


def read_memory(pid: int, name: str) -> float:
    """Return a memory figure of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split(f"{name}:")[1].split()[0]) * 1024 / 1e6


def main() -> None:
    """Print the memory at the start and after the requests, and the highest."""
    chosen = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)  # noqa: S311
    command = [sys.executable, "-m", "beaconframes", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            found = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stdout)
            url = next(match[0] for match in found if match)
            start = read_memory(server.pid, "VmRSS")
            with bf.connect(url, store=False, progress=False) as explorer:
                last = bf.load_epochs(since="finalized", until="finalized")["epoch"].item()
                while explorer.requests < REQUESTS:
                    load(chosen, last)
                count = explorer.requests
            after, peak = (read_memory(server.pid, name) for name in ("VmRSS", "VmHWM"))
            time.sleep(choose(15, 0))
            later = read_memory(server.pid, "VmRSS")
        finally:
            server.terminate()
    print(
        f"{start:.0f} MB; after {count:,} requests {after:.0f} MB, at most {peak:.0f} MB, "
        f"at rest {later:.0f} MB"
    )


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
