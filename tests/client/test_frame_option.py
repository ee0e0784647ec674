"""The option ``frame``: which kind of frame one call returns."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_a_local_explorer_returns_the_kind_of_frame_that_it_was_started_with(chain):
    """Step 12, 7: `bf.local(frame=)` holds for every load, and a call decides over it."""
    with bf.local(chain, frame="pandas"):
        loaded = bf.load_validators([1, 2])
        chosen = bf.load_validators([1, 2], frame="polars")

    assert isinstance(loaded, pd.DataFrame)
    assert isinstance(bf.to_eth(loaded), pd.DataFrame)
    assert isinstance(chosen, pl.DataFrame)


def test_the_readme_has_the_same_result_in_polars_and_in_pandas(tmp_path, monkeypatch):
    """Step 12, 7: each pair of lines is run in both, with the same rows and prices."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
    section = page.partition("## polars or pandas")[2].partition("\n## ")[0]
    pairs = re.findall(r"^# ([\w ]+).*\n(.+)\n(.+)$", section, re.MULTILINE)
    column = "attestation_target_reward_gwei"
    income = bf.load_income_history([1, 2, 3], since=223, until=227)
    times = income["time"].unique().sort()[[0, 2]]
    prices = pl.DataFrame({"time": times, "eur": [2000.0, 2100.0]})
    names = {"bf": bf, "pl": pl, "pd": pd, "column": column}
    results = {}
    for task, polars, pandas in pairs:
        first = eval(polars, names | {"income": income, "prices": prices})
        as_pandas = {"income": bf.to_pandas(income), "prices": prices.to_pandas()}
        second = eval(pandas, names | as_pandas)
        results[task] = (first, second)

    assert list(results) == ["By validator", "By day", "With the latest price", "To Excel"]
    for task in ("By validator", "By day"):
        first, second = results[task]
        assert sorted(first[column].to_list()) == sorted(second.tolist())
    first, second = results["With the latest price"]
    assert sorted(first["eur"].to_list()) == sorted(second["eur"].tolist())
    assert income[column].to_list() == pd.read_excel("income.xlsx")[column].tolist()
