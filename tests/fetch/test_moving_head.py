"""The head of the chain moves during a load, and replicas of the service disagree about it.

The replicas answer in this process, from the same dataset, each with its own head.
"""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta

import httpx
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.calendar import MAINNET
from beaconframes.endpoint import ChainHead, Head
from beaconframes.fetch import head
from beaconframes.fetch.served_range import ServedRange
from beaconframes.server.service import Service
from beaconframes.v1.epochs import EPOCHS
from beaconframes.v1.income_history import INCOME_HISTORY

from ..support.replicas import Replicas, connect_to

ACTIVE = range(100, 205)
"""Validators with a row in each epoch from 300 on; they take two batches."""


@pytest.fixture
def service(chain):
    """The rows of all replicas; each test has its own, because answers are cached by request."""
    return Service(chain, drops_old_units=True)


def expected_attestations(chain, validators, first, last):
    """Return the duties of the dataset, which states no status of a duty that is still pending."""
    return (
        chain.scan("attestations")
        .filter(pl.col("validator_index").is_in(list(validators)))
        .filter(pl.col("epoch").is_between(first, last))
        .sort("validator_index", "epoch")
        .drop("status")
        .collect()
    )


@pytest.mark.parametrize("store", [False, True], ids=["no store", "store"])
def test_an_epoch_that_leaves_the_window_is_dropped_and_named(chain, service, tmp_path, store):
    """H1, P19: the head moves after the first batch; the rest of the window is returned."""
    replicas = Replicas(
        service, lambda number, path: 469 if replicas.count("/attestations") < 2 else 470
    )
    explorer = connect_to(replicas, store=tmp_path if store else False)

    with pytest.warns(bf.MissingRows, match="epoch 370 left the window") as caught:
        found = bf.load_attestations(ACTIVE, explorer=explorer)

    assert_frame_equal(expected_attestations(chain, ACTIVE, 371, 469), found.drop("status"))
    assert [(370, 370)] == caught[0].message.missing.drop("reason").rows()
    assert bf.missing().equals(caught[0].message.missing)
    # Two batches, and the second again without the epoch that left.
    assert 3 == replicas.count("/attestations")


def test_strict_raises_for_an_epoch_that_left_the_window(chain, service):
    """H1: the error has the rows that were loaded."""
    replicas = Replicas(service, lambda number, path: 469 if number < 2 else 471)

    with pytest.raises(bf.MissingRows, match="epoch 370 to 371 left the window") as caught:
        bf.load_attestations(ACTIVE, explorer=connect_to(replicas), strict=True)

    assert_frame_equal(
        expected_attestations(chain, ACTIVE, 372, 469), caught.value.rows.drop("status")
    )


def test_a_refusal_that_the_head_does_not_explain_is_raised(chain, service):
    """H1: a service that refuses its own window is named as before."""
    replicas = Replicas(service, lambda number, path: 460 if "State" in path else 300)

    with pytest.raises(errors.BadRequest, match="invalid end epoch"):
        bf.load_attestations(5, since=400, until=459, explorer=connect_to(replicas))


@pytest.mark.parametrize("until", [-3, -1, 455], ids=str)
def test_attestations_without_since_begin_with_the_window(chain, service, until):
    """H3: the default range is what is served of the 100 epochs before *until*."""
    replicas = Replicas(service, lambda number, path: 469)
    last = until if until > 0 else 470 + until

    found = bf.load_attestations([100, 101], until=until, explorer=connect_to(replicas))

    assert_frame_equal(expected_attestations(chain, [100, 101], 370, last), found.drop("status"))


@pytest.mark.parametrize(
    ("bounds", "words", "hint"),
    [
        ({"since": 300}, "epoch 300 is no longer available", "omit since"),
        ({"until": 300}, "epoch 300 is no longer available", "until=-100"),
    ],
)
def test_epochs_before_the_window_are_refused_with_the_argument_to_change(
    service, bounds, words, hint
):
    """H3: the hint names the argument that was given."""
    replicas = Replicas(service, lambda number, path: 460)

    with pytest.raises(errors.UsageError, match=words) as caught:
        bf.load_attestations(5, **bounds, explorer=connect_to(replicas))

    assert hint in caught.value.hint
    assert 0 == replicas.count("/attestations")


