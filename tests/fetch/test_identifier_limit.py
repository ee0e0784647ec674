"""Keys whose plan allows fewer validators in a request than the documented 100."""

from __future__ import annotations

import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.server.service import Service

from ..support.replicas import Replicas, connect_to


@pytest.fixture
def limited(chain):
    """A service that allows 20 validators in a request."""
    return Replicas(Service(chain), lambda number, path: 469, at_most=20)


@pytest.mark.more
@pytest.mark.parametrize("store", [False, True], ids=["no store", "store"])
def test_v1_splits_a_request_of_too_many_validators(chain, limited, tmp_path, store):
    """C3, T17: one request is refused, five take its place, and the limit is remembered."""
    explorer = connect_to(limited, store=tmp_path if store else False)

    found = bf.load_balance_history(range(100), since=440, until=449, explorer=explorer)

    everyone = connect_to(Replicas(Service(chain), lambda number, path: 469), store=False)
    same = bf.load_balance_history(range(100), since=440, until=449, explorer=everyone)
    assert_frame_equal(same, found)
    assert 6 == limited.count("/balancehistory")

    bf.load_balance_history(range(100), since=430, until=439, explorer=explorer)
    assert 6 + 5 == limited.count("/balancehistory")


def test_a_plan_knows_the_limit_once_it_was_refused(limited):
    """C3: the estimate has the batches that the load then sends."""
    explorer = connect_to(limited, store=False)
    call = {"since": 440, "until": 449, "explorer": explorer}
    before = bf.plan(bf.load_balance_history, range(40), **call).requests
    bf.load_balance_history(range(40), **call)

    # The first plan has one batch, and the request for the head, which is known afterwards.
    assert [1 + 1, 2] == [before, bf.plan(bf.load_balance_history, range(40), **call).requests]


def test_a_limit_of_v1_does_not_divide_requests_of_v2(limited):
    """C3: the two versions have their own limits."""
    explorer = connect_to(limited, store=False)
    bf.load_balance_history(range(40), since=449, until=449, explorer=explorer)

    bf.v2.load_balances(range(40), since=449, until=449, explorer=explorer)

    # Four pages of ten validators.
    assert 4 == limited.count("/validators/balances")


def test_a_set_whose_parts_cannot_be_combined_is_refused(limited):
    """C3: luck of 21 validators cannot be computed from two requests."""
    limited.at_most = 0

    with pytest.raises(errors.UsageError, match="luck of parts cannot be combined"):
        bf.load_proposal_luck(range(21), explorer=connect_to(limited))
