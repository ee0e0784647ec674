"""Rows that are missing, duplicate, contradictory or not requested: complete, or an error.

A server between the client and the local explorer damages the responses. The result must be the
same as without it.
"""

from __future__ import annotations

import functools
import json
from contextlib import contextmanager, nullcontext

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.active_periods import NOT_CHECKED
from beaconframes.calendar import MAINNET
from beaconframes.dictionary import ENDPOINTS_BY_NAME
from beaconframes.endpoint import Head
from beaconframes.fetch import head, source
from beaconframes.fetch.completeness import IMPOSSIBLE, find_intervals_without_rows
from beaconframes.fetch.missing_report import describe_gaps
from beaconframes.fetch.refetch import cover_gaps, split_gaps
from beaconframes.fetch.response_warnings import ResponseWarnings
from beaconframes.server import Server

from ..support.faults import FaultServer
from ..support.replay import replaying

FINAL = 467
"""The last finalized epoch of the chain; two more were processed."""

GRIDS = {
    "incomedetailhistory": (bf.load_income_history, {"since": 310, "until": 429}, 2),
    "balancehistory": (bf.load_balance_history, {"since": 310, "until": 429}, 2),
    "attestations": (bf.load_attestations, {"since": 440, "until": FINAL}, 1),
}
"""By part of the path: a loader of validators by epochs, a range of final ones, its windows."""

ACTIVE = range(100, 205)
"""Validators with a row in each of these epochs; they take two batches."""


@pytest.fixture(scope="module")
def upstream(chain):
    """The local explorer whose responses are damaged."""
    with Server(chain) as server:
        yield server


@contextmanager
def damaging(upstream, fault, **options):
    """Yield the server that damages responses, and an explorer connected to it."""
    chain = upstream.service.chain
    with (
        FaultServer(fault, upstream=upstream.url) as server,
        bf.Explorer(server.url, chain=chain, rate=10_000, **options) as explorer,
    ):
        yield server, explorer


def load_without_faults(upstream, load, *args, **more):
    """Return the rows without faults, and without gaps."""
    with damaging(upstream, "") as (_, explorer):
        return load(*args, **more, explorer=explorer, strict=True)


def list_targets(server, part):
    """Return the requested targets that contain *part*, as they arrived."""
    return [seen.target for seen in server.seen if part in seen.target]


def list_cells(missing, unit):
    """Return the cells of a frame of missing intervals."""
    subject, *_ = missing.columns
    return {
        (row[subject], number)
        for row in missing.rows(named=True)
        for number in range(row[f"first_{unit}"], row[f"last_{unit}"] + 1)
    }


@pytest.mark.more
@pytest.mark.parametrize("part", GRIDS)
def test_rows_missing_once_are_requested_again(upstream, part):
    """P10: one row in eleven is missing from the first responses: each is requested once more."""
    load, span, windows = GRIDS[part]
    expected = load_without_faults(upstream, load, ACTIVE, **span)

    with damaging(upstream, f"rows_drop?path=/{part}&every=11&times={2 * windows}") as (
        server,
        explorer,
    ):
        found = load(ACTIVE, **span, explorer=explorer)

    assert_frame_equal(expected, found)
    assert expected.height == len(ACTIVE) * (span["until"] - span["since"] + 1)
    assert 2 * windows * 2 == len(list_targets(server, part))


def test_only_missing_rows_are_requested_again(upstream):
    """Three rows of two validators, in two batches and across two windows: one request."""
    expected = load_without_faults(upstream, bf.load_balance_history, ACTIVE, since=310, until=429)
    fault = "rows_lack?fields=epoch,validatorindex&cells=409-101,410-101,408-204&times=4"

    with damaging(upstream, f"{fault}&path=balance") as (server, explorer):
        found = bf.load_balance_history(ACTIVE, since=310, until=429, explorer=explorer)

    assert_frame_equal(expected, found)
    assert ["/api/v1/validator/101,204/balancehistory?latest_epoch=410&limit=3"] == (
        list_targets(server, "balancehistory")[4:]
    )


@pytest.mark.more
@pytest.mark.parametrize("part", ["balancehistory", "attestations"])
def test_a_gap_between_final_rows_is_an_error_with_the_other_rows(upstream, part):
    """P10: the error has the rows that were received and the list of the missing ones."""
    load, span, _ = GRIDS[part]
    expected = load_without_faults(upstream, load, ACTIVE, **span)

    with (
        damaging(upstream, f"rows_drop?path=/{part}") as (_, explorer),
        pytest.raises(errors.IntegrityError, match="requested twice: validator_index") as caught,
    ):
        load(ACTIVE, **span, explorer=explorer)

    rows, missing = caught.value.rows, caught.value.missing
    missing_rows = expected.join(rows, on=["validator_index", "epoch"], how="anti")
    assert_frame_equal(expected, pl.concat([rows, missing_rows]).sort("validator_index", "epoch"))
    assert set(missing_rows.select("validator_index", "epoch").rows()) == list_cells(
        missing, "epoch"
    )
    assert 0 < missing_rows.height < expected.height // 10


