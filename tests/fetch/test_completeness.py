"""Rows that lack, come twice, contradict or belong elsewhere: complete, or loud.

A server stands before the local explorer and spoils its answers. What must come out is what the
local explorer alone gives.
"""

from __future__ import annotations

import json
from contextlib import contextmanager

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.fetch import head, response_warnings
from beaconframes.server import Server

from ..support.faults import FaultServer
from ..support.replay import replaying

FINAL = 467
"""The last finalized epoch of the chain; two more were processed."""

GRIDS = {
    "incomedetailhistory": (bf.load_income_history, {"since": 310, "until": 429}, 2),
    "balancehistory": (bf.load_balance_history, {"since": 310, "until": 429}, 2),
    "attestations": (bf.load_attestations, {"since": 370, "until": FINAL}, 1),
}
"""By part of the path: a loader of validators by epochs, a range of final ones, its windows."""

ACTIVE = range(100, 205)
"""Validators with a row in each of these epochs; they take two batches."""


@pytest.fixture(scope="module")
def upstream(chain):
    """The explorer whose answers are spoiled."""
    with Server(chain) as server:
        yield server


@contextmanager
def spoiling(upstream, fault):
    """The server that spoils, and an explorer that asks it."""
    with (
        FaultServer(fault, upstream=upstream.url) as server,
        bf.Explorer(server.url, chain=upstream.service.chain, rate=10_000) as explorer,
    ):
        yield server, explorer


def good(upstream, load, *args, **more):
    """What comes without faults, which must be without gaps."""
    with spoiling(upstream, "") as (_, explorer):
        return load(*args, **more, explorer=explorer, strict=True)


def asked(server, part):
    """The requests for the path with *part*, as they arrived."""
    return [seen.target for seen in server.seen if part in seen.target]


def cells(missing, unit):
    """The cells that a frame of runs names."""
    subject, *_ = missing.columns
    return {
        (row[subject], number)
        for row in missing.rows(named=True)
        for number in range(row[f"first_{unit}"], row[f"last_{unit}"] + 1)
    }


@pytest.mark.parametrize("part", GRIDS)
def test_rows_that_lack_once_are_asked_for_again(upstream, part):
    """One row in eleven is dropped of the first answers: once more, and nothing lacks."""
    load, span, windows = GRIDS[part]
    expected = good(upstream, load, ACTIVE, **span)

    with spoiling(upstream, f"rows_drop?path=/{part}&every=11&times={2 * windows}") as (
        server,
        explorer,
    ):
        found = load(ACTIVE, **span, explorer=explorer)

    assert_frame_equal(expected, found)
    assert expected.height == len(ACTIVE) * (span["until"] - span["since"] + 1)
    assert 2 * windows * 2 == len(asked(server, part))


def test_only_what_lacks_is_asked_for_again(upstream):
    """Three rows of two validators, in two batches and at a seam of windows: one request."""
    expected = good(upstream, bf.load_balance_history, ACTIVE, since=310, until=429)
    fault = "rows_lack?fields=epoch,validatorindex&cells=409-101,410-101,408-204&times=4"

    with spoiling(upstream, f"{fault}&path=balance") as (server, explorer):
        found = bf.load_balance_history(ACTIVE, since=310, until=429, explorer=explorer)

    assert_frame_equal(expected, found)
    assert ["/api/v1/validator/101,204/balancehistory?latest_epoch=410&limit=3"] == (
        asked(server, "balancehistory")[4:]
    )


