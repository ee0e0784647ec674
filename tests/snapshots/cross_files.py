"""Print the files and functions of the package that one load runs, from each source.

Run by test_path_of_a_load.py in a process of its own: the address of a server, a new folder, and
the address of a beacon node.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import beaconframes as bf

PACKAGE = str(Path(bf.__file__).parent)


def cross(explorer, load, *, warm_up, epoch):
    """Return the functions that one load calls, as "file line function", sorted.

    Another load, of the epoch *warm_up*, precedes it.
    """
    found = set()

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            found.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    with explorer:
        load([1, 2], since=warm_up, until=warm_up + 1, explorer=explorer)
        requests = explorer.requests
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            rows = load([1, 2], since=epoch, until=epoch + 1, explorer=explorer)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        sends = type(explorer) is bf.Explorer
        assert (4, requests + sends) == (rows.height, explorer.requests)
    return sorted(
        f"{Path(file).relative_to(PACKAGE).as_posix()} {line} {function}"
        for file, function, line in found
        if function != "<module>"
    )


def main(url, store, node):
    """Print the paths of the loads."""
    with bf.open() as opened:
        final = opened.views.current().head.finalized_epoch
    income, rewards = bf.load_income_history, bf.v2.load_rewards
    served, stored = {"warm_up": 20, "epoch": 10}, {"warm_up": final - 9, "epoch": final - 5}
    indexed = {"warm_up": 4, "epoch": 4}
    paths = {
        "no store": cross(bf.Explorer(url, store=False), income, **served),
        "store": cross(bf.Explorer(url, store=store), income, **served),
        "dataset": cross(bf.open(), income, **stored),
        "dataset of V2": cross(bf.open(), rewards, **stored),
        "node": cross(bf.node(node, store=False), income, **indexed),
    }
    print(json.dumps(paths))  # noqa: T201


main(*sys.argv[1:])
