"""A second load sends no request for stored rows; lazy frames read the same rows.

Requests are counted by the server, never by the client.
"""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.config import settings

from ..support.cases import every
from ..support.store_loads import CALLS, CountedLoad, connect, load_counted


@pytest.mark.more
@pytest.mark.parametrize("name", every(4, CALLS))
def test_the_same_call_sends_no_request(server, store, name):
    """F07: by another explorer, the same call sends no request and returns the same frame."""
    plain = load_counted(server, False, CALLS[name])
    first, second = (load_counted(server, store, CALLS[name]) for _ in range(2))

    assert_frame_equal(plain.rows, first.rows)
    assert_frame_equal(plain.rows, second.rows)
    assert 0 == second.requests < first.requests <= plain.requests + 1
    assert (
        [*map(str, plain.warnings)] == [*map(str, first.warnings)] == [*map(str, second.warnings)]
    )


def test_other_batches_and_windows_send_no_request(server, store):
    """F07: rows that were stored by some batches and windows serve all others, in any order."""
    with connect(server, store) as explorer:
        bf.load_balance_history(range(130), since=0, until=249, explorer=explorer)
        before = server.requests
        for validators, since, until in [
            (range(99, 130), 30, 180),
            ([129, 3, 77], 249, 249),
            (range(130), 0, 249),
            ([5], 0, 100),
        ]:
            found = bf.load_balance_history(validators, since=since, until=until, explorer=explorer)
            assert len(validators) * (until - since + 1) == found.height
        with settings(frame="pandas"):
            bf.load_balance_history("7", since=10, until=20, explorer=explorer)

    assert before == server.requests