@pytest.mark.parametrize("part", ["balancehistory", "attestations"])
def test_a_hole_between_final_rows_is_an_error_that_keeps_the_rest(upstream, part):
    """It was requested twice; what came, and all that did not, is in the error."""
    load, span, _ = GRIDS[part]
    expected = good(upstream, load, ACTIVE, **span)

    with (
        spoiling(upstream, f"rows_drop?path=/{part}") as (_, explorer),
        pytest.raises(errors.IntegrityError, match="requested twice: validator_index") as caught,
    ):
        load(ACTIVE, **span, explorer=explorer)

    rows, missing = caught.value.rows, caught.value.missing
    lost = expected.join(rows, on=["validator_index", "epoch"], how="anti")
    assert_frame_equal(expected, pl.concat([rows, lost]).sort("validator_index", "epoch"))
    assert set(lost.select("validator_index", "epoch").rows()) == cells(missing, "epoch")
    assert 0 < lost.height < expected.height // 10


def test_income_may_have_holes(upstream):
    """The service has no row for epochs without activity: a warning, and strict an error."""
    fault = "rows_lack?fields=epoch,validatorindex&cells=300-101,301-101"

    with spoiling(upstream, fault) as (_, explorer):
        with pytest.warns(bf.MissingRows, match="validator_index 101, epoch 300 to 301"):
            found = bf.load_income_history([101, 102], since=290, until=310, explorer=explorer)
        with pytest.raises(bf.MissingRows, match="epoch 300 to 301") as caught:
            bf.load_income_history([101, 102], since=290, until=310, explorer=explorer, strict=True)

    assert 2 * 21 - 2 == found.height
    assert_frame_equal(found, caught.value.rows)
    assert {(101, 300), (101, 301)} == cells(caught.value.missing, "epoch")


def test_a_hole_that_is_not_final_yet_is_no_error(upstream):
    """Of the last two epochs nobody can say what must be there."""
    fault = f"rows_lack?path=balance&fields=epoch,validatorindex&cells={FINAL + 1}-101"

    with (
        spoiling(upstream, fault) as (_, explorer),
        pytest.warns(bf.MissingRows, match=f"validator_index 101, epoch {FINAL + 1}"),
    ):
        found = bf.load_balance_history(101, since=460, until=469, explorer=explorer)

    assert 9 == found.height


def test_the_running_epoch_is_not_missing_its_slots_to_come(upstream):
    """It has those so far; where the chain ends is asked for once, and nothing else again."""
    with spoiling(upstream, "") as (server, explorer):
        slots = bf.load_epoch_slots(since=469, until=469, explorer=explorer)

    assert set(range(469 * 32, 15_029)) == set(slots.filter(status="proposed")["slot"]) | set(
        slots.filter(pl.col("status").is_in(["missed", "orphaned"]))["slot"]
    )
    assert 1 == len(asked(server, "/slots"))
    assert len(server.seen) <= 2


def test_two_blocks_of_a_slot_are_no_contradiction(upstream, chain):
    """The orphaned one stands beside the canonical one, each by its root."""
    torn = chain.scan("blocks").filter(status="orphaned").select("slot", "epoch").collect()
    slot, epoch = torn.row(0)

    found = good(upstream, bf.load_epoch_slots, since=epoch, until=epoch)

    assert {"proposed", "orphaned"} >= set(found.filter(slot=slot)["status"]) >= {"orphaned"}
    assert 32 == found["slot"].n_unique() <= found.height


def test_pandas_gets_the_rest_as_pandas(upstream):
    """The error's rows are what the loader would have returned."""
    fault = "rows_lack?path=balance&fields=epoch,validatorindex&cells=300-101"

    with (
        spoiling(upstream, fault) as (_, explorer),
        bf.settings(frame="pandas"),
        pytest.raises(errors.IntegrityError) as caught,
    ):
        bf.load_balance_history(101, since=299, until=301, explorer=explorer)

    assert [299, 301] == list(caught.value.rows["epoch"])
    assert "DataFrame" == type(caught.value.rows).__name__


