"""How long responses stay in memory."""

from __future__ import annotations

import json
import weakref

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.endpoint import Head
from beaconframes.endpoint.uncovered import DATASET_HEADER
from beaconframes.fetch import pipeline, source
from beaconframes.http.response import ResponsePage
from beaconframes.schema.table import sort_rows
from beaconframes.v1.balance_history import BALANCE_HISTORY, BalanceHistory
from beaconframes.v2.entity_list import ENTITIES


def respond(call, sent, headers):
    """Return *call* and its response: balances of validator 1, newest epoch first."""
    last, limit = int(call.fields["latest_epoch"]), int(call.fields["limit"])
    records = [
        {"validatorindex": 1, "epoch": epoch, "balance": epoch, "effectivebalance": 1}
        for epoch in range(last, last - limit, -1)
    ]
    page = ResponsePage(json.dumps(records).encode(), headers=headers)
    sent.append(weakref.ref(page))
    return call, page


def count_in_memory(sent):
    """Return how many of the responses or frames are still referenced."""
    return sum(page() is not None for page in sent)


@pytest.mark.parametrize("headers", [{}, {DATASET_HEADER: "partial"}])
@pytest.mark.parametrize("large", [300, 301])
def test_decoded_responses_are_released_before_their_rows_are_used(monkeypatch, large, headers):
    """F7: while rows are stored or sorted, no response is in memory except the last one.

    Nor are rows that have been stored in narrow integers, also of a dataset that may be partial.
    """
    sent, decoded, counts = [], [], []

    class Paginator:
        """Returns three responses at a time, as a call with three pages."""

        def __init__(self, *_, **__):
            pass

        def fetch(self, calls):
            for number in range(0, len(calls), 3):
                received = [respond(call, sent, headers) for call in calls[number : number + 3]]
                yield received

    monkeypatch.setattr(source, "Paginator", Paginator)
    monkeypatch.setattr(source, "FLUSH_BYTES", 1)
    head = Head(2002, 2000, 2002 * 32)
    explorer = bf.Explorer("http://127.0.0.1:9", chain="mainnet", head=head, store=False)
    fetch_rows = explorer.source.fetch_rows

    def watch(*arguments):
        for fetched in fetch_rows(*arguments):
            counts.append((fetched.rows.height, count_in_memory(sent), count_in_memory(decoded)))
            decoded.append(weakref.ref(fetched.rows))
            yield fetched

    explorer.source.fetch_rows = watch
    monkeypatch.setattr(pipeline, "LARGE_PIECE", large)
    monkeypatch.setattr(pipeline, "MANY_ROWS", large)
    narrowed, narrow = [], pipeline.narrow_integers
    monkeypatch.setattr(
        pipeline, "narrow_integers", lambda rows: narrowed.append(rows.height) or narrow(rows)
    )
    rows = bf.load_balance_history(1, since=1101, until=2000, explorer=explorer)

    assert BalanceHistory.schema() == rows.schema
    assert (large == 300) == (300 in narrowed)
    assert list(range(1101, 2001)) == rows["epoch"].to_list() == rows["balance_gwei"].to_list()
    # The pipeline releases a frame when it receives the next one.
    frames = [0, 1, 1] if large == 300 else [0, 1, 2]
    assert [(300, 1, count) for count in frames] == counts[:3]
    assert 9 == len(sent)


def test_rows_that_wait_for_no_others_are_not_narrowed(monkeypatch, chain):
    """A dataset returns all rows at once."""
    monkeypatch.setattr(pipeline, "LARGE_PIECE", 1)
    monkeypatch.setattr(pipeline, "narrow_integers", None)
    with bf.open(chain) as opened:
        assert 20 == bf.load_income_history([1, 2], since=300, until=309, explorer=opened).height


def test_integers_are_as_narrow_as_their_values():
    """F7: rows that wait for the others take a fraction of their memory, and no value changes."""
    values = {"small": [-128, None], "large": [2**63 - 1, -(2**63)], "share": [0.1, 1e300]}
    rows = pl.DataFrame(values | {"none": pl.Series([None, None], dtype=pl.Int64)})

    narrow = pipeline.narrow_integers(rows)

    assert [pl.Int8, pl.Int64, pl.Float64] == narrow.dtypes[:3]
    again = pl.concat([narrow, rows], how="vertical_relaxed")
    widened = sort_rows(again, ["small", "large"], rows.schema)
    expected = pl.concat([rows, rows]).sort("small", "large", nulls_last=True, maintain_order=True)
    assert_frame_equal(expected, widened)


def test_rows_are_narrow_until_they_are_sorted(monkeypatch):
    """F4: the last response, after which no other waits, does not widen all rows first."""
    monkeypatch.setattr(pipeline, "LARGE_PIECE", 2)
    frames = [
        pl.DataFrame(
            {"validator_index": validator, "epoch": [2, 1], "balance_gwei": 32 * 10**9 + validator}
        ).match_to_schema(BalanceHistory.schema(), missing_columns="insert", integer_cast="upcast")
        for validator in (1, 0)
    ]
    joined, sort = [], pipeline.sort_rows
    monkeypatch.setattr(
        pipeline, "sort_rows", lambda rows, *types: joined.append(rows) or sort(rows, *types)
    )
    rows = pipeline.MemoryRows(BALANCE_HISTORY, {}, None)

    for frame in frames:
        rows.put(source.FetchedRows([], frame, [], []))

    assert [(0, 1), (0, 2), (1, 1), (1, 2)] == rows.keys().rows()
    types = joined[0].schema
    assert (pl.Int8, pl.Int8, pl.Int64) == (
        types["validator_index"],
        types["epoch"],
        types["balance_gwei"],
    )


def test_rankings_stay_in_the_order_of_the_service(monkeypatch):
    """F7: rows of a ranking are not sorted by their key, however many a response has."""
    monkeypatch.setattr(pipeline, "LARGE_PIECE", 2)
    entities = ["b", "c", "a"]
    ranked = pl.DataFrame(
        {name: entities if name == "entity" else None for name in ENTITIES.table.schema()},
        schema=ENTITIES.table.schema(),
    )
    rows = pipeline.MemoryRows(ENTITIES, {}, None)

    rows.put(source.FetchedRows([], ranked, [], []))

    assert entities == rows.keys()["entity"].to_list()