OPEN_ENDED = {
    "income": (bf.load_income_history, (ACTIVE,), {"since": -4}, 458 - 2),
    "balances": (bf.load_balance_history, (ACTIVE,), {"since": -4}, 458),
    "attestations": (bf.load_attestations, (ACTIVE,), {"since": -4}, 458),
    "epochs": (bf.load_epochs, (), {"since": -4}, 458),
    "epoch slots": (bf.load_epoch_slots, (), {"since": -4}, 458),
    "v2 rewards": (bf.v2.load_rewards, (ACTIVE[:3],), {"since": -4}, 458 - 2),
}
"""By name: a loader, its arguments, and the last epoch of the lower head."""


@pytest.mark.more
@pytest.mark.parametrize("name", OPEN_ENDED)
@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
def test_replicas_that_disagree_about_the_head_end_at_the_lower_one(chain, service, name):
    """H2, P16: one replica is two epochs behind; every row is of epochs that both have."""
    load, arguments, bounds, last = OPEN_ENDED[name]
    # The head comes from both in turn, rows from the one behind.
    heads = itertools.cycle([460, 458])
    replicas = Replicas(
        service,
        lambda number, path: next(heads) if path.endswith(("latestState", "/slot")) else 458,
    )

    found = load(*arguments, **bounds, explorer=connect_to(replicas))

    assert {last - 1, last} == set(found["epoch"].to_list())
    with bf.settings(strict=True):
        lower = Replicas(service, lambda number, path: 458)
        same = load(*arguments, since=last - 1, until=last, explorer=connect_to(lower))
    assert_frame_equal(same, found)


def test_replicas_that_never_agree_are_named(chain, service):
    """H2: the lower head is refused too, so the error names both heads."""
    heads = iter([460, 450, 458, 450, 458, 459, 459, 459, 459])
    replicas = Replicas(service, lambda number, path: next(heads))

    with pytest.raises(errors.SnapshotMoved, match="460 and 458") as caught:
        bf.load_balance_history(5, since=-4, explorer=connect_to(replicas))

    assert "until" in caught.value.hint


def behind(service, lag):
    """Return replicas of which one states epoch 460, and another one with the rows lags behind."""
    return Replicas(
        service, lambda number, path: 460 if path.endswith(("State", "/slot")) else 460 - lag
    )


@pytest.mark.parametrize("lag", [3, 6])
@pytest.mark.parametrize("name", OPEN_ENDED)
def test_a_replica_that_always_refuses_the_stated_epoch_is_named(service, name, lag):
    """H2: only one head is stated; the two epochs before it are refused too, and no more."""
    load, arguments, _, last = OPEN_ENDED[name]
    stated, replicas = last + 2, behind(service, lag)
    # V2 refuses such an epoch with 404, which does not say what is unknown.
    error = errors.NotFound if name == "v2 rewards" else errors.SnapshotMoved

    with pytest.raises(error) as caught:
        load(*arguments, since=-5, explorer=connect_to(replicas))

    assert re.search(
        rf"states (epoch )?{stated}.* refuse[sd] (epoch )?(45[4-8])", str(caught.value)
    )
    assert "until=" in caught.value.hint
    heads = [path for path in replicas.paths if path.endswith(("/latestState", "/slot"))]
    # The first one, and three readings after the refusal.
    assert 4 == len(heads)
    assert len(replicas.paths) - len(heads) <= 5


@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize("name", OPEN_ENDED)
@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
def test_a_replica_that_lags_a_little_limits_the_range(service, name, lag):
    """H2, P16: no reading of the head names the lower one; the rows end where they are served."""
    load, arguments, _, last = OPEN_ENDED[name]
    stated = last + 2

    found = load(*arguments, since=-5, explorer=connect_to(behind(service, lag)))

    assert set(range(stated - 4, stated - lag + 1)) == set(found["epoch"].to_list())


class StatesHead(Replicas):
    """Refuses epochs in the words of the public service, which name its latest epoch."""

    def answer(self, request, path):
        answer = super().answer(request, path)
        if answer.status_code == 200:
            return answer
        text = "ERROR: epoch is in the future. The latest epoch is 455"
        return httpx.Response(400, json={"status": text, "data": None})


