"""A chain with other sizes than mainnet is served and loaded without a warning."""

from __future__ import annotations

import msgspec
import pytest

import beaconframes as bf
from beaconframes.v2.queues import Queues

from ..support import small_dataset as small


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wire", ["spec", "public"])
def test_a_sync_committee_has_the_size_of_its_chain(tmp_path, wire):
    """Row 6: 32 seats of 16 validators, in V1 and V2."""
    dataset = small.create(
        tmp_path / "data", sync_committees=small.committees(), validators=small.validators()
    )
    with bf.local(dataset, wire=wire):
        seats = bf.load_sync_committees(0)
        period = bf.v2.load_sync_committee(0)
        members = bf.v2.load_sync_committee_validators(0)

    assert list(range(32)) == seats["seat"].to_list()
    assert [seat % 16 for seat in range(32)] == seats["validator_index"].to_list()
    assert list(range(16)) == sorted(members["validator_index"])
    assert [(0, 0, 255)] == period.select("period", "start_epoch", "end_epoch").rows()


def test_the_churn_of_the_old_shape_is_that_of_an_epoch_of_the_chain():
    """The old shape has no interval: it is the epoch, 16 seconds on this chain."""
    queue = {"deposit_count": 1, "balance": "5", "churn": "7", "estimated_processed_at": 0}
    exits = {"count": 0, "balance": "0", "churn": "9", "estimated_processed_at": 0}
    page = msgspec.json.encode({"deposit_queue": queue, "exit_queue": exits})

    rows = Queues.decode([page], small.CHAIN)

    assert [(16, 16)] == rows.select("deposit_churn_seconds", "exit_churn_seconds").rows()


def test_an_object_that_is_null_is_no_unknown_field():
    """The chain of a node has no estimates: the object of both of them is null."""
    queue = {"deposit_count": 1, "balance": "5", "churn": "7", "estimated_processed_at": None}
    exits = {"count": 0, "balance": "0", "churn": "9", "estimated_processed_at": None}
    page = msgspec.json.encode({"deposit_queue": queue, "exit_queue": exits, "other": None})

    rows = Queues.decode([page], small.CHAIN)

    assert [(None, '{"other":null}')] == rows.select("deposit_processed_epoch", "more").rows()
