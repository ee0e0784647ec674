"""CPU of loading a week of 1,000 validators through HTTP: server and client, on both wires.

The local explorer runs in this process, the client in another one. Each loads twice: the second
load is measured. The bytes are those of all answers before compression.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from sizes import choose

import beaconframes as bf

if TYPE_CHECKING:
    from starlette.responses import Response

LOADERS = choose(("income_history", "balance_history"), ("balance_history",))
WIRES = ("spec", "public")
ROUNDS = choose(3, 1)
EPOCHS = choose(7 * 225, 10)


def main() -> None:
    """Run all cases, or load from the address that the arguments name."""
    if len(sys.argv) > 1:
        load_twice(*sys.argv[1:])
        return
    for loader in LOADERS:
        found: dict[str, list[tuple[float, ...]]] = {wire: [] for wire in WIRES}
        for _ in range(ROUNDS):
            for wire in WIRES:
                found[wire].append(measure(wire, loader))
        for wire in WIRES:
            rows, size, server, client, wall = map(
                statistics.median, zip(*found[wire], strict=True)
            )
            print(
                f"{loader}, {wire} wire: {rows:,.0f} rows, {size / 1e6:,.0f} MB, "
                f"server {server:.2f} s, client {client:.2f} s, both {server + client:.2f} s CPU, "
                f"wall {wall:.2f} s"
            )


def measure(wire: str, loader: str) -> tuple[float, ...]:
    """Return rows and bytes of the second load, and its CPU and wall seconds."""
    with bf.local(wire=wire) as explorer:  # type: ignore[arg-type]
        service, sent = explorer.service, Counter[str]()
        answer = service.answer

        def counted(*arguments: object) -> Response:
            response = answer(*arguments)  # type: ignore[arg-type]
            sent["bytes"] += len(response.body)
            return response

        service.answer = counted  # type: ignore[method-assign]
        command = [sys.executable, __file__, explorer.url, loader]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            sent.clear()
            before = time.process_time()
            print(file=process.stdin, flush=True)
            rows, client, wall = json.loads(process.stdout.readline())
            server = time.process_time() - before
    return rows, sent["bytes"], server, client, wall


def load_twice(url: str, loader: str) -> None:
    """Load the last week twice; print the rows, the CPU and the wall seconds of each load."""
    with bf.connect(url, store=False, progress=False):
        for attempt in range(2):
            if attempt:
                sys.stdin.readline()
            start, before = time.perf_counter(), os.times()
            rows = getattr(bf, f"load_{loader}")(range(1000), since=-EPOCHS).height
            after = os.times()
            cpu = after.user + after.system - before.user - before.system
            print(json.dumps((rows, cpu, time.perf_counter() - start)), flush=True)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