def test_a_hole_in_income_is_an_error(upstream):
    """G3: an active validator has income in every epoch; the error has the other rows."""
    fault = "rows_lack?path=income&fields=epoch,validatorindex&cells=300-101,301-101"

    with (
        damaging(upstream, fault) as (_, explorer),
        pytest.raises(
            errors.IntegrityError, match="validator_index 101, epoch 300 to 301"
        ) as caught,
    ):
        bf.load_income_history([101, 102], since=290, until=310, explorer=explorer)

    assert 2 * 21 - 2 == caught.value.rows.height
    assert {(101, 300), (101, 301)} == list_cells(caught.value.missing, "epoch")


def test_a_gap_that_is_not_final_is_no_error(upstream):
    """For the last two epochs the expected rows are unknown."""
    fault = f"rows_lack?path=balance&fields=epoch,validatorindex&cells={FINAL + 1}-101"

    with (
        damaging(upstream, fault) as (_, explorer),
        pytest.warns(bf.MissingRows, match=f"validator_index 101, epoch {FINAL + 1}"),
    ):
        found = bf.load_balance_history(101, since=460, until=469, explorer=explorer)

    assert 9 == found.height


def test_future_slots_of_the_current_epoch_are_not_missing(upstream):
    """P24: the head is requested once, and no slot is requested again."""
    with damaging(upstream, "") as (server, explorer):
        slots = bf.load_epoch_slots(since=469, until=469, explorer=explorer)

    assert set(range(469 * 32, 15_029)) == set(slots.filter(status="proposed")["slot"]) | set(
        slots.filter(pl.col("status").is_in(["missed", "orphaned"]))["slot"]
    )
    assert 1 == len(list_targets(server, "/slots"))
    assert len(server.seen) <= 2


def test_slots_of_a_complete_epoch_that_is_not_final_are_missing(upstream, tmp_path):
    """G9: two slots of the epoch before the current one, with and without a store."""
    epoch = FINAL + 1
    fault = f"rows_lack?path=/{epoch}/slots&fields=slot&cells={32 * epoch + 5},{32 * epoch + 6}"
    call = {"since": epoch, "until": epoch + 1}

    for store in (False, tmp_path):
        with FaultServer(fault, upstream=upstream.url) as server:
            options = {"chain": upstream.service.chain, "rate": 10_000, "store": store}
            with bf.Explorer(server.url, **options) as explorer:
                with pytest.raises(bf.MissingRows, match=f"slot {32 * epoch + 5} to") as caught:
                    bf.load_epoch_slots(**call, explorer=explorer, strict=True)
                assert 30 == caught.value.rows.filter(epoch=epoch)["slot"].n_unique()
                server.fault("")
                found = bf.load_epoch_slots(**call, explorer=explorer, strict=True)
        assert 32 == found.filter(epoch=epoch)["slot"].n_unique()


def test_two_blocks_of_a_slot_are_no_contradiction(upstream, chain):
    """P24: an orphaned and a canonical block have different roots."""
    orphaned = chain.scan("blocks").filter(status="orphaned").select("slot", "epoch").collect()
    slot, epoch = orphaned.row(0)

    found = load_without_faults(upstream, bf.load_epoch_slots, since=epoch, until=epoch)

    assert {"proposed", "orphaned"} >= set(found.filter(slot=slot)["status"]) >= {"orphaned"}
    assert 32 == found["slot"].n_unique() <= found.height