def test_a_refusal_that_states_its_head_is_a_lower_head(service):
    """H2: rows up to that epoch; if the range begins later, the error names both epochs."""
    replicas = StatesHead(service, lambda number, path: 460 if "State" in path else 455)
    explorer = connect_to(replicas)

    found = bf.load_epochs(since=-8, explorer=explorer)
    with pytest.raises(errors.SnapshotMoved, match=r"460 and 455, and .* begins with .* 458"):
        bf.load_epochs(since=-3, explorer=explorer)

    assert [453, 454, 455] == found["epoch"].to_list()
    # The refusal names the lower head, so it is not read.
    assert 1 == replicas.count("latestState")


def test_a_lower_head_before_the_range_is_an_error(service):
    """H2: without a row of the range, the result is not an empty frame."""
    replicas = Replicas(service, lambda number, path: 460 if number == 0 else 450)

    with pytest.raises(errors.SnapshotMoved, match=r"460 and 450, and .* begins with .* 457"):
        bf.load_balance_history(5, since=-4, explorer=connect_to(replicas))


class RefusesAll(Replicas):
    """Refuses requests for rows, for a reason that has nothing to do with their epoch."""

    def answer(self, request, path):
        if "State" in path:
            return super().answer(request, path)
        text = "ERROR: parameter of another kind"
        return httpx.Response(400, json={"status": text, "data": None})


def test_a_refusal_for_another_reason_is_raised(service):
    """H2: it does not name the epoch, so replicas are not blamed, and neither is the caller."""
    replicas = RefusesAll(service, lambda *_: 460)

    with pytest.raises(errors.BadRequest, match="parameter of another kind") as caught:
        bf.load_balance_history(5, since=-9, explorer=connect_to(replicas))

    assert caught.value.hint.startswith("The service states epoch 460 as its latest, and refused")


def test_a_given_last_epoch_is_never_lowered(chain, service):
    """H2: a number is what the caller requested, so its refusal stays a refusal."""
    replicas = behind(service, 2)

    with pytest.raises(errors.BadRequest, match="invalid latest epoch"):
        bf.load_balance_history(5, since=455, until=460, explorer=connect_to(replicas))

    assert (1, 1) == (replicas.count("latestState"), replicas.count("balancehistory"))


@pytest.mark.parametrize("until", [460, np.int64(460), np.uint16(460)], ids=repr)
def test_a_number_of_numpy_is_a_number(service, until):
    """C6, H2: it does not make the range end at the head, and it is compared with the head."""
    replicas = Replicas(service, lambda number, path: 458)
    explorer = connect_to(replicas)

    for words in ("the service has epochs up to 458", "the latest epoch is 458"):
        with pytest.raises(errors.UsageError, match=words):
            bf.load_balance_history(5, since=455, until=until, explorer=explorer)
    assert ["/api/v1/latestState"] == replicas.paths


@pytest.mark.parametrize(("load", "table", "lag"), [
    (bf.load_income_history, "income_history", 2),
    (bf.load_balance_history, "balance_history", 0),
])  # fmt: skip
def test_a_head_that_moves_with_every_response_changes_no_range(chain, service, load, table, lag):
    """P14: the range is that of the first head, without a gap and without a later row."""
    replicas = Replicas(service, lambda number, path: min(440 + number, 469))

    found = load(ACTIVE[:3], since=320, explorer=connect_to(replicas))

    expected = (
        chain.scan(table)
        .filter(pl.col("validator_index").is_in(list(ACTIVE[:3])))
        .filter(pl.col("epoch").is_between(320, 440 - lag))
        .sort("validator_index", "epoch")
        .collect()
    )
    assert_frame_equal(expected, found)


