"""Sync committees of a report."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from .source import Source


def _sum_sync(source: Source, keys: list[str]) -> pl.DataFrame:
    reward, penalty = (pl.col(f"sync_committee_{kind}_gwei") for kind in ("reward", "penalty"))
    rows = source.income.filter((reward > 0) | (penalty > 0))
    return (
        rows.with_columns(period=pl.col("epoch") // source.period)
        .group_by("validator_index", "period", *keys)
        .agg(
            first_epoch=pl.min("epoch"),
            last_epoch=pl.max("epoch"),
            time=pl.min("time"),
            reward_gwei=reward.sum(),
            penalty_gwei=penalty.sum(),
            signed_rate=reward.sum() / (reward.sum() + penalty.sum()),
            lost_gwei=2 * penalty.sum(),
        )
        .sort("validator_index", "period", *keys)
    )


@functools.cache
def query_sync(source: Source) -> pl.DataFrame:
    """Duties in sync committees: a missing signature loses the reward and has it as a penalty."""
    return _sum_sync(source, [])


def query_sync_epochs(source: Source) -> pl.DataFrame:
    """The same by epoch."""
    each = source.income.with_columns(step=pl.col("epoch"))
    found = _sum_sync(Swapped(source, income=each), ["step"])
    return found.rename({"step": "epoch"}).drop("first_epoch", "last_epoch")


class Swapped:
    """A source with another value of an attribute."""

    def __init__(self, source: Source, **changed: object) -> None:
        self.source, self.changed = source, changed

    def __getattr__(self, name: str) -> object:
        """Return the changed value, or that of the source."""
        return self.changed[name] if name in self.changed else getattr(self.source, name)