def test_the_rows_of_the_error_are_a_pandas_frame(upstream):
    """The rows of the error have the type that the loader would return."""
    fault = "rows_lack?path=balance&fields=epoch,validatorindex&cells=300-101"

    with (
        damaging(upstream, fault) as (_, explorer),
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
def test_an_empty_response_is_requested_again(upstream, part):
    """P13: the first response is empty: one more request, and no row is missing."""
    load, args, span, requests = LISTS[part]
    expected = load_without_faults(upstream, load, *args, **span)

    with damaging(upstream, f"rows_empty?path={part}&times=1") as (server, explorer):
        found = load(*args, **span, explorer=explorer)

    assert_frame_equal(expected, found)
    assert requests + 1 == len(list_targets(server, part))


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
def test_missing_final_rows_are_an_error(upstream, load, fault, words):
    """P10: an epoch, a slot of an epoch, a block before another: the error names it."""
    with (
        damaging(upstream, fault) as (_, explorer),
        pytest.raises(errors.IntegrityError, match=f"requested twice: {words} [(]GET "),
    ):
        load(explorer)


@pytest.mark.more
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=[] if part == "balancehistory" else pytest.mark.more)
        for part in GRIDS
    ],
)
def test_duplicate_and_unordered_rows_change_nothing(upstream, part):
    """P06, P09: duplicate rows are used once, and rows are sorted by key."""
    load, span, windows = GRIDS[part]
    expected = load_without_faults(upstream, load, ACTIVE, **span)

    for fault in ("rows_dup", "rows_shuffle"):
        with damaging(upstream, f"{fault}?path=/{part}") as (server, explorer):
            assert_frame_equal(expected, load(ACTIVE, **span, explorer=explorer))
        assert 2 * windows == len(list_targets(server, part))


def test_contradictory_rows_are_an_error(upstream):
    """P07: the error names the key, the field and both values."""
    with (
        damaging(upstream, "rows_conflict?path=balance&field=balance") as (_, explorer),
        pytest.raises(errors.IntegrityError, match=r"'validator_index': 101, 'epoch': 300.*differ "
                      "in balance_gwei"),
    ):  # fmt: skip
        bf.load_balance_history(101, since=300, until=300, explorer=explorer)


@pytest.mark.parametrize(("field", "value"), [("validatorindex", 7), ("epoch", 299)])
def test_rows_that_were_not_requested_are_an_error(upstream, field, value):
    """P12: another validator, another epoch: the response belongs to another request."""
    fault = f"rows_extra?path=balance&field={field}&value={value}"

    with (
        damaging(upstream, fault) as (_, explorer),
        pytest.raises(errors.IntegrityError, match="not requested"),
    ):
        bf.load_balance_history(101, since=300, until=301, explorer=explorer)


@pytest.mark.more
@pytest.mark.parametrize(
    ("load", "requests"),
    [
        (lambda e: bf.load_validators([*range(100), 10**6], explorer=e), 2 + 1),
        (lambda e: bf.load_validators(range(10**6, 10**6 + 1000), explorer=e), 10 + 1),
        (lambda e: bf.load_income_history(10**6, since=0, until=FINAL, explorer=e), 5 + 2),
        (lambda e: bf.load_validator_stats([1, *range(10**6, 10**6 + 9)], since=0, until=1,
                                           explorer=e), 10 + 1),
        (lambda e: bf.load_execution_blocks(range(10**6, 10**6 + 500), explorer=e), 5 + 1),
    ],
)  # fmt: skip
def test_rows_that_never_existed_cost_one_more_request(upstream, load, requests):
    """P11: unknown validators and future blocks are reported after one more request."""
    with damaging(upstream, "") as (server, explorer), pytest.warns(bf.MissingRows):
        load(explorer)

    assert requests == len(server.seen)


def count_resolved(server):
    """Return the number of requests for the indices of public keys."""
    return [seen.target for seen in server.seen].count("/api/v1/validator")


def list_lookups(server):
    """Return the requests for the activity epochs of validators."""
    return [
        seen.target
        for seen in server.seen
        if seen.target.startswith("/api/v1/validator/") and seen.target.count("/") == 4
    ]


@pytest.mark.more
@pytest.mark.parametrize(
    ("load", "span"),
    [
        (bf.load_income_history, {"since": 320, "until": 419}),
        (bf.load_balance_history, {"since": 320, "until": 419}),
        (bf.load_attestations, {}),
    ],
)
def test_rows_that_cannot_exist_are_not_missing(upstream, chain, load, span):
    """G1: before the activation and after the exit; one request for all of the validators."""
    validators = chain.scan("validators").collect()
    late = validators.filter(pl.col("activation_epoch") > 350)["validator_index"][:2]
    waiting = validators.filter(pl.col("activation_epoch").is_null())["validator_index"][:2]
    gone = validators.filter(pl.col("exit_epoch") < 419)["validator_index"][-2:]
    assert all(map(len, (late, waiting, gone)))

    with damaging(upstream, "") as (server, explorer):
        found = load([1, *late, *waiting, *gone], **span, explorer=explorer, strict=True)
        assert 1 == len(list_lookups(server))
        assert set(bf.missing()["reason"]) <= {"exited", "not active yet"}
        load([1, *late, *waiting, *gone], **span, explorer=explorer, strict=True)

    # The activity epochs are requested once, and gaps are not requested again.
    assert 1 == len(list_lookups(server))
    windows = len(server.seen) - 1
    # One more request is for the head.
    assert windows == 2 + 1
    last = found.filter(pl.col("epoch") == pl.col("epoch").max())["validator_index"]
    assert {1, *late} <= set(last)


