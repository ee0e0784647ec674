"""What the requests of a block say about the queues, and how fast these are."""

from types import SimpleNamespace

import polars as pl
import pytest

from beaconframes.answers.v2.queue_events import mark_requests
from beaconframes.answers.v2.queues import derive_churn

KEYS = "0x" + "aa" * 48, "0x" + "bb" * 48


def test_a_switch_to_compounding_is_no_consolidation():
    """EIP-7251: a consolidation request of a validator with itself changes its credentials only."""
    requests = pl.LazyFrame(
        {
            "block_slot": [5, 6, 7],
            "kind": ["consolidation", "consolidation", "withdrawal"],
            "pubkey": [KEYS[0]] * 3,
            "target_pubkey": [KEYS[0], KEYS[1], None],
            "amount_gwei": [None, None, 10**9],
        }
    )
    view = SimpleNamespace(has_table=lambda _: True, scan=lambda _: requests)

    rows = mark_requests(view, pl.LazyFrame({"slot": [5, 6, 7, 8]})).collect()

    assert [False, True, False, None] == rows["requests_consolidation"].to_list()
    assert [False, False, True, None] == rows["requests_withdrawal"].to_list()


@pytest.mark.parametrize(
    ("stake", "churn"), [(7_000_000, 128), (10_000_000, 152), (16_777_216, 256), (35_000_000, 256)]
)
def test_the_churn_has_the_limits_of_the_protocol(stake, churn):
    """Of the stake, one part in 65,536, in whole ether, from 128 to 256 ether per epoch."""
    epochs = pl.LazyFrame({"epoch": [1, 2], "eligible_ether_gwei": [1, stake * 10**9]})
    view = SimpleNamespace(is_simulated=True, scan=lambda _: epochs)
    assert [churn * 10**9] == derive_churn(view).collect()["churn"].to_list()
