"""Print the files and functions of the package that one load runs, without and with a store.

Run by test_path_of_a_load.py in a process of its own: the address of a server, and a new folder.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import beaconframes as bf

PACKAGE = str(Path(bf.__file__).parent)
WARM_UP, EPOCH = 20, 10


def cross(store):
    """Return the functions that one load calls, as "file line function", sorted."""
    found = set()

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            found.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    with bf.Explorer(sys.argv[1], store=store) as explorer:
        bf.load_income_history([1, 2], since=WARM_UP, until=WARM_UP + 1, explorer=explorer)
        requests = explorer.requests
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            rows = bf.load_income_history([1, 2], since=EPOCH, until=EPOCH + 1, explorer=explorer)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        assert (4, requests + 1) == (rows.height, explorer.requests)
    return sorted(
        f"{Path(file).relative_to(PACKAGE).as_posix()} {line} {function}"
        for file, function, line in found
        if function != "<module>"
    )


print(json.dumps({"no store": cross(store=False), "store": cross(store=sys.argv[2])}))  # noqa: T201
