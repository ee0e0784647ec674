"""The option ``frame``: which kind of frame one call returns."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import beaconframes as bf
from beaconframes.errors import ConfigError, UsageError

pytestmark = pytest.mark.usefixtures("explorer")


def test_frame_decides_over_the_settings():
    """It holds for one call, in both directions."""
    with bf.settings(frame="pandas"):
        chosen = bf.load_validators(1, frame="polars")
        default = bf.load_validators(1)
    pandas = bf.load_validators(1, frame="pandas")

    assert isinstance(chosen, pl.DataFrame)
    assert isinstance(default, pd.DataFrame)
    assert chosen["pubkey"].to_list() == pandas["pubkey"].to_list() == default["pubkey"].to_list()


def test_a_lazy_frame_is_of_polars():
    """Pandas has none: both options together are an error, and a setting is no contradiction."""
    with pytest.raises(UsageError, match=r'lazy=True .* frame="pandas"'):
        bf.load_validators(1, lazy=True, frame="pandas")
    with bf.settings(frame="pandas"):
        lazy = bf.load_validators(1, lazy=True)

    assert isinstance(lazy, pl.LazyFrame)


def test_an_unknown_kind_of_frame_is_an_error():
    """The error names the two kinds."""
    with pytest.raises(ConfigError, match=r'"polars" or "pandas"'):
        bf.load_validators(1, frame="arrow")


def test_looked_up_keys_do_not_depend_on_the_kind_of_frame():
    """Loaders that look validators up first return every kind."""
    key = bf.load_validators(3)["pubkey"][0]
    pandas = bf.load_validator_stats(key, since=0, until=0, frame="pandas")
    sender = bf.load_deposits(3)["from_address"][0]
    lazy = bf.load_deposit_origin(sender, lazy=True)

    assert [3] == pandas["validator_index"].unique().tolist()
    assert key in lazy.collect()["pubkey"].to_list()
