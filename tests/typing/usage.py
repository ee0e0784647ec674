"""Types of the public functions, as type checkers infer them. mypy reads this; nothing runs it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import assert_type

import pandas as pd
import plotly.graph_objects as go
import polars as pl
from matplotlib.axes import Axes
from PIL.Image import Image

import beaconframes as bf


def eager(explorer: bf.Explorer) -> None:
    """Without options, a loader returns a polars DataFrame."""
    assert_type(bf.load_validators([1, "0x" + "ab" * 48]), pl.DataFrame)
    assert_type(bf.load_income_history(range(9), since=-9, until=date(2026, 1, 2)), pl.DataFrame)
    assert_type(bf.load_epochs(since=timedelta(days=2), strict=True), pl.DataFrame)
    assert_type(bf.load_validator_queue(explorer=explorer, max_requests=1), pl.DataFrame)
    assert_type(bf.load_graffiti_wall((0, 0, 9, 9), summarize=True, lazy=False), pl.DataFrame)
    assert_type(bf.load_names("vitalik.eth", frame="polars"), pl.DataFrame)
    assert_type(bf.load_chart("validators"), Image)


def lazy() -> None:
    """With ``lazy=True`` it returns a LazyFrame."""
    assert_type(bf.load_validators(1, lazy=True), pl.LazyFrame)
    assert_type(bf.load_balance_history(range(9), since=0, lazy=True), pl.LazyFrame)
    assert_type(bf.load_epochs(since="2026-10-01", until=-1, lazy=True), pl.LazyFrame)
    assert_type(bf.load_deposit_origin("vitalik.eth", lazy=True, frame="polars"), pl.LazyFrame)


def pandas() -> None:
    """With ``frame="pandas"`` it returns a pandas DataFrame."""
    assert_type(bf.load_validators(1, frame="pandas"), pd.DataFrame)
    assert_type(bf.load_attestations(1, since="6h", slim=True, frame="pandas"), pd.DataFrame)
    assert_type(bf.load_proposals(1, until=date(2026, 1, 2), frame="pandas"), pd.DataFrame)
    assert_type(bf.load_validator_stats([1], since=0, frame="pandas"), pd.DataFrame)


def v2() -> None:
    """The loaders of V2 follow the same rule."""
    assert_type(bf.v2.load_rewards([1, 2], since=-2), pl.DataFrame)
    assert_type(bf.v2.load_rewards_aggregate(bf.v2.dashboard(7), "30d"), pl.DataFrame)
    assert_type(bf.v2.load_slot(lazy=True), pl.LazyFrame)
    assert_type(bf.v2.load_balances(bf.v2.entity("x"), until=-1, lazy=True), pl.LazyFrame)
    assert_type(bf.v2.load_entities(sort_by="beaconscore", frame="pandas"), pd.DataFrame)


def errors() -> None:
    """A wrong argument is an error of the type checker."""
    bf.load_validators(1, lazy=True, frame="pandas")  # type: ignore[call-overload]
    bf.load_validators(1, since=3)  # type: ignore[call-overload]
    bf.load_epochs(stricht=True)  # type: ignore[call-overload]
    bf.load_slots()  # type: ignore[call-overload]
    bf.v2.load_rewards(1, since=2.5)  # type: ignore[call-overload]


def charts() -> None:
    """Analysis returns the kind of frame that it is given; a chart is an Axes or a Figure."""
    income = bf.load_income_history(1)
    assert_type(bf.analysis.attestation_effectiveness(bf.load_attestations(1)), pl.DataFrame)
    votes = bf.load_attestations(1, frame="pandas")
    assert_type(bf.analysis.attestation_effectiveness(votes), pd.DataFrame)
    assert_type(bf.plot.income(income, every="day", unit="eth"), Axes)
    assert_type(bf.interactive.income(income), go.Figure)
    bf.plot.luck(income, income, by=["validator_index"], title="Luck", ax=bf.plot.income(income))
    bf.plot.income(income, every="year")  # type: ignore[arg-type]
    bf.plot.sync_members(income)  # type: ignore[call-arg]
    bf.interactive.income(income, figsize=9)  # type: ignore[arg-type]
