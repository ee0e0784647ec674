"""What the requests of a block say about the queues."""

from types import SimpleNamespace

import polars as pl

from beaconframes.answers.v2.queue_events import mark_requests

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
