"""Gaps, errors and interrupts: rows that were received are stored, the others are not."""

from __future__ import annotations

import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors

from ..support.faults import FastClock, FaultServer
from ..support.store_loads import connect, load_counted


def test_gaps_are_never_stored(server, store):
    """A gap between final rows is an error, and the next call requests it again."""
    call = lambda e: bf.load_balance_history(range(9), since=0, until=150, explorer=e)  # noqa: E731
    with FaultServer("rows_drop?every=11&path=/validator", upstream=server.url) as bad:
        explorer = bf.Explorer(bad.url, chain=server.service.chain, store=store, rate=10_000)
        with pytest.raises(errors.IntegrityError, match="final rows are missing"):
            call(explorer)
        bad.fault("")
        seen = len(bad.seen)
        found = call(explorer)
        requested = [s.target for s in bad.seen[seen:] if "balance" in s.target]
        explorer.close()

    assert_frame_equal(load_counted(server, False, call).rows, found)
    assert 2 == len(requested)


@pytest.mark.more
@pytest.mark.parametrize("fault", ["5xx?code=503", "body?hex=7b7d", "204"])
def test_errors_are_never_stored(server, store, fault):
    """F09: after an error, neither rows nor their absence are stored."""
    call = lambda e: bf.load_epochs(since=100, until=103, explorer=e)  # noqa: E731
    with FaultServer(f"{fault}&path=/epoch/" if "?" in fault else f"{fault}?path=/epoch/",
                     upstream=server.url) as bad:  # fmt: skip
        explorer = bf.Explorer(bad.url, chain=server.service.chain, store=store, rate=10_000)
        explorer.rate_limiter.clock = FastClock()
        with pytest.raises(errors.BeaconframesError):
            call(explorer)
        bad.fault("")
        assert 4 == call(explorer).height
        explorer.close()


@pytest.mark.more
def test_rows_before_an_error_are_stored(server, store):
    """The next call continues where the previous one failed."""
    call = lambda e: bf.load_epochs(since=100, until=139, explorer=e)  # noqa: E731
    with FaultServer(upstream=server.url) as bad:
        explorer = bf.Explorer(bad.url, chain=server.service.chain, store=store, rate=10_000)
        bad.fault("status?code=401&path=/epoch/13")
        with pytest.raises(errors.Unauthorized):
            call(explorer)
        bad.fault("")
        before = {s.target for s in bad.seen if "/epoch/" in s.target}
        seen = len(bad.seen)
        found = call(explorer)
        after = {s.target for s in bad.seen[seen:] if "/epoch/" in s.target}
        explorer.close()

    assert_frame_equal(load_counted(server, False, call).rows, found)
    assert {f"/api/v1/epoch/{epoch}" for epoch in range(130, 140)} <= after
    # Of the 30 good ones, only those in flight may be requested twice.
    assert len(after & before) <= 10 + 16


def test_rows_before_an_interrupt_are_stored(server, store, monkeypatch):
    """Rows that were received before Ctrl-C are stored."""
    from beaconframes.fetch import source as api_source

    monkeypatch.setattr(api_source, "FLUSH_SECONDS", 0.0)
    call = lambda e: bf.load_epochs(since=100, until=115, explorer=e)  # noqa: E731
    with connect(server, store) as explorer:
        pieces, numbers = explorer.source.fetch_rows, iter(range(99))

        def interrupt(*arguments):
            for piece in pieces(*arguments):
                yield piece
                if next(numbers) == 7:
                    raise KeyboardInterrupt

        explorer.source.fetch_rows = interrupt
        with pytest.raises(KeyboardInterrupt):
            call(explorer)

        stored = bf.store(explorer).coverage("epochs")

    assert 8 == (stored["last"] - stored["first"] + 1).sum()
    assert_frame_equal(
        load_counted(server, False, call).rows, load_counted(server, store, call).rows
    )


def test_an_incomplete_epoch_is_not_stored(server, store):
    """P24: of two final epochs, only the one with a missing slot is requested again."""
    fault = "rows_lack?fields=slot&cells=3210&path=/epoch/"
    call = lambda e: bf.load_epoch_slots(since=100, until=101, explorer=e)  # noqa: E731
    with FaultServer(fault, upstream=server.url) as bad:
        explorer = bf.Explorer(bad.url, chain=server.service.chain, store=store, rate=10_000)
        with explorer:
            with pytest.raises(errors.IntegrityError) as caught:
                call(explorer)
            bad.fault("")
            seen = len(bad.seen)
            found = call(explorer)
            requested = [s.target for s in bad.seen[seen:] if "/slots" in s.target]

    assert [(100, 100, 3210, 3210)] == caught.value.missing.drop("reason").rows()
    assert ["/api/v1/epoch/100/slots"] == requested
    assert_frame_equal(load_counted(server, False, call).rows, found)