LISTS = {
    "epoch": (bf.load_epochs, (), {"since": 100, "until": 104}, 5),
    "slots": (bf.load_epoch_slots, (), {"since": 100, "until": 101}, 2),
    "yieldindex": (bf.load_yield_index, (), {"since": 0, "until": 1}, 2),
    "sync_committee": (bf.load_sync_committees, ([0, 1],), {}, 2),
    "execution/block": (bf.load_execution_blocks, (range(1000, 1150),), {}, 2),
    "validator/": (bf.load_validators, (range(150),), {}, 2),
    "stats": (bf.load_validator_stats, ([100, 101],), {"since": 0, "until": 1}, 2),
}


@pytest.mark.parametrize("part", LISTS)
def test_an_answer_that_is_empty_once_is_asked_for_again(upstream, part):
    """The first answer is empty: one request more, and nothing lacks."""
    load, args, span, requests = LISTS[part]
    expected = good(upstream, load, *args, **span)

    with spoiling(upstream, f"rows_empty?path={part}&times=1") as (server, explorer):
        found = load(*args, **span, explorer=explorer)

    assert_frame_equal(expected, found)
    assert requests + 1 == len(asked(server, part))


@pytest.mark.parametrize(
    ("load", "fault", "words"),
    [
        (lambda e: bf.load_epochs(since=100, until=101, explorer=e), "rows_empty?path=epoch/1",
         "epoch 100 to 101"),
        (lambda e: bf.load_epochs(since=100, until=100, explorer=e), "rows_empty?path=epoch/1",
         "epoch 100"),
        (lambda e: bf.load_epoch_slots(since=100, until=101, explorer=e),
         "rows_drop?path=/slots&every=64&at=5", "epoch 100, slot 3205; epoch 101, slot 3237"),
        (lambda e: bf.load_epoch_slots(since=100, until=101, explorer=e),
         "rows_empty?path=/101/slots", "epoch 101"),
        (lambda e: bf.load_execution_blocks([1000, 1001, 1002], explorer=e),
         "rows_lack?fields=blockNumber&cells=1001", "block_number 1001"),
    ],
)  # fmt: skip
def test_what_is_final_must_be_there(upstream, load, fault, words):
    """An epoch, a slot of an epoch, a block before another: an error that says which."""
    with spoiling(upstream, fault) as (_, explorer):
        if not fault:
            assert load(explorer).height > 0
            return
        with pytest.raises(errors.IntegrityError, match=f"requested twice: {words}\\."):
            load(explorer)


@pytest.mark.parametrize("part", GRIDS)
def test_repeats_and_disorder_change_nothing(upstream, part):
    """Rows that come twice and in another order are each there once, by key."""
    load, span, windows = GRIDS[part]
    expected = good(upstream, load, ACTIVE, **span)

    for fault in ("rows_dup", "rows_shuffle"):
        with spoiling(upstream, f"{fault}?path=/{part}") as (server, explorer):
            assert_frame_equal(expected, load(ACTIVE, **span, explorer=explorer))
        assert 2 * windows == len(asked(server, part))


def test_rows_that_contradict_each_other_are_an_error(upstream):
    """It names the key, the field and both values."""
    with (
        spoiling(upstream, "rows_conflict?path=balance&field=balance") as (_, explorer),
        pytest.raises(errors.IntegrityError, match=r"'validator_index': 101, 'epoch': 300.*differ "
                      "in balance_gwei"),
    ):  # fmt: skip
        bf.load_balance_history(101, since=300, until=300, explorer=explorer)


@pytest.mark.parametrize(("field", "value"), [("validatorindex", 7), ("epoch", 299)])
def test_rows_that_nobody_asked_for_are_an_error(upstream, field, value):
    """Another validator, another epoch: the service answered another question."""
    fault = f"rows_extra?path=balance&field={field}&value={value}"

    with (
        spoiling(upstream, fault) as (_, explorer),
        pytest.raises(errors.IntegrityError, match="not requested"),
    ):
        bf.load_balance_history(101, since=300, until=301, explorer=explorer)


