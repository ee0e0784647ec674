"""How long responses stay in memory."""

from __future__ import annotations

import json
import weakref

import beaconframes as bf
from beaconframes.endpoint import Head
from beaconframes.fetch import source
from beaconframes.http.response import ResponsePage


def respond(call, sent):
    """Return *call* and its response: balances of validator 1, newest epoch first."""
    last, limit = int(call.fields["latest_epoch"]), int(call.fields["limit"])
    records = [
        {"validatorindex": 1, "epoch": epoch, "balance": epoch, "effectivebalance": 1}
        for epoch in range(last, last - limit, -1)
    ]
    page = ResponsePage(json.dumps(records).encode())
    sent.append(weakref.ref(page))
    return call, page


def count_in_memory(sent):
    """Return how many of the responses are still referenced."""
    return sum(page() is not None for page in sent)


def test_decoded_responses_are_released_before_their_rows_are_used(monkeypatch):
    """F7: while rows are stored or sorted, no response is in memory except the last one."""
    sent, counts = [], []

    class Paginator:
        """Returns three responses at a time, as a call with three pages."""

        def __init__(self, *_, **__):
            pass

        def fetch(self, calls):
            for number in range(0, len(calls), 3):
                received = [respond(call, sent) for call in calls[number : number + 3]]
                yield received

    monkeypatch.setattr(source, "Paginator", Paginator)
    monkeypatch.setattr(source, "FLUSH_BYTES", 1)
    head = Head(2002, 2000, 2002 * 32)
    explorer = bf.Explorer("http://127.0.0.1:9", chain="mainnet", head=head, store=False)
    fetch_rows = explorer.source.fetch_rows

    def watch(*arguments):
        for fetched in fetch_rows(*arguments):
            counts.append((fetched.rows.height, count_in_memory(sent)))
            yield fetched

    explorer.source.fetch_rows = watch
    rows = bf.load_balance_history(1, since=1101, until=2000, explorer=explorer)

    assert list(range(1101, 2001)) == rows["epoch"].to_list() == rows["balance_gwei"].to_list()
    assert [(300, 1)] * 3 == counts[:3]
    assert 9 == len(sent)