@pytest.mark.more
def test_every_validator_of_the_sample_loads_strictly():
    """G1: exited, slashed, pending and active validators of twelve hours, without a warning."""
    with bf.local():
        found = bf.load_income_history(range(1000), since="12h", strict=True)

    assert found["validator_index"].n_unique() > 950
    assert {"exited", "not active yet"} == set(bf.missing()["reason"])


def test_lost_rows_of_an_active_period_are_missing(upstream, chain):
    """G1: only the part before the activation cannot exist."""
    validators = chain.scan("validators").filter(pl.col("activation_epoch") > 150).collect()
    late, epoch = validators.select("validator_index", "activation_epoch").row(0)
    cells = f"{epoch}-{late},{epoch + 1}-{late}"

    with (
        damaging(upstream, f"rows_lack?path=income&fields=epoch,validatorindex&cells={cells}") as (
            _,
            explorer,
        ),
        pytest.warns(bf.MissingRows, match=f"{late}, epoch {epoch} to {epoch + 1}") as caught,
    ):
        bf.load_income_history([1, late], since=epoch - 9, until=epoch + 9, explorer=explorer)

    expected = {
        "validator_index": late, "first_epoch": epoch, "last_epoch": epoch + 1,
        "reason": "not returned by the service",
    }  # fmt: skip
    assert [expected] == bf.missing().to_dicts() == caught[0].message.missing.to_dicts()


def test_the_message_counts_validators_by_reason(upstream, chain):
    """G2: how many validators have no rows and why; no route, and the frame of the last load."""
    exited = chain.scan("validators").filter(pl.col("exit_epoch") < FINAL - 10).collect()
    gone = exited["validator_index"][0]
    unknown = [5000, 5001, 5002]
    since = FINAL - 5
    date = upstream.service.chain.time_of("epoch", since).date()

    with damaging(upstream, "") as (_, explorer):
        with pytest.warns(bf.MissingRows) as caught:
            bf.load_income_history(
                [*range(100, 110), gone, *unknown], since=since, until=FINAL, explorer=explorer
            )
        assert str(caught[0].message).startswith(
            "4 of 14 validators have no rows: 3 unknown to the service (5000, 5001, 5002), "
            f"1 exited before {date} ({gone}). bf.missing()"
        )
        frame = bf.missing()
        assert frame.equals(caught[0].message.missing)
        assert {*unknown, gone} == set(frame["validator_index"])
        assert ["exited"] == frame.filter(validator_index=gone)["reason"].to_list()
        with pytest.raises(bf.MissingRows, match="1 of 1 validators has no rows") as error:
            bf.load_income_history(5000, since=since, explorer=explorer, strict=True)
        assert error.value.missing.equals(bf.missing())
        bf.load_income_history(100, since=since, explorer=explorer)
        assert bf.missing().is_empty()


def test_the_message_counts_validators_with_the_same_gap():
    """One gap of all validators is one entry, not a list of thousands."""
    gaps = pl.DataFrame(
        {
            "validator_index": [1, 2, 3, 4, 5],
            "pubkey": [None] * 5,
            "first_epoch": [10, 10, 10, 10, 12],
            "last_epoch": [19, 19, 19, 19, 12],
            "reason": ["not in the dataset"] * 5,
        }
    )

    text = describe_gaps(gaps)

    assert (
        "4 validators (1, 2, 3, ...), epoch 10 to 19; validator_index 5, epoch 12 "
        "(not in the dataset)"
    ) == text


def test_inactive_validators_are_listed_without_a_warning(upstream, chain, tmp_path):
    """G2: `missing` explains an empty frame; the store, which knows the epochs, changes nothing."""
    exited = chain.scan("validators").filter(pl.col("exit_epoch") < FINAL - 10).collect()
    gone = exited["validator_index"][0]
    waiting = chain.scan("validators").filter(pl.col("activation_epoch").is_null()).collect()
    idle = waiting["validator_index"][0]
    expected = [(gone, FINAL - 5, FINAL, "exited"), (idle, FINAL - 5, FINAL, "not active yet")]

    with damaging(upstream, "", store=tmp_path) as (_, explorer):
        for _ in range(2):
            rows = bf.load_income_history(
                [100, gone, idle], since=FINAL - 5, until=FINAL, explorer=explorer, strict=True
            )
            assert (6, sorted(expected)) == (rows.height, sorted(bf.missing().rows()))