@pytest.mark.parametrize("store", [False, True], ids=["no store", "store"])
@pytest.mark.parametrize("name", [*OPEN_ENDED, "proposals"])
@pytest.mark.parametrize("since", [455, 465, 470])
def test_epochs_after_the_head_are_not_requested(service, tmp_path, name, since, store):
    """C6: the head is requested first, so no request is refused."""
    load, arguments, *_ = {**OPEN_ENDED, "proposals": (bf.load_proposals, (5,))}[name]
    replicas = Replicas(service, lambda number, path: 458)
    explorer = connect_to(replicas, store=tmp_path if store else False)

    with pytest.raises(errors.UsageError, match=r"epoch 4\d\d is in the future: the "):
        load(*arguments, since=since, until=470, explorer=explorer)

    assert {"latestState", "slot"} >= {path.rsplit("/", 1)[1] for path in replicas.paths}
    assert 1 == len(replicas.paths)


def test_a_head_of_any_age_permits_earlier_epochs(service):
    """C6: one request for the head is enough, however old its response is."""
    replicas = Replicas(service, lambda number, path: 458)
    explorer = connect_to(replicas)
    for last in (450, 451, 452):
        bf.load_balance_history(5, since=440, until=last, explorer=explorer)
        explorer.expire_head()

    assert (1, 3) == (replicas.count("latestState"), replicas.count("balancehistory"))


def test_a_finalized_slot_of_v2_permits_earlier_epochs(service):
    """C6: the latest slot is not before it, so it is not requested."""
    replicas = Replicas(service, lambda number, path: 458)
    explorer = connect_to(replicas)
    bf.v2.load_rewards(5, since=440, until=441, explorer=explorer)
    assert 1 == replicas.count("/ethereum/slot")
    bf.v2.load_balances(5, since=440, until=441, explorer=explorer)

    assert 1 == replicas.count("/ethereum/slot")


@pytest.mark.parametrize("view", ["latest", "finalized"])
def test_the_head_of_v2_never_goes_back(monkeypatch, view):
    """H2: another replica may lag behind the one that answered before."""
    monkeypatch.setattr(head, "HEAD_MAX_AGE", -1)
    slots = iter([500, 480, 510])
    views = head.HeadV2(lambda _: b'{"slot": %d}' % next(slots), MAINNET)

    assert [500, 500, 510] == [views.slot(view) for _ in range(3)]


@pytest.mark.parametrize("load", [bf.load_epochs, bf.load_epoch_slots])
def test_the_epoch_after_a_head_of_any_age_is_not_requested(service, load):
    """C6: the head is requested again; it is still the one before, so the epoch is refused."""
    replicas = Replicas(service, lambda number, path: 458)
    explorer = connect_to(replicas)
    load(since=457, until=458, explorer=explorer)
    explorer.expire_head()

    with pytest.raises(errors.UsageError, match="epoch 459 is in the future"):
        load(since=457, until=459, explorer=explorer)

    assert [] == [path for path in replicas.paths if "/epoch/459" in path]
    assert "latestState" in replicas.paths[-1]


@pytest.mark.parametrize(("hours", "is_requested"), [(25, False), (23, True)])
def test_a_public_chain_needs_no_head_for_epochs_before_yesterday(hours, is_requested):
    """C6: the clock shows that they exist, so their load costs no request for the head."""
    now = datetime(2026, 10, 1, tzinfo=UTC)
    epoch = MAINNET.at("epoch", now - timedelta(hours=hours))
    requested = []

    def head():
        requested.append(epoch)
        return Head(epoch + 5, epoch, (epoch + 5) * 32)

    chain_head = ChainHead(MAINNET, head, lambda: now, last_reported=lambda: None)
    values = {"since": epoch - 2, "until": epoch}
    served = ServedRange(EPOCHS, chain_head, values)
    served.check_not_future(EPOCHS.plan(values, chain_head))

    assert is_requested == bool(requested)


def test_all_validators_of_a_range_are_requested_before_the_next_range():
    """A server reads the rows of a range once; one request for the newest epochs comes first."""
    now = datetime(2026, 10, 1, tzinfo=UTC)
    last = MAINNET.at("epoch", now)
    chain_head = ChainHead(MAINNET, lambda: Head(last, last, last * 32), lambda: now)
    values = {"validators": range(250), "since": last - 299, "until": last}
    planned = INCOME_HISTORY.plan(values, chain_head)

    calls = ServedRange(INCOME_HISTORY, chain_head, values).sort(planned)

    newest, *ranges = [call.fields["latest_epoch"] for call in calls]
    assert str(last) == newest
    assert [str(last - n) for n in (200, 200, 200, 100, 100, 100, 0, 0)] == ranges
    assert sorted(call.request.path for call in planned) == sorted(c.request.path for c in calls)