@pytest.mark.parametrize(
    ("load", "requests"),
    [
        (lambda e: bf.load_validators([*range(100), 10**6], explorer=e), 2 + 1),
        (lambda e: bf.load_validators(range(10**6, 10**6 + 1000), explorer=e), 10 + 1),
        (lambda e: bf.load_income_history(10**6, since=0, until=FINAL, explorer=e), 5 + 1),
        (lambda e: bf.load_validator_stats([1, *range(10**6, 10**6 + 9)], since=0, until=1,
                                           explorer=e), 10 + 1),
        (lambda e: bf.load_execution_blocks(range(10**6, 10**6 + 500), explorer=e), 5 + 1),
    ],
)  # fmt: skip
def test_what_there_never_was_costs_one_request_more(upstream, load, requests):
    """Validators that do not exist, periods to come: named after one more look."""
    with spoiling(upstream, "") as (server, explorer), pytest.warns(bf.MissingRows):
        load(explorer)

    assert requests == len(server.seen)


def test_a_validator_that_came_later_costs_one_request_more(upstream, chain):
    """What is next to its first row is looked at once more, not the epochs before."""
    since = chain.scan("validators").filter(pl.col("activation_epoch") > 150).collect()
    late, epoch = since.select("validator_index", "activation_epoch").row(0)

    with (
        spoiling(upstream, "") as (server, explorer),
        pytest.warns(bf.MissingRows, match=f"epoch 0 to {epoch - 1}"),
    ):
        bf.load_income_history([1, late], since=0, until=FINAL, explorer=explorer)

    last = epoch - 1
    window = f"latest_epoch={last}&limit={min(epoch, 100)}"
    assert [f"/api/v1/validator/{late}/incomedetailhistory?{window}"] == asked(server, "income")[5:]


def test_further_away_is_asked_for_when_something_was_to_be_had(upstream):
    """Two whole windows were lost once: the nearer one is asked for, and then the other."""
    expected = good(upstream, bf.load_income_history, 101, since=0, until=FINAL)

    with spoiling(upstream, "rows_empty?path=income&times=2") as (server, explorer):
        found = bf.load_income_history(101, since=0, until=FINAL, explorer=explorer)

    assert_frame_equal(expected, found)
    assert 5 + 2 == len(asked(server, "income"))


def test_who_was_named_by_key_is_looked_for_as_well(upstream, chain):
    """Rows carry no key, yet what lacks is found by the index that came with the rest."""
    keys = chain.scan("validators").sort("validator_index").collect()["pubkey"][101:104]
    expected = good(upstream, bf.load_balance_history, list(keys), since=290, until=310)

    with spoiling(upstream, "rows_drop?path=balance&every=7&times=1") as (server, explorer):
        found = bf.load_balance_history(list(keys), since=290, until=310, explorer=explorer)
    with spoiling(upstream, "rows_empty?path=balance&times=1") as (emptied, explorer):
        again = bf.load_balance_history(list(keys), since=290, until=310, explorer=explorer)

    assert_frame_equal(expected, found)
    assert_frame_equal(expected, again)
    assert 2 == len(asked(server, "balance")) == len(asked(emptied, "balance"))


@pytest.mark.parametrize("kind", [errors.ServerError, errors.ProtocolError, errors.SchemaError])
def test_a_service_that_fails_meanwhile_loses_nothing(upstream, kind):
    """What came stands, and what lacks is named, when asking again fails."""
    fault = "rows_lack?path=income&fields=epoch,validatorindex&cells=300-101"

    with FaultServer(fault, upstream=upstream.url) as server:
        explorer = bf.Explorer(server.url, chain=upstream.service.chain, rate=10_000)
        fetch = explorer.source._session.fetch

        def once(request, **more):
            if asked(server, "income"):
                raise kind("gone")
            return fetch(request, **more)

        explorer.source._session.fetch = once
        with explorer, pytest.warns(bf.MissingRows, match="epoch 300"):
            found = bf.load_income_history(101, since=299, until=301, explorer=explorer)

    assert [299, 301] == found["epoch"].to_list()