def test_an_unanswered_request_explains_no_gap(upstream):
    """G1: if the validators cannot be requested, no row is called impossible or unknown."""
    with damaging(upstream, "") as (_, explorer):
        fetch = explorer.source._session.fetch

        def fail(request, **more):
            if request.path == "/api/v1/validator/101,5000":
                raise errors.ServerError("failed")
            return fetch(request, **more)

        explorer.source._session.fetch = fail
        with pytest.warns(bf.MissingRows, match="not returned by the service"):
            bf.load_income_history([101, 5000], since=FINAL, explorer=explorer)

    assert ["not returned by the service"] == bf.missing()["reason"].to_list()


def test_max_requests_may_leave_no_request_for_the_check(upstream, chain):
    """G1: then the reason says so, instead of blaming the service."""
    gone = chain.scan("validators").filter(pl.col("exit_epoch") < FINAL - 10).collect()[0]

    with (
        damaging(upstream, "") as (server, explorer),
        pytest.warns(bf.MissingRows, match="max_requests left no request to check"),
    ):
        bf.load_income_history(
            [101, gone["validator_index"].item()], since=FINAL, until=FINAL, explorer=explorer,
            max_requests=1,
        )  # fmt: skip

    assert [] == list_lookups(server)


@pytest.mark.parametrize("load", [bf.load_income_history, bf.v2.load_rewards])
def test_max_requests_may_leave_no_request_for_a_public_key(upstream, load):
    """The request for the index of a key without rows counts, too; without it, the reason says so.

    In V1 the gap is the number of such keys, because its rows have no key.
    """
    unknown = "0x" + "ab" * 48

    with damaging(upstream, "") as (server, explorer):
        call = {"since": FINAL, "until": FINAL, "explorer": explorer}
        with pytest.warns(bf.MissingRows, match="max_requests left no request to check"):
            load([101, unknown], **call, max_requests=1)
        assert [NOT_CHECKED] == bf.missing()["reason"].to_list()
        assert 0 == count_resolved(server)

        with pytest.warns(bf.MissingRows, match=rf"1 unknown to the service \({unknown}\)"):
            load([101, unknown], **call, max_requests=3)
    assert 1 == count_resolved(server)


def test_a_validator_is_checked_although_a_public_key_is_not(upstream):
    """Its row is missing because the service did not return it: its epochs are known."""
    fault = f"rows_lack?fields=epoch,validatorindex&cells={FINAL}-101&path=income&times=9"

    with damaging(upstream, fault) as (_, explorer):
        call = {"since": FINAL - 5, "until": FINAL, "explorer": explorer}
        with pytest.warns(bf.MissingRows):
            bf.load_income_history(101, **call)
        with pytest.warns(bf.MissingRows):
            bf.load_income_history([101, "0x" + "ab" * 48], **call, max_requests=1)
    assert ["not returned by the service", NOT_CHECKED] == bf.missing()["reason"].to_list()


def test_public_keys_without_rows_are_named(upstream, chain):
    """G2: a key that no validator has, and the key of a validator that is not active yet."""
    validators = chain.scan("validators").collect()
    waiting = validators.filter(pl.col("activation_epoch").is_null())["pubkey"][0]
    unknown = "0x" + "ab" * 48
    keys = [validators["pubkey"][101], waiting, unknown]

    with damaging(upstream, "") as (_, explorer):
        with pytest.warns(bf.MissingRows, match=rf"1 unknown to the service \({unknown}\)"):
            bf.load_income_history(keys, since=FINAL, explorer=explorer)
        bf.load_income_history(keys[:2], since=FINAL, explorer=explorer, strict=True)

    index = validators.filter(pubkey=waiting)["validator_index"][0]
    assert [(index, "not active yet")] == bf.missing().select("validator_index", "reason").rows()


@pytest.mark.more
def test_farther_windows_are_requested_if_the_nearer_one_had_rows(upstream):
    """Two whole windows were empty once: the nearer one is requested first, then the other."""
    expected = load_without_faults(upstream, bf.load_income_history, 101, since=0, until=FINAL)

    with damaging(upstream, "rows_empty?path=income&times=2") as (server, explorer):
        found = bf.load_income_history(101, since=0, until=FINAL, explorer=explorer)

    assert_frame_equal(expected, found)
    assert 5 + 2 == len(list_targets(server, "income"))