def test_gaps_without_epochs_are_not_clipped():
    """H1: a validator that is unknown to the service has no first and no last missing epoch."""
    head, now = Head(95, 90, 95 * 32), datetime(2026, 10, 1, tzinfo=UTC)
    chain_head = ChainHead(MAINNET, lambda: head, lambda: now)
    served = ServedRange(EPOCHS, chain_head, {"since": 80}, last=90)
    gaps = [(1, None, None), (2, 85, 95), (3, 91, 95)]
    names = ["validator_index", "first_epoch", "last_epoch"]

    clipped = served.clip_gaps(pl.DataFrame(gaps, schema=names, orient="row"))

    assert [(1, None, None), (2, 85, 90)] == clipped.rows()


class WithoutHead(Replicas):
    """Does not have the endpoint of the head."""

    def answer(self, request, path):
        if "State" in path:
            return httpx.Response(404, json={"status": "ERROR: not found", "data": None})
        return super().answer(request, path)


def test_a_service_without_a_head_refuses_one_epoch(service):
    """C6: the newest of 21 epochs goes first; the ones after the refused one are not sent."""
    replicas = WithoutHead(service, lambda number, path: 458)

    with pytest.raises(errors.BadRequest, match="invalid epoch"):
        bf.load_epochs(since=450, until=470, explorer=connect_to(replicas))

    assert 1 == replicas.count("/epoch/")


class WithoutFirstHead(WithoutHead):
    """Does not answer the first request for the head."""

    def answer(self, request, path):
        if len(self.paths) == 1:
            return super().answer(request, path)
        return super(WithoutHead, self).answer(request, path)


def test_a_refused_epoch_is_explained_by_the_latest_epoch(service):
    """C6: the error names the epoch that the caller gave, and the latest one to give instead."""
    replicas = WithoutFirstHead(service, lambda number, path: 458)

    with pytest.raises(errors.BadRequest) as caught:
        bf.load_epochs(since=450, until=470, explorer=connect_to(replicas))

    assert "epoch 470 is after the latest epoch of the service, 458" in str(caught.value)
    assert "Give numbers up to 458, or omit until to load up to the latest" == caught.value.hint
    assert (2, 1) == (replicas.count("latestState"), replicas.count("/epoch/"))


@pytest.mark.parametrize("load", [bf.load_epochs, bf.load_epoch_slots])
def test_epochs_after_a_known_head_are_not_requested(service, load):
    """C6: a head that the service has just stated refuses later epochs without a request."""
    replicas = Replicas(service, lambda number, path: 458)
    explorer = connect_to(replicas)
    load(since=-1, explorer=explorer)
    sent = len(replicas.paths)

    with pytest.raises(errors.UsageError, match="epoch 470 is in the future: the latest epoch is"):
        load(since=450, until=470, explorer=explorer)

    assert sent == len(replicas.paths)


class Catching(Replicas):
    """The first answer omits a block and calls a missed slot scheduled; later ones are whole."""

    def answer(self, request, path):
        answer = super().answer(request, path)
        if "/epoch/464/slots" in path and 1 == self.count("/epoch/464/slots"):
            rows = [
                row | {"status": "0"} if row["slot"] == 14_852 else row
                for row in answer.json()["data"]
                if row["slot"] != 14_853
            ]
            return httpx.Response(200, json={"status": "OK", "data": rows})
        return answer


def test_a_slot_without_a_block_may_differ_when_it_is_requested_again(chain, service):
    """H2: the row of the first response counts, also without a block root."""
    replicas = Catching(service, lambda number, path: 465)
    rows = bf.load_epoch_slots(since=464, until=464, explorer=connect_to(replicas))

    assert 2 == replicas.count("/epoch/464/slots")
    assert list(range(14_848, 14_880)) == rows["slot"].to_list()
    assert [(None, "scheduled")] == rows.filter(slot=14_852).select("block_root", "status").rows()