@pytest.mark.more
def test_another_process_sends_no_request(server, store, chain):
    """A new process uses the rows that another one stored."""
    expected = load_counted(server, store, CALLS["balances"]).rows
    before = server.requests
    code = (
        "import sys, beaconframes as bf\n"
        "from beaconframes.dataset import Dataset\n"
        "from beaconframes.endpoint.chain_metadata import ChainMetadata\n"
        "chain = ChainMetadata.parse(Dataset.open(sys.argv[3]).meta).chain\n"
        "e = bf.Explorer(sys.argv[1], chain=chain, store=sys.argv[2])\n"
        "rows = bf.load_balance_history(range(120), since=0, until=120, explorer=e)\n"
        "print(rows['balance_gwei'].sum(), rows.height)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, server.url, str(store), str(chain.path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert before == server.requests
    assert f"{expected['balance_gwei'].sum()} {expected.height}" == done.stdout.strip()


def test_a_relative_range_requests_only_the_head(server, store):
    """If the range depends on the head, the head is requested, and nothing else."""
    call = lambda e: bf.load_income_history(range(20), since=-50, explorer=e)  # noqa: E731
    load_counted(server, store, call)

    second = load_counted(server, store, call)
    assert (1, 1_000) == (second.requests, second.rows.height)


def test_a_stored_wall_serves_regions_and_summaries(server, store):
    """Regions and summaries are computed from the stored slots."""
    load_counted(server, store, CALLS["wall"])

    for name in ("wall, summary", "wall, part"):
        found = load_counted(server, store, CALLS[name])
        assert 0 == found.requests
        assert_frame_equal(load_counted(server, False, CALLS[name]).rows, found.rows)


def test_rows_of_public_keys_serve_their_indices(server, store):
    """Keys are looked up once; rows loaded by key serve the index, and the other way round."""
    keys = bf.load_validators([3, 4, 5], explorer=connect(server, False))["pubkey"].to_list()
    call = lambda e: bf.load_balance_history(keys, since=10, until=20, explorer=e)  # noqa: E731
    first, second = load_counted(server, store, call), load_counted(server, store, call)
    by_index = load_counted(
        server, store, lambda e: bf.load_balance_history([4, 5], since=12, until=15, explorer=e)
    )

    assert_frame_equal(load_counted(server, False, call).rows, first.rows)
    assert_frame_equal(first.rows, second.rows)
    assert (0, 0, 8) == (second.requests, by_index.requests, by_index.rows.height)


def test_damaged_public_keys_are_requested_again(server, store):
    """The load repairs the store instead of raising."""
    keys = bf.load_validators([3, 4, 5], explorer=connect(server, False))["pubkey"].to_list()
    call = lambda e: bf.load_balance_history(keys, since=10, until=20, explorer=e)  # noqa: E731
    first = load_counted(server, store, call)
    (path,) = store.rglob("validator_keys/*.parquet")
    path.write_bytes(b"damage")

    repaired, again = load_counted(server, store, call), load_counted(server, store, call)

    assert_frame_equal(first.rows, repaired.rows)
    assert (1, 0) == (repaired.requests, again.requests)


def test_an_unknown_key_is_reported_by_each_load(server, store):
    """An unknown key is reported by the first call and by later ones."""
    call = lambda e: bf.load_balance_history(  # noqa: E731
        [7, "0x" + "ab" * 48], since=10, until=20, explorer=e
    )
    for _ in range(2):
        found = load_counted(server, store, call)
        (warning,) = found.warnings
        assert 11 == found.rows.height
        assert "1 of 2 validators have no rows: 1 unknown to the service" in str(warning)


SHAPES = {
    "nothing": ([], (range(150), 0, 149), 4),
    "everything": ([(range(150), 0, 149)], (range(150), 0, 149), 0),
    "the first half": ([(range(100), 0, 99)], (range(100), 0, 199), 1),
    "half of the validators": ([(range(0, 100, 2), 0, 150)], (range(100), 0, 150), 2),
    "all but one": ([(range(99), 0, 99)], (range(100), 0, 99), 1),
    "all but an epoch": ([(range(50), 0, 40), (range(50), 42, 99)], (range(50), 0, 99), 1),
    "an L": ([(range(50), 0, 99)], (range(100), 0, 199), 2),
    "the other windows": ([(range(50), 37, 120)], (range(50), 0, 136), 2),
    "two gaps in a window": ([(range(9), 0, 9), (range(9), 20, 69)], (range(9), 0, 89), 1),
    "two gaps apart": ([(range(9), 0, 9), (range(9), 30, 120)], (range(9), 0, 140), 2),
    "stairs": ([(range(n, n + 1), 0, n) for n in range(0, 60, 10)], (range(0, 60, 10), 0, 99), 1),
    "the other batches": ([(range(60, 160), 0, 9)], (range(160), 0, 9), 1),
    "two halves of many": (
        [(range(75), 0, 99), (range(75, 150), 100, 199)], (range(150), 0, 199), 2
    ),
}  # fmt: skip
"""Earlier loads, the next load, and the fewest requests that it takes."""


@pytest.mark.more
@pytest.mark.parametrize("shape", every(3, SHAPES))
def test_missing_rows_take_the_fewest_requests(server, store, shape):
    """If some rows are stored, the rest takes the fewest requests."""
    before, (validators, since, until), fewest = SHAPES[shape]
    with connect(server, store) as explorer:
        for some, first, last in before:
            bf.load_balance_history(some, since=first, until=last, explorer=explorer)
        # The head is known from here on, so no other request is sent.
        explorer.chain_head.latest("epoch")
        call = lambda e: bf.load_balance_history(  # noqa: E731
            validators, since=since, until=until, explorer=e
        )
        found = CountedLoad(server, call, explorer)

    assert fewest == found.requests
    assert_frame_equal(load_counted(server, False, call).rows, found.rows)


def test_a_lazy_frame_has_the_rows_of_the_frame(server, store):
    """A LazyFrame over the store has the rows that the frame has."""
    with connect(server, store) as explorer:
        expected = CALLS["balances"](explorer)
        lazy = bf.load_balance_history(range(120), since=0, until=120, lazy=True, explorer=explorer)
        assert isinstance(lazy, pl.LazyFrame)
        assert_frame_equal(expected, lazy.sort("validator_index", "epoch").collect())


@pytest.mark.parametrize("store", [False])
def test_a_lazy_frame_needs_no_store(server, store):
    """Without a store the LazyFrame is made from the loaded frame."""
    with connect(server, store) as explorer:
        lazy = bf.load_balance_history([1], since=0, until=9, lazy=True, explorer=explorer)

    assert (True, 10) == (isinstance(lazy, pl.LazyFrame), lazy.collect().height)


def test_compaction_keeps_the_files_of_a_lazy_frame(server, store):
    """A LazyFrame can be collected after the files under it were replaced."""
    with connect(server, store) as explorer:
        for first in range(0, 100, 20):
            bf.load_balance_history(range(9), since=first, until=first + 19, explorer=explorer)
        lazy = bf.load_balance_history(range(9), since=0, until=99, lazy=True, explorer=explorer)
        bf.store(explorer).compact()

    assert 900 == lazy.collect().height


def test_many_public_keys_are_all_resolved(server, store):
    """A request names at most 100 public keys, so that 130 take two."""
    keys = bf.load_validators(range(130), explorer=connect(server, False))["pubkey"].to_list()
    call = lambda e: bf.load_balance_history(keys, since=100, until=100, explorer=e)  # noqa: E731

    first, second = (load_counted(server, store, call) for _ in range(2))
    assert list(range(130)) == first.rows["validator_index"].to_list()
    assert 0 == second.requests
    assert_frame_equal(first.rows, second.rows)


def test_the_files_of_many_loads_are_merged(server, store):
    """Each load adds a file; the load that makes the seventeenth one merges all of them."""
    segments = []
    with connect(server, store) as explorer:
        for epoch in range(18):
            bf.load_balance_history([1], since=epoch, until=epoch, explorer=explorer)
            tables = bf.store(explorer).tables().filter(table="balance_history")
            segments.append(tables["segments"][0])
        rows = bf.load_balance_history([1], since=0, until=17, explorer=explorer)

    assert [*range(1, 17), 1, 2] == segments
    assert list(range(18)) == rows["epoch"].to_list()