def test_missing_rows_of_public_keys_are_requested_again(upstream, chain):
    """Rows have no key; missing rows are requested by the index in the other rows."""
    keys = chain.scan("validators").sort("validator_index").collect()["pubkey"][101:104]
    expected = load_without_faults(
        upstream, bf.load_balance_history, list(keys), since=290, until=310
    )

    with damaging(upstream, "rows_drop?path=balance&every=7&times=1") as (server, explorer):
        found = bf.load_balance_history(list(keys), since=290, until=310, explorer=explorer)
    with damaging(upstream, "rows_empty?path=balance&times=1") as (emptied, explorer):
        again = bf.load_balance_history(list(keys), since=290, until=310, explorer=explorer)

    assert_frame_equal(expected, found)
    assert_frame_equal(expected, again)
    assert 2 == len(list_targets(server, "balance")) == len(list_targets(emptied, "balance"))


@pytest.mark.parametrize("kind", [errors.ServerError, errors.ProtocolError, errors.SchemaError])
def test_a_failed_refetch_loses_no_rows(upstream, kind):
    """Received rows are returned, and missing ones are reported, if the second request fails."""
    fault = "rows_lack?path=income&fields=epoch,validatorindex&cells=301-101"

    with FaultServer(fault, upstream=upstream.url) as server:
        explorer = bf.Explorer(server.url, chain=upstream.service.chain, rate=10_000)
        fetch = explorer.source._session.fetch

        def fail_later(request, **more):
            if list_targets(server, "income"):
                raise kind("failed")
            return fetch(request, **more)

        explorer.source._session.fetch = fail_later
        with explorer, pytest.warns(bf.MissingRows, match="epoch 301"):
            found = bf.load_income_history(101, since=299, until=301, explorer=explorer)

    assert [299, 300] == found["epoch"].to_list()


@pytest.mark.more
@pytest.mark.parametrize(
    ("load", "subjects", "part"),
    [
        (bf.load_income_history, {"validators": range(101, 110)}, "income"),
        (bf.load_balance_history, {"validators": range(101, 110)}, "balance"),
    ],
)
def test_an_empty_result_is_not_stored(upstream, tmp_path, load, subjects, part):
    """P13, G11: final rows of active validators must exist; the next call requests them again."""
    arguments = {**subjects, "since": 300, "until": 310}
    expected = load_without_faults(upstream, load, **arguments)
    known = {"chain": upstream.service.chain, "rate": 10_000, "store": tmp_path}
    with (
        FaultServer(f"rows_empty?path={part}&times=2", upstream=upstream.url) as server,
        bf.Explorer(server.url, **known) as explorer,
    ):
        with pytest.raises(errors.IntegrityError, match="epoch 300 to 310") as caught:
            load(**arguments, explorer=explorer)
        assert caught.value.rows.is_empty()
        assert_frame_equal(expected, load(**arguments, explorer=explorer))


STATE = {"currentSlot": 320, "currentEpoch": 10, "currentFinalizedEpoch": 8}


@pytest.mark.parametrize("state", [STATE, [STATE], {name: str(n) for name, n in STATE.items()}])
def test_forms_of_the_latest_state(state):
    """An object or one in a list, numbers or text."""
    state = head.parse_latest_state(json.dumps(state).encode())
    assert (320, 10, 8) == (state.current_slot, state.current_epoch, state.current_finalized_epoch)


@pytest.mark.parametrize("slot", [{"slot": 7}, [{"slot": 7}], {"slot": "7"}, {"slot": 7.0}])
def test_forms_of_the_v2_slot(slot):
    """An object or one in a list, a number or text."""
    data = json.dumps(slot).encode()
    assert 7 == head.HeadV2(lambda _: data, bf.MAINNET).slot("latest")


@pytest.mark.parametrize("data", ["[]", "[{},{}]", "5", "{}", '{"slot":-1}', f'{{"slot":{2**70}}}'])
def test_an_invalid_head_is_a_protocol_error(data):
    """No head is assumed instead."""
    with pytest.raises(errors.ProtocolError, match="cannot be read"):
        head.HeadV2(lambda _: data.encode(), bf.MAINNET).slot("latest")
    with pytest.raises(errors.ProtocolError, match="cannot be read"):
        head.parse_latest_state(data.encode())


ADDRESS = "0x" + "11" * 20