@pytest.mark.parametrize(
    ("load", "whose", "part"),
    [
        (bf.load_income_history, {"validators": range(101, 110)}, "income"),
        (bf.load_balance_history, {"validators": range(101, 110)}, "balance"),
    ],
)
def test_a_service_that_had_nothing_at_all_is_asked_again(upstream, tmp_path, load, whose, part):
    """That everything lacks is no word on anybody: once the service has healed, all is there."""
    wanted = {**whose, "since": 300, "until": 310}
    expected = good(upstream, load, **wanted)
    known = {"chain": upstream.service.chain, "rate": 10_000, "store": tmp_path}
    with (
        FaultServer(f"rows_empty?path={part}&times=2", upstream=upstream.url) as server,
        bf.Explorer(server.url, **known) as explorer,
    ):
        with pytest.warns(bf.MissingRows):
            assert load(**wanted, explorer=explorer).is_empty()
        assert_frame_equal(expected, load(**wanted, explorer=explorer))


STATE = {"currentSlot": 320, "currentEpoch": 10, "currentFinalizedEpoch": 8}


@pytest.mark.parametrize("state", [STATE, [STATE], {name: str(n) for name, n in STATE.items()}])
def test_the_head_is_read_as_any_record_is(state):
    """An object or one in a list, numbers or text."""
    told = head.parse_latest_state(json.dumps(state).encode())
    assert (320, 10, 8) == (told.current_slot, told.current_epoch, told.current_finalized_epoch)


@pytest.mark.parametrize("slot", [{"slot": 7}, [{"slot": 7}], {"slot": "7"}, {"slot": 7.0}])
def test_the_slot_of_generation_2_is_read_as_any_record_is(slot):
    """An object or one in a list, a number or text."""
    assert 7 == head.parse_slot(json.dumps(slot).encode())


@pytest.mark.parametrize("data", ["[]", "[{},{}]", "5", "{}", '{"slot":-1}', f'{{"slot":{2**70}}}'])
def test_a_head_that_makes_no_sense_is_the_service_s_fault(data):
    """Nobody guesses where the chain ends."""
    with pytest.raises(errors.ProtocolError, match="cannot be read"):
        head.parse_slot(data.encode())
    with pytest.raises(errors.ProtocolError, match="cannot be read"):
        head.parse_latest_state(data.encode())


ADDRESS = "0x" + "11" * 20


def test_a_list_that_moves_while_it_is_read_is_said_so(caplog):
    """Pages are cut by number: where a row comes twice, another may not have come at all."""
    key = {"validatorindex": None, "valid_signature": True}
    every = [{"publickey": f"0x{number:096x}", **key} for number in range(3000)]

    path = f"GET /api/v1/validator/eth1/{ADDRESS}"
    pages = {
        f"{path}?offset={offset}&limit=2000": json.dumps({"status": "OK", "data": rows}).encode()
        for offset, rows in ((0, every[:2000]), (2000, every[1995:2995]))
    }
    with replaying(pages) as server, bf.Explorer(server.url, rate=10_000) as explorer:
        found = bf.load_deposit_origin(ADDRESS, explorer=explorer)

    assert 2995 == found.height
    assert (
        "5 rows were received more than once; each is used once, and others may be missing"
        in caplog.text
    )


def test_the_calendar_of_another_chain_is_noted(upstream, caplog):
    """A local explorer says when its chain began; it is not mainnet by having the address alone."""
    response_warnings.log_other_chain.cache_clear()
    for known in ({}, {"chain": upstream.service.chain}):
        caplog.clear()
        with bf.Explorer(upstream.url, head=upstream.service.head, **known) as explorer:
            bf.load_validators([1], explorer=explorer)
        assert ("times are computed for mainnet" in caplog.text) == (not known)
