"""Active periods of validators: the epochs in which a validator must have rows.

Outside of them rows cannot exist, so they are not missing. Loaders, plans, exports and
`analysis.completeness` use this one rule.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from beaconframes.calendar import Chain, Unit

ACTIVE_STATUSES = ("active", "exiting", "slashing")
"""The beginnings of the status of a validator that has duties."""

REASON = "reason"
UNKNOWN = "unknown to the service"
EXITED = "exited"
NOT_ACTIVE_YET = "not active yet"
NOT_RETURNED = "not returned by the service"
NOT_CHECKED = "not returned, and max_requests left no request to check the validator"
NOT_STORED = "not stored"
NOT_IN_DATASET = "not in the dataset"
NO_LONGER_SERVED = "no longer in the window of the service"
END_OF_BALANCE = ["slashed", "withdrawable_epoch"]
"""The columns that show how long a slashed validator has penalties."""
NATURAL = (EXITED, NOT_ACTIVE_YET)
"""The reasons for which rows cannot exist."""

FAR = 2**53
"""A unit after every other one."""


class Lifetime(Enum):
    """The epochs in which a validator must have rows in a table."""

    KNOWN = "always, if the service knows the validator"
    DUTIES = "from activation until exit"
    PENALTIES = "as duties; a slashed validator until the epoch before the last one of its balance"
    BALANCE = "from activation until the balance can be withdrawn"


def end_epoch(lifetime: Lifetime, library: Any) -> Any:
    """Return the first epoch without required rows, from the columns of a validator.

    The expression is one of *library*: polars or narwhals, which have the same functions.
    """
    withdrawable, exited = library.col("withdrawable_epoch"), library.col("exit_epoch")
    if lifetime is Lifetime.BALANCE:
        return withdrawable
    if lifetime is Lifetime.PENALTIES:
        # The consensus specification penalizes it while the next epoch is not withdrawable.
        is_slashed = library.col("slashed")
        return library.when(is_slashed).then(withdrawable - 1).otherwise(exited)
    return exited


def find_periods(
    validators: pl.DataFrame, lifetime: Lifetime, unit: Unit, chain: Chain
) -> pl.DataFrame:
    """Return the first and the last unit in which each of *validators* must have rows.

    A validator that is never active gets a ``start`` in the far future.
    """
    epochs = validators.select(
        "validator_index",
        start=pl.col("activation_epoch"),
        end=end_epoch(lifetime, pl) - 1,
    )
    if unit != "epoch":
        epochs = epochs.with_columns(
            pl.Series(name, [convert(epoch, unit, chain) for epoch in epochs[column]], pl.Int64)
            for name, column, convert in (
                ("start", "start", first_unit), ("end", "end", last_unit),
            )
        )  # fmt: skip
    return epochs.with_columns(pl.col("start").fill_null(FAR), pl.col("end").fill_null(FAR))


def first_unit(epoch: int | None, unit: Unit, chain: Chain) -> int | None:
    """Return the first slot or day of *epoch*."""
    return None if epoch is None else chain.at(unit, chain.time_of("epoch", epoch))


def last_unit(epoch: int | None, unit: Unit, chain: Chain) -> int | None:
    """Return the last slot or day of *epoch*."""
    if epoch is None:
        return None
    if unit == "slot":
        return chain.last_slot_of(epoch)
    return chain.at(unit, chain.time_of("epoch", max(epoch, 0)))


def split_gaps(
    gaps: pl.DataFrame, periods: pl.DataFrame, unit: Unit
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the parts of *gaps* in which rows are missing, and those in which none can exist.

    Both have a ``reason``. The gaps of a validator without a period are all missing.
    """
    first, last = f"first_{unit}", f"last_{unit}"
    columns = gaps.columns
    joined = gaps.lazy().join(
        periods.lazy(), on="validator_index", how="left", maintain_order="left"
    )
    joined = joined.with_columns(pl.col("start").fill_null(-FAR), pl.col("end").fill_null(FAR))
    inside = joined.with_columns(
        pl.max_horizontal(first, "start").alias(first), pl.min_horizontal(last, "end").alias(last)
    )
    if REASON not in columns:
        inside = inside.with_columns(pl.lit(NOT_RETURNED).alias(REASON))
    before = joined.with_columns(
        pl.min_horizontal(last, pl.col("start") - 1).alias(last),
        pl.lit(NOT_ACTIVE_YET).alias(REASON),
    )
    after = joined.with_columns(
        pl.max_horizontal(first, pl.col("end") + 1).alias(first), pl.lit(EXITED).alias(REASON)
    )
    outside = pl.concat([before, after], how="vertical_relaxed")
    order = list(dict.fromkeys((*columns, REASON)))
    is_interval = pl.col(first) <= pl.col(last)
    parts = [part.filter(is_interval).select(order) for part in (inside, outside)]
    missing, inactive = pl.collect_all(parts)
    return missing, inactive