def test_a_list_that_shifts_between_pages_is_logged(caplog):
    """If a row is received twice, another one may be missing."""
    key = {"validatorindex": None, "valid_signature": True}
    records = [{"publickey": f"0x{number:096x}", **key} for number in range(3000)]

    path = f"GET /api/v1/validator/eth1/{ADDRESS}"
    pages = {
        f"{path}?offset={offset}&limit=2000": json.dumps({"status": "OK", "data": rows}).encode()
        for offset, rows in ((0, records[:2000]), (2000, records[1995:2995]))
    }
    with replaying(pages) as server, bf.Explorer(server.url, rate=10_000) as explorer:
        found = bf.load_deposit_origin(ADDRESS, explorer=explorer)

    assert 2995 == found.height
    assert (
        "5 rows were received more than once; each is used once, and others may be missing"
        in caplog.text
    )


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ([2, 3, 4], [(1, 1, False), (5, 5, False)]),
        ([1, 2, 3], [(4, 5, False)]),
        ([1, 3, 5], [(2, 2, True), (4, 4, True)]),
        ([1, 2, 5], [(3, 4, True)]),
        ([], [(1, 5, False)]),
    ],
)
def test_only_a_gap_between_rows_is_impossible(present, expected):
    """Planted fault `stretches > to >=`: a gap at either end of the request is only missing."""
    pairs = [(7, epoch) for epoch in present]
    rows = pl.DataFrame(pairs, {"validator_index": pl.Int64, "epoch": pl.Int64}, orient="row")
    ends = pl.DataFrame({"validator_index": [7], "low": [1], "high": [5]})

    gaps = find_intervals_without_rows(rows, ends, "validator_index", "epoch")

    assert expected == gaps.select("first_epoch", "last_epoch", IMPOSSIBLE).rows()


def test_gaps_of_subjects_with_and_without_all_units():
    """F5: complete subjects, gaps, duplicates, null units, and rows beyond the interval."""
    units = {1: [1, 2, 3, 4, 5], 2: [1, 3, 3, 5], 3: [2, 3], 4: [0, 1, 2, 3, 4, 5, 6], 5: [None]}
    units[6] = [3, None, 5]
    pairs = [(subject, epoch) for subject, epochs in units.items() for epoch in epochs]
    rows = pl.DataFrame(pairs, {"validator_index": pl.Int64, "epoch": pl.Int64}, orient="row")
    ends = pl.DataFrame({"validator_index": range(1, 8)}).with_columns(low=1, high=5)
    ends = ends.cast(pl.Int64)
    shuffled = rows.sample(fraction=1, shuffle=True, seed=1)

    gaps = find_intervals_without_rows(shuffled, ends, "validator_index", "epoch")

    expected = {2: [(2, 2), (4, 4)], 3: [(1, 1), (4, 5)], 5: [(1, 5)], 6: [(1, 2), (4, 4)]}
    expected[7] = [(1, 5)]
    flat = [(subject, *gap) for subject, found in expected.items() for gap in found]
    assert flat == gaps.drop(IMPOSSIBLE).rows()


def test_gaps_at_the_ends_of_a_request_share_the_windows_next_to_rows():
    """Validator 1 has rows from epoch 300 on, and validator 2 up to 99; each window has 100."""
    gaps = pl.DataFrame({"validator_index": [1, 2], "first": [0, 100], "last": [299, 399]})
    gaps = gaps.with_columns(pl.lit(value=False).alias(IMPOSSIBLE))

    near, rest = split_gaps(gaps, 0, 399, 100, batch_size=100)

    assert [(1, 200, 299), (2, 100, 199)] == near.drop(IMPOSSIBLE).rows()
    assert [(1, 0, 199), (2, 200, 399)] == rest.drop(IMPOSSIBLE).rows()


def test_gaps_between_rows_are_requested_with_one_batch_of_subjects_without_rows():
    """Rows of validator 1 are missing between others; 2 to 4 have none. A request names two."""
    first, last = [50, 0, 0, 0], [60, 399, 399, 399]
    gaps = pl.DataFrame({"validator_index": [1, 2, 3, 4], "first": first, "last": last})
    gaps = gaps.with_columns(pl.lit(value=False).alias(IMPOSSIBLE))

    near, rest = split_gaps(gaps, 0, 399, 100, batch_size=2)

    assert [(1, 50, 60), (2, 300, 399), (3, 300, 399)] == near.drop(IMPOSSIBLE).rows()
    assert [(2, 0, 299), (3, 0, 299), (4, 0, 399)] == rest.drop(IMPOSSIBLE).rows()


WITHDRAWAL = {"epoch": 0, "slot": 0, "blockroot": "0x00", "withdrawalindex": 0, "amount": 1,
              "validatorindex": 7, "address": "0x" + "ab" * 20}  # fmt: skip


