"""Warnings of arguments that are accepted, but hardly meant."""

from __future__ import annotations

import warnings

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.endpoint import Head
from beaconframes.errors import UsageWarning

from ..support.faults import FastClock

HEADS = {
    "mainnet": Head(epoch=460_000, finalized_epoch=459_998, slot=14_720_031),
    "hoodi": Head(epoch=50_000, finalized_epoch=49_998, slot=1_600_031),
}
"""Of 2026 and 2025."""


@pytest.mark.parametrize("empty", [[], (), range(0), pl.Series([], dtype=pl.Int64)])
def test_an_empty_list_has_a_warning(empty, chain):
    """The frame has no rows, and the argument is named."""
    with bf.open(chain.path), pytest.warns(UsageWarning, match="^validators is empty, so no rows"):
        assert 0 == bf.load_income_history(empty, since=2, until=3).height
    with bf.open(chain.path), pytest.warns(UsageWarning, match="^slots is empty, so no rows"):
        assert 0 == bf.load_slots(empty).height


@pytest.mark.parametrize("load", [bf.load_epochs, bf.v2.load_proposal_slots])
@pytest.mark.parametrize("argument", ["since", "until"])
def test_a_year_as_an_integer_has_a_warning(load, argument, monkeypatch):
    """Epoch 2025 of mainnet was in December 2020: the warning comes before the first request."""
    explorer = bf.Explorer("http://127.0.0.1:9", chain="mainnet", head=HEADS["mainnet"])
    arguments = [7] if load is bf.v2.load_proposal_slots else []

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            UsageWarning, match=rf"{argument}=2025 is the number of a slot"
        ) as caught:
            load(*arguments, **{argument: 2025}, explorer=explorer)

    assert f'{argument}="2025-01"' in str(caught.value)
    assert 0 == explorer.requests


@pytest.mark.parametrize(
    ("chain", "number"),
    [
        ("mainnet", 2019),  # before its genesis
        ("mainnet", 2027),  # after its head
        ("hoodi", 2025),  # this epoch was in 2025
    ],
)
def test_a_number_that_is_no_year_of_the_chain_has_no_warning(chain, number):
    """The next error is that of the request: nothing listens at the address."""
    explorer = bf.Explorer("http://127.0.0.1:9", chain=chain, head=HEADS[chain])
    explorer.rate_limiter.clock = FastClock()

    with pytest.raises(bf.errors.ConnectionFailed):
        bf.load_epochs(since=number, until=number, explorer=explorer)


@pytest.mark.parametrize(
    ("module", "warns"),
    [("__main__", True), ("beaconframes.cli.loaders", True), ("beaconframes.exports.load", False)],
)
@pytest.mark.parametrize("call", ["load_epochs(since=2025, until=2249)", "load_slots([])"])
def test_numbers_that_the_package_computes_have_no_warning(module, warns, call, monkeypatch):
    """An export by day loads epochs 2025 to 2249, day 9 of mainnet; a user hardly does."""
    monkeypatch.setattr(bf.Explorer, "load", lambda *_, **__: None)
    explorer = bf.Explorer("http://127.0.0.1:9", chain="mainnet", head=HEADS["mainnet"])
    code = f"bf.{call[:-1]}, explorer=explorer)"

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(code, {"__name__": module, "bf": bf, "explorer": explorer})

    assert warns == bool(caught)


def test_a_day_may_be_the_number_of_a_year():
    """Day 2025 of mainnet was in June 2026."""
    explorer = bf.Explorer("http://127.0.0.1:9", chain="mainnet", head=HEADS["mainnet"])
    explorer.rate_limiter.clock = FastClock()

    with pytest.raises(bf.errors.ConnectionFailed):
        bf.load_yield_index(since=2025, until=2025, explorer=explorer)
