"""How many source files and functions one load crosses, and how deep its traceback is.

The load is ``bf.load_income_history([1, 2], since=E, until=E + 1, explorer=explorer)``: one
request, two validators, two epochs. How it is counted:

- In a process of its own (``cross_files.py``), with `sys.setprofile` and `threading.setprofile`.
  The server is in the test's process and gives prepared answers.
- The same explorer has loaded two other epochs before. So every module is imported, the connection
  is open, and the chain's head is known. The store is new and holds only these two epochs; none
  of the rows of the measured load are in it.
- A dataset is the sample, and the node's index has the epochs of the load. Both send no request.
- A file counts if it lies in the package's folder and one of its functions runs, ``<module>`` not
  counted. Functions are counted by their place in the source, nested ones and comprehensions
  too, but not methods with a name such as ``__init__``. CPython 3.12 and newer runs comprehensions
  in place, so that there are fewer.

Counted this way, the first release crosses 41 files and 191 functions without a store, 56 files
and 354 functions with one.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import beaconframes as bf

from ..support.beacon_node_stub import BeaconNodeStub
from ..support.faults import FastClock
from ..support.replay import replaying

MOST_FILES = {"no store": 26, "store": 37, "dataset": 29, "dataset of V2": 34, "node": 41}
MOST_FUNCTIONS = {"no store": 183, "store": 321}
FROM_FILES = ("dataset", "dataset of V2", "node")
"""The sources whose rows are in files on this machine."""
WEB = ("http/", "server/", "simulator/")
MOST_FRAMES = 10  # the caller's own frame not counted

PACKAGE = str(Path(bf.__file__).parent)
SCRIPT = Path(__file__).with_name("cross_files.py")
EPOCHS = (10, 20)
FIELDS = (
    "attestation_head_reward",
    "attestation_source_reward",
    "attestation_source_penalty",
    "attestation_target_reward",
    "attestation_target_penalty",
    "finality_delay_penalty",
    "proposer_attestation_inclusion_reward",
    "proposer_slashing_inclusion_reward",
    "proposer_sync_inclusion_reward",
    "sync_committee_reward",
    "sync_committee_penalty",
    "slashing_reward",
    "slashing_penalty",
    "proposals_missed",
)


def answer(data):
    """Return a response body without spaces, as services write it."""
    return json.dumps({"status": "OK", "data": data}, separators=(",", ":")).encode()


def income(validator, epoch):
    """Return one income record."""
    amounts = dict.fromkeys(FIELDS, 7) | {"tx_fee_reward_wei": "7647987249234"}
    week = {"week": 0, "week_start": "2020-12-01T12:00:23Z", "week_end": "2020-12-08T12:00:23Z"}
    return {"validatorindex": validator, "epoch": epoch, "income": amounts, **week}


def is_special(line):
    """Return whether a line names a method such as ``__init__``."""
    return line.rpartition(" ")[2].rpartition(".")[2].startswith("__")


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    """Return the functions that the load crosses, from each source."""
    folder = tmp_path_factory.mktemp("path")
    head = {"currentSlot": 1908, "currentEpoch": 59, "currentFinalizedEpoch": 57}
    replies = {"GET /api/v1/latestState": answer(head)}
    for epoch in EPOCHS:
        line = f"/api/v1/validator/1,2/incomedetailhistory?latest_epoch={epoch + 1}&limit=2"
        records = [income(validator, e) for e in (epoch + 1, epoch) for validator in (1, 2)]
        replies[f"GET {line}"] = answer(records)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BEACONFRAMES_")}
    environment["XDG_STATE_HOME"] = str(folder / "state")
    with replaying(replies) as server, BeaconNodeStub("electra") as node:
        done = subprocess.run(
            [sys.executable, SCRIPT, server.url, folder / "store", node.url],
            capture_output=True,
            check=False,
            env=environment,
            text=True,
            timeout=300,
        )
    assert (0, "") == (done.returncode, done.stderr)
    return json.loads(done.stdout)


@pytest.mark.parametrize("source", MOST_FILES)
def test_a_load_crosses_no_more_files_and_functions_than_before(crossed, source):
    """The number of files and functions of one load does not grow."""
    files = {line.partition(" ")[0] for line in crossed[source]}
    functions = [line for line in crossed[source] if not is_special(line)]

    listed = "\n".join(crossed[source])
    assert MOST_FILES[source] >= len(files) > 0, f"{len(files)} files:\n{listed}"
    most = MOST_FUNCTIONS.get(source, len(functions))
    assert most >= len(functions) > 0, f"{len(functions)} functions:\n{listed}"


@pytest.mark.parametrize("source", FROM_FILES)
def test_rows_from_files_cross_no_file_of_a_service(crossed, source):
    """F1: a load that sends no request does not run the code of requests, nor that of a server."""
    assert [] == [line for line in crossed[source] if line.startswith(WEB)]


def test_a_first_load_from_a_dataset_imports_no_web_library():
    """A process that only reads a dataset does not import an HTTP client or server."""
    program = (
        "import sys, beaconframes as bf\n"
        "with bf.open(): bf.load_income_history([1], since=-3); bf.v2.load_rewards([1], since=-3)\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=300
    )

    imported = set(ast.literal_eval(done.stdout))
    assert {"polars", "beaconframes"} <= imported
    assert set() == imported & {"httpx", "httpcore", "starlette", "uvicorn", "tenacity", "tornado"}


def test_a_server_that_cannot_be_reached_is_an_error_with_a_short_traceback():
    """A refused connection raises ConnectionFailed, whose traceback has no more of our frames."""
    explorer = bf.connect("http://127.0.0.1:9", state=False)
    explorer.rate_limiter.clock = FastClock()

    with pytest.raises(bf.errors.ConnectionFailed, match=r"127\.0\.0\.1:9") as failed:
        bf.load_latest_state()

    frames = traceback.extract_tb(failed.value.__traceback__)
    ours = [f"{f.filename}: {f.name}" for f in frames if f.filename.startswith(PACKAGE)]
    assert MOST_FRAMES >= len(ours) > 0, f"{len(ours)} frames:\n" + "\n".join(ours)
