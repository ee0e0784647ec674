"""Answers that a real service gave, replayed through the client and compared cell by cell.

What is expected is worked out from the recorded JSON with ``json``, ``decimal`` and ``datetime``
alone. The recordings are no part of the project; BEACONFRAMES_RECORDED says where else they are.
"""

from __future__ import annotations

import json
import os
import warnings
from decimal import Decimal
from pathlib import Path

import pytest

import beaconframes as bf
from beaconframes.endpoint import Head
from beaconframes.errors import SchemaError

from ..support.contract import CALENDAR, TABLES, rows, unknown
from ..support.replay import replaying

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "recorded"
RECORDED = Path(os.environ.get("BEACONFRAMES_RECORDED", BESIDE))
KINDS = {
    "v1-validator-incomedetailhistory": "income_history",
    "v1-validator-balancehistory": "balance_history",
    "v1-validator-POST": "validators",
    "v1-validator": "validators",
    "v1-latestState": "latest_state",
    "v1-epoch-slots": "epoch_slots",
    "v1-epoch": "epochs",
    "v1-sync_committee": "sync_committees",
    "v1-graffitiwall": "graffiti_wall",
    "v1-ethstore": "yield_index",
}


def table_of(file):
    return KINDS.get(file.partition("--")[0])


def index():
    """Return what is recorded for the nine endpoints, by file name."""
    if not (RECORDED / "index.json").exists():
        return {}
    known = json.loads((RECORDED / "index.json").read_text())
    return {entry["file"]: entry for entry in known if table_of(entry["file"])}


INDEX = index()
ROUNDED = {"v1-ethstore--docs1.json"}

pytestmark = pytest.mark.skipif(not INDEX, reason=f"no recorded answers in {RECORDED}")


def records(file):
    """Return the records of a recorded answer, numbers exactly as they were written."""
    answer = json.loads((RECORDED / file).read_bytes(), parse_int=int, parse_float=Decimal)
    data = answer.get("data", answer)
    return data if isinstance(data, list) else [data]


def call(file):
    """Return the arguments that ask for what was recorded, and the target that must be asked."""
    table, path = table_of(file), INDEX[file]["path"]
    found = records(file)
    if table == "validators":
        body = INDEX[file]["request_body"]
        asked = json.loads(body)["indicesOrPubkey"] if body else path.rpartition("/")[2]
        asked = asked if "0" <= asked[0] <= "9" else str(found[0]["validator_index"])
        return {"validators": asked.split(",")}, f"/api/v1/validator/{asked}"
    if table in ("income_history", "balance_history"):
        who = found[0]["validatorindex"]
        first, last = (pick(record["epoch"] for record in found) for pick in (min, max))
        window = f"latest_epoch={last}&limit={last - first + 1}"
        path = path.replace("{indexOrPubkey}", str(who))
        return {"validators": who, "since": first, "until": last}, f"{path}?{window}"
    if table in ("epochs", "epoch_slots"):
        epoch = found[0]["epoch"]
        return {"since": epoch, "until": epoch}, path.replace("{epoch}", str(epoch))
    if table == "sync_committees":
        period = path.rpartition("/")[2]
        period = str(found[0]["period"]) if period == "{period}" else period
        return {"periods": period}, f"/api/v1/sync_committee/{period}"
    if table == "graffiti_wall":
        return {}, f"{path}?summarize=false"
    return {}, "/api/v1/yieldindex/latest" if table == "yield_index" else path


def replay(file):
    """Load what was recorded through the client; return the frame, and what is missing."""
    arguments, target = call(file)
    # Examples have fewer slots than an epoch, which only an epoch may that is not final.
    open_end = Head(10**7, 0, 32 * 10**7) if table_of(file) == "epoch_slots" else None
    with (
        replaying({"*": (RECORDED / file).read_bytes()}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000, head=open_end) as explorer,
        warnings.catch_warnings(record=True) as caught,
    ):
        server.status = INDEX[file]["status"]
        warnings.simplefilter("always")
        frame = getattr(bf, f"load_{table_of(file)}")(**arguments, explorer=explorer)
    assert [f"GET {target}"] == server.arrived
    return frame, [warning.message for warning in caught]


@pytest.mark.parametrize("file", sorted(set(INDEX) - ROUNDED))
def test_every_cell_is_what_the_service_sent(file):
    """Values, types, nulls, zeros and order follow from the recorded JSON and nothing else."""
    found = records(file)
    expected = rows(table_of(file), found)

    frame, missing = replay(file)

    assert INDEX[file]["rows"] == len(found)
    assert [line.name for line in TABLES[table_of(file)]] == frame.columns
    assert expected == frame.rows(named=True)
    kinds = [[type(cell) for cell in row.values()] for row in expected]
    assert kinds == [[type(cell) for cell in row] for row in frame.rows()]
    gaps = gaps_in(found) if "history" in table_of(file) else []
    assert bool(gaps) == bool(missing)
    if gaps:
        assert [(gaps[0], gaps[-1])] == missing[0].missing.select(
            "first_epoch", "last_epoch"
        ).rows()


def gaps_in(found):
    """Return the epochs between the first and the last of which there is no record."""
    epochs = {record["epoch"] for record in found}
    return sorted(set(range(min(epochs), max(epochs) + 1)) - epochs)


@pytest.mark.parametrize("table", TABLES)
def test_only_what_the_calendar_says_has_no_column(table):
    """The week of an epoch follows from the epoch; every other recorded field has a column."""
    files = [file for file in INDEX if table_of(file) == table]

    without = {field for file in files for r in records(file) for field in unknown(table, r)}

    assert (CALENDAR if "history" in table else set()) == without


@pytest.mark.parametrize("file", sorted(ROUNDED & set(INDEX)))
def test_amounts_that_were_rounded_on_the_way_are_refused(file):
    """An example was written by a language without whole numbers: 1.34e+21 wei is no amount."""
    assert INDEX[file]["kind"].startswith("docs example")

    with pytest.raises(SchemaError, match="row 0: consensus_rewards_sum_wei is "):
        replay(file)


@pytest.mark.parametrize("table", TABLES)
def test_what_was_really_sent_is_told_from_what_is_only_documented(table):
    """Every table has been replayed from recordings, save two of which there are only examples."""
    kinds = {INDEX[f]["kind"].partition(" ")[0] for f in INDEX if table_of(f) == table}

    only_documented = table in ("balance_history", "latest_state")
    assert ({"docs"} if only_documented else {"docs", "recording"}) == kinds