def list_withdrawals(*epochs):
    """Return the records of a withdrawal in the first slot of each of *epochs*."""
    return [
        {**WITHDRAWAL, "epoch": epoch, "slot": 32 * epoch, "withdrawalindex": epoch}
        for epoch in epochs
    ]


@pytest.mark.parametrize("flush_seconds", [0.0, 60.0])
@pytest.mark.parametrize(
    ("epochs", "is_mixed_up"),
    [((250, 255), True), ((300,), False), ((), False)],
)
def test_a_response_to_another_request_is_an_error(monkeypatch, epochs, is_mixed_up, flush_seconds):
    """P12: a window with the rows of another one would have no rows of its own.

    Windows of the service may share one epoch, so they may both have its rows only. The rows of a
    slow service are used page by page.
    """
    monkeypatch.setattr(source, "FLUSH_SECONDS", flush_seconds)
    body = json.dumps({"status": "OK", "data": list_withdrawals(*epochs)}).encode()
    lasts = (300, 400)
    pages = {f"GET /api/v1/validator/7/withdrawals?epoch={last}": body for last in lasts}
    head = Head(epoch=500, finalized_epoch=498, slot=500 * 32)
    with (
        replaying(pages) as server,
        bf.Explorer(server.url, chain="mainnet", rate=10_000, head=head) as explorer,
        pytest.raises(errors.IntegrityError, match="same rows for two requests")
        if is_mixed_up
        else nullcontext() as caught,
    ):
        bf.load_validator_withdrawals(7, since=201, until=400, explorer=explorer)
    if is_mixed_up:
        is_stored = "store().prune('validator_withdrawals')" in str(caught.value)
        assert is_stored == (flush_seconds == 0)


@pytest.mark.parametrize(("epochs", "is_mixed_up"), [((171, 261), False), ((165, 261), True)])
def test_windows_of_a_load_with_a_store_may_have_the_same_rows(tmp_path, epochs, is_mixed_up):
    """P12: of the 100 epochs that end with epoch 270, 91 are in the window before, too.

    Epoch 165 is in the window before only.
    """
    body = json.dumps({"status": "OK", "data": list_withdrawals(*epochs)}).encode()
    pages = {f"GET /api/v1/validator/7/withdrawals?epoch={last}": body for last in (261, 270)}
    head = Head(epoch=500, finalized_epoch=498, slot=500 * 32)
    options = {"chain": "mainnet", "rate": 10_000, "head": head, "store": tmp_path}
    with replaying(pages) as server, bf.Explorer(server.url, **options) as explorer:
        load = functools.partial(bf.load_validator_withdrawals, 7, since=162, until=270)
        if is_mixed_up:
            with pytest.raises(errors.IntegrityError, match="same rows for two requests"):
                load(explorer=explorer)
        else:
            assert list(epochs) == load(explorer=explorer)["epoch"].to_list()


def test_a_long_gap_is_requested_by_window():
    """H3: 120 epochs take two requests: 100 epochs, and the other 20."""
    gaps = pl.DataFrame({"first": [10], "last": [129]})

    assert [{"since": 10, "until": 109}, {"since": 110, "until": 129}] == list(
        cover_gaps(None, gaps, 100)
    )


def test_subjects_after_the_first_batch_are_requested_again(upstream):
    """P13: one of the slots without rows is requested first; it has rows now, so all others are."""
    slots = [3200, 3201, 3202, 3203]
    expected = load_without_faults(upstream, bf.load_slots, slots)

    with damaging(upstream, "rows_empty?path=/slot/&times=4") as (_, explorer):
        found = bf.load_slots(slots, explorer=explorer)

    assert slots == expected["slot"].to_list()
    assert_frame_equal(expected, found)


@pytest.mark.parametrize("empty", ["[]", "[ ]", "[\n  ]", "[] "])
def test_empty_responses_to_several_requests_are_not_mixed_up(empty):
    """P12: slots without withdrawals have the same response, in any spelling of an empty list."""
    body = f'{{"status":"OK","data":{empty}}}'.encode()
    pages = {f"GET /api/v1/slot/{slot}/withdrawals": body for slot in (7, 8)}
    head = Head(epoch=500, finalized_epoch=498, slot=500 * 32)
    with (
        replaying(pages) as server,
        bf.Explorer(server.url, chain="mainnet", rate=10_000, head=head) as explorer,
    ):
        assert 0 == bf.load_slot_withdrawals([7, 8], explorer=explorer).height


def test_a_service_without_a_page_does_not_claim_all_rows():
    """If every request is refused, rows are missing: no page said that they cannot exist."""
    assert not ResponseWarnings(ENDPOINTS_BY_NAME["income_history"], MAINNET).has_all_rows
