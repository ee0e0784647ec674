"""The head of the chain moves during a load, and replicas of the service disagree about it.

The replicas answer in this process, from the same dataset, each with its own head.
"""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.server.service import Service

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


@pytest.mark.parametrize("load", [bf.load_epochs, bf.load_epoch_slots])
def test_a_refused_latest_epoch_does_not_blame_the_caller(service, load):
    """H2: one replica states the head, and another one that lags behind it has all the rows."""
    replicas = Replicas(service, lambda number, path: 460 if "State" in path else 455)

    with pytest.raises(errors.BadRequest) as caught:
        load(since=-3, explorer=connect_to(replicas))

    assert caught.value.hint.startswith("The service states epoch 460 as its latest, and refused")


def test_a_given_last_epoch_is_never_lowered(chain, service):
    """H2: a number is what the caller requested, so its refusal stays a refusal."""
    replicas = Replicas(service, lambda number, path: 458)

    with pytest.raises(errors.BadRequest, match="latest epoch"):
        bf.load_balance_history(5, since=455, until=460, explorer=connect_to(replicas))


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


@pytest.mark.parametrize("load", [bf.load_epochs, bf.load_epoch_slots])
def test_the_epochs_after_a_refused_one_are_not_requested(service, load):
    """C6: the newest of 21 epochs goes first; one reading of the head explains its refusal."""
    replicas = Replicas(service, lambda number, path: 458)

    words = "epoch 470 is after the latest epoch of the service, 458"
    with pytest.raises(errors.BadRequest, match=words):
        load(since=450, until=470, explorer=connect_to(replicas))

    assert (2, 1) == (len(replicas.paths), replicas.count("latestState"))


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
