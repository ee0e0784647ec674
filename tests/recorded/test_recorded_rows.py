"""Recorded responses, replayed through the client and compared cell by cell.

The expected values are computed from the recorded JSON with ``json``, ``decimal`` and ``datetime``
alone.
"""

from __future__ import annotations

import json
import warnings

import pytest

import beaconframes as bf
from beaconframes.endpoint import Head
from beaconframes.errors import IntegrityError, SchemaError

from ..support.contract import CALENDAR, TABLES, rows, unknown
from ..support.recorded_files import RECORDED, read_index, read_records
from ..support.replay import replaying

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


INDEX = read_index(KINDS)
ROUNDED = {"v1-ethstore--docs1.json"}
CONTRADICTORY = {
    "v1-epoch-slots--docs1.json": "slot 12751457 is not in epoch 398479",
    "v1-sync_committee--docs1.json": "the committee of period 500 does not have 512 seats",
}

pytestmark = pytest.mark.skipif(not INDEX, reason=f"no recorded answers in {RECORDED}")


def call(file):
    """Return the loader's arguments for a recording, and the expected request target."""
    table, path = table_of(file), INDEX[file]["path"]
    found = read_records(file)
    if table == "validators":
        body = INDEX[file]["request_body"]
        subjects = json.loads(body)["indicesOrPubkey"] if body else path.rpartition("/")[2]
        subjects = subjects if "0" <= subjects[0] <= "9" else str(found[0]["validator_index"])
        return {"validators": subjects.split(",")}, f"/api/v1/validator/{subjects}"
    if table in ("income_history", "balance_history"):
        validator = found[0]["validatorindex"]
        first, last = (pick(record["epoch"] for record in found) for pick in (min, max))
        window = f"latest_epoch={last}&limit={last - first + 1}"
        path = path.replace("{indexOrPubkey}", str(validator))
        return {"validators": validator, "since": first, "until": last}, f"{path}?{window}"
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
    """Load a recording through the client; return the frame, and the missing rows."""
    arguments, target = call(file)
    # Examples have fewer slots than an epoch: only a running epoch may have fewer.
    is_part = table_of(file) == "epoch_slots"
    running = Head(arguments["since"], 0, 32 * arguments["since"]) if is_part else None
    with (
        replaying({"*": (RECORDED / file).read_bytes()}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000, head=running) as explorer,
        warnings.catch_warnings(record=True) as caught,
    ):
        server.status = INDEX[file]["status"]
        warnings.simplefilter("always")
        frame = getattr(bf, f"load_{table_of(file)}")(**arguments, explorer=explorer)
    assert [f"GET {target}"] == server.arrived
    return frame, [warning.message for warning in caught]


@pytest.mark.parametrize("file", sorted(set(INDEX) - ROUNDED - set(CONTRADICTORY)))
def test_every_cell_matches_the_recording(file):
    """Values, types, nulls, zeros and order follow from the recorded JSON alone."""
    found = read_records(file)
    expected = rows(table_of(file), found)

    frame, missing = replay(file)

    assert INDEX[file]["rows"] == len(found)
    assert [line.name for line in TABLES[table_of(file)]] == frame.columns
    assert expected == frame.rows(named=True)
    kinds = [[type(cell) for cell in row.values()] for row in expected]
    assert kinds == [[type(cell) for cell in row] for row in frame.rows()]
    gaps = gaps_in(found) if "history" in table_of(file) else []
    named = [warning.missing.select("first_epoch", "last_epoch").rows() for warning in missing]
    assert ([[(gaps[0], gaps[-1])]] if gaps else []) == named


def gaps_in(found):
    """Return the epochs without a record between the first and the last one."""
    epochs = {record["epoch"] for record in found}
    return sorted(set(range(min(epochs), max(epochs) + 1)) - epochs)


@pytest.mark.parametrize("table", TABLES)
def test_only_calendar_fields_have_no_column(table):
    """The week of an epoch follows from the epoch; every other recorded field has a column."""
    files = [file for file in INDEX if table_of(file) == table]

    without = {field for file in files for r in read_records(file) for field in unknown(table, r)}

    assert (CALENDAR if "history" in table else set()) == without


@pytest.mark.parametrize("file", sorted(ROUNDED & set(INDEX)))
def test_rounded_amounts_are_refused(file):
    """An example has 1.34e+21 wei, a float, where the amount should be exact."""
    assert INDEX[file]["kind"].startswith("docs example")

    with pytest.raises(SchemaError, match="row 0: consensus_rewards_sum_wei is "):
        replay(file)


@pytest.mark.parametrize("file", sorted(set(CONTRADICTORY) & set(INDEX)))
def test_an_example_that_contradicts_itself_is_refused(file):
    """G8, G10: a slot of another epoch, a committee of four validators."""
    assert INDEX[file]["kind"].startswith("docs example")

    with pytest.raises(IntegrityError, match=CONTRADICTORY[file]):
        replay(file)


@pytest.mark.parametrize("table", TABLES)
def test_which_tables_have_recordings(table):
    """All tables but two have recordings; those two have documented examples only."""
    kinds = {INDEX[f]["kind"].partition(" ")[0] for f in INDEX if table_of(f) == table}

    only_documented = table in ("balance_history", "latest_state")
    assert ({"docs"} if only_documented else {"docs", "recording"}) == kinds
