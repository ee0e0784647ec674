"""CPU and memory of loading a week of 1,000 validators from an API, beside the size of the frame.

Then the same for 30 days of 100 validators, which a small board loads. The pages have the income of
100 validators over 100 epochs, with all fields. They are prepared on disk, compressed, and read
from there in place of a socket. So the process has the memory of the client only. Each load runs in
its own interpreter. Memory is the peak above that after the imports.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from sizes import choose

import beaconframes as bf
from beaconframes.calendar import MAINNET
from beaconframes.endpoint import Head
from beaconframes.fetch.source import ApiSource, plan_calls
from beaconframes.http.session import Session
from beaconframes.v1.income_history import INCOME_HISTORY, IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = choose(5, 1)
LAST = 398_940
SIZES = [(1_000, choose(1_575, 100)), (100, choose(6_750, 100))]
"""Validators and epochs."""
HEAD = Head(LAST + 2, LAST, (LAST + 2) * 32)
NOWHERE = "http://127.0.0.1:9"
AMOUNTS = [
    column.wire_paths[0].removeprefix("income.")
    for column in IncomeHistory.columns
    if column.wire_paths and column.wire_paths[0].startswith("income.")
]


class PagesOnDisk(httpx.BaseTransport):
    """Answers a request with the file of its window and its first validator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response, whose body is read while it is consumed."""
        body = FileBody(find_file(self.folder, request.url.path, request.url.params))
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=body)


class FileBody(httpx.SyncByteStream):
    """The bytes of a file, as the body of a response."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        """Yield the next bytes."""
        with self.file.open("rb") as opened:
            while chunk := opened.read(2**16):
                yield chunk


def find_file(folder: Path, path: str, query: Any) -> Path:
    """Return the file with the response to a request."""
    first = path.split("/")[4].split(",", maxsplit=1)[0]
    return folder / f"{first}_{dict(query)['latest_epoch']}.json.gz"


def connect(folder: Path) -> bf.Explorer:
    """Return an explorer whose responses are the files in *folder*."""
    explorer = bf.Explorer(NOWHERE, chain=MAINNET, head=HEAD, rate=100_000, store=False)
    session = Session(NOWHERE, rate=100_000, transport=PagesOnDisk(folder))
    explorer.source = ApiSource(session, session, public=False)
    return explorer


def write_pages(folder: Path, validators: int, epochs: int) -> None:
    """Write the responses to all requests of the load."""
    dice = random.Random(1)  # noqa: S311  # a seed is the point
    incomes = [write_income(dice) for _ in range(5_000)]
    explorer = connect(folder)
    values = {"validators": range(validators), "since": LAST - epochs + 1, "until": LAST}
    chain_head = explorer.chain_head_of(INCOME_HISTORY)
    for call in plan_calls(INCOME_HISTORY, [values], chain_head):
        request = call.request
        query = dict(request.query)
        latest, limit = int(query["latest_epoch"]), int(query["limit"])
        records = [
            f'{{"income":{dice.choice(incomes)},"epoch":{epoch},"validatorindex":{validator},{week}}}'
            for epoch in range(latest, latest - limit, -1)
            for week in [write_week(epoch)]
            for validator in map(int, request.path.split("/")[4].split(","))
        ]
        body = f'{{"status":"OK","data":[{",".join(records)}]}}'.encode()
        find_file(folder, request.path, query).write_bytes(gzip.compress(body, 1))


def write_income(dice: random.Random) -> str:
    """Return the JSON text of the income of one epoch."""
    income: dict[str, Any] = dict.fromkeys(AMOUNTS, 0) | {"tx_fee_reward_wei": "0"}
    for vote in ("source", "target", "head"):
        income[f"attestation_{vote}_reward"] = dice.randint(3_000, 6_300)
    if dice.random() < 0.02:
        income["sync_committee_reward"] = dice.randint(20_000, 21_000)
    if dice.random() < 0.001:
        income["proposer_attestation_inclusion_reward"] = dice.randint(10**7, 10**8)
        income["tx_fee_reward_wei"] = str(dice.randint(10**15, 10**20))
    return json.dumps(income, separators=(",", ":"))


def write_week(epoch: int) -> str:
    """Return the fields of the week of *epoch*, which the service repeats in every record."""
    week = epoch // 1575
    start, end = (f"{MAINNET.time_of('week', n):%Y-%m-%dT%H:%M:%SZ}" for n in (week, week + 1))
    return f'"week":{week},"week_start":"{start}","week_end":"{end}"'


def read_memory(name: str) -> float:
    """Return a memory figure of this process in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split(f"{name}:")[1].split()[0]) * 1024 / 1e6


def measure(folder: Path, validators: int, epochs: int) -> dict[str, float]:
    """Load once; return CPU seconds, peak and remaining memory in MB, and those of the frame."""
    load = bf.load_income_history
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, start = read_memory("VmRSS"), time.process_time()
    rows = load(range(validators), since=LAST - epochs + 1, until=LAST, explorer=connect(folder))
    taken = time.process_time() - start
    assert rows.shape == (validators * epochs, len(IncomeHistory.columns))
    return {
        "cpu": taken,
        "peak": read_memory("VmHWM") - before,
        "after": read_memory("VmRSS") - before,
        "frame": rows.estimated_size() / 1e6,
    }


def main() -> None:
    """Print the medians, or measure once with the pages in the folder of the first argument."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
        return
    for validators, epochs in SIZES:
        with tempfile.TemporaryDirectory() as name:
            write_pages(Path(name), validators, epochs)
            command = [sys.executable, __file__, name, str(validators), str(epochs)]
            runs = [json.loads(subprocess.check_output(command)) for _ in range(ROUNDS)]
        cpu, peak, after, frame = (
            statistics.median(run[key] for run in runs) for key in ("cpu", "peak", "after", "frame")
        )
        print(
            f"{validators:,} validators, {epochs:,} epochs: {cpu:.1f} s CPU; {frame:.0f} MB of "
            f"rows, peak {peak:.0f} MB ({peak / frame:.1f} times them), afterwards {after:.0f} MB"
        )


if __name__ == "__main__":
    main()
