"""Balance changes and the parts that explain them, one row per validator and epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "epoch"]
TRANSFERS = ["deposits_gwei", "withdrawals_gwei", "consolidations_gwei"]
_SAMPLE_ROWS = 50_000
_ROWS_OF_PART = 200_000
_CHANGES = ["change_gwei", "income_gwei", *TRANSFERS]


@dataclass(frozen=True)
class Period:
    """The epochs with income, and the epochs to explain that were requested."""

    first: int
    last: int
    since: int | None
    until: int | None
    has_slot_income: bool
    has_next_slot_income: bool = True
    """Whether the slot income, if there is one, has the first block after the last epoch."""

    def find_bounds(self, offset: int) -> tuple[int, int]:
        """Return the first and the last epoch to explain if attestations settle *offset* later."""
        since, until = self.first + max(offset, 0), self.last + min(offset, 0)
        if not (self.has_slot_income and self.has_next_slot_income):
            until = min(until, self.last - 1)  # the first block of the next epoch is part of it
        return since if self.since is None else self.since, (
            until if self.until is None else self.until
        )

    def has_income(self, epochs: pl.Expr) -> pl.Expr:
        """Return whether the income inside the blocks of *epochs* is known."""
        return pl.lit(self.has_slot_income) | epochs.is_between(self.first, self.last)


def compute_changes(sums: pl.DataFrame, transfers: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return changes and what explains them, except attestations. One row per validator and epoch.

    The income has all blocks of the epoch, less the first block and plus that of the next epoch
    where their amounts are known. Where not, an end is open: ``min_gwei`` and ``max_gwei`` are the
    limits of what both ends contribute. *sums* are sorted and have the limits of first blocks.
    """
    income = (
        pl.col("proposal_gwei") + pl.col("sync_reward_gwei")
        - pl.col("sync_penalty_gwei") - pl.col("slashing_penalty_gwei")
    )  # fmt: skip
    epoch, low, high = pl.col("epoch"), pl.col("min_gwei"), pl.col("max_gwei")
    is_same = pl.col("validator_index").shift(-1) == pl.col("validator_index")
    # Without a row, the next epoch has neither a balance nor income.
    has_next = (is_same & (epoch.shift(-1) == epoch + 1)).fill_null(value=False)
    limits = {
        "start": (low, high, ~period.has_income(epoch)),
        "end": (
            pl.when(has_next).then(low.shift(-1)).otherwise(0),
            pl.when(has_next).then(high.shift(-1)).otherwise(0),
            ~period.has_income(epoch + 1),
        ),
    }
    columns = {}
    for end, (least, most, is_unknown) in limits.items():
        columns[f"is_{end}_open"] = (least != most) | is_unknown
        columns[f"{end}_gwei"] = pl.when(least == most).then(least).otherwise(0)
        columns[f"{end}_min_gwei"] = pl.when(least == most).then(0).otherwise(least)
        columns[f"{end}_max_gwei"] = pl.when(least == most).then(0).otherwise(most)
    rows = sums.select(
        *(*_KEYS, "starts", "ends"),
        change_gwei=pl.col("last_gwei") - pl.col("first_gwei"),
        income_gwei=income,
        **columns,
    ).filter((pl.col("starts") > 0) & (pl.col("ends") > 0))
    return rows.join(transfers, _KEYS, how="left", maintain_order="left").select(
        *_KEYS,
        "change_gwei",
        pl.col("income_gwei") - pl.col("start_gwei") + pl.col("end_gwei"),
        pl.col(TRANSFERS).fill_null(0),
        "^is_.*_open$",
        "^(start|end)_(min|max)_gwei$",
    )


def find_offset(
    sums: pl.DataFrame, transfers: pl.DataFrame, offsets: Sequence[int], period: Period
) -> int:
    """Return the offset of attestations that explains most rows, the first of equal ones."""
    if len(offsets) == 1:
        return offsets[0]
    # The rows of some validators are enough to distinguish offsets.
    validators = sums["validator_index"].unique().sort()
    sample = validators.gather_every(sums.height // _SAMPLE_ROWS + 1).implode()
    sums = sums.filter(pl.col("validator_index").is_in(sample))
    rows = compute_changes(sums, transfers, period)
    return max(offsets, key=lambda offset: _rate_offset(rows, sums, offset, period))


def split_by_validator(sums: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield sorted *sums* in parts of some rows, each with all rows of its validators.

    There is at least one part.
    """
    validators = sums["validator_index"]
    start = 0
    while True:
        end = start + _ROWS_OF_PART
        if end >= sums.height:
            yield sums[start:]
            return
        end = int(validators.search_sorted(validators[end - 1], side="right"))
        yield sums[start:end]
        start = end


def settle_attestations(
    rows: pl.DataFrame, sums: pl.DataFrame, offset: int, period: Period
) -> pl.DataFrame:
    """Add the attestation rewards, *offset* epochs after their own, and select the period."""
    since, until = period.find_bounds(offset)
    settled = sums.select("validator_index", pl.col("epoch") + offset, "attestations_gwei")
    return (
        rows.filter(pl.col("epoch").is_between(since, until))
        .join(settled, _KEYS, how="left", maintain_order="left")
        .with_columns(pl.col("income_gwei") + pl.col("attestations_gwei").fill_null(0))
        .drop("attestations_gwei")
    )


def _rate_offset(rows: pl.DataFrame, sums: pl.DataFrame, offset: int, period: Period) -> float:
    """Return the share of rows that are explained if attestations settle *offset* epochs later."""
    settled = settle_attestations(rows, sums, offset, period)
    low = pl.col("end_min_gwei") - pl.col("start_max_gwei")
    high = pl.col("end_max_gwei") - pl.col("start_min_gwei")
    share = settled.select(_compute_remainder().is_between(low, high).mean()).item()
    return float(share or 0)


def _compute_remainder() -> pl.Expr:
    gains = pl.col("income_gwei") + pl.col("deposits_gwei") + pl.col("consolidations_gwei")
    return pl.col("change_gwei") - gains + pl.col("withdrawals_gwei")


def merge_rows(rows: pl.DataFrame, clock: Chain) -> pl.DataFrame:
    """Merge the rows on both sides of a first block with unknown income, which both share.

    ``min_gwei`` and ``max_gwei`` are the limits of ``ends_gwei``.
    """
    epoch = pl.col("epoch")
    is_next = (epoch == epoch.shift(1) + 1).over("validator_index").fill_null(value=False)
    first_slot = epoch * clock.slots_per_epoch
    next_slot = (pl.col("until_epoch") + 1) * clock.slots_per_epoch
    low = pl.col("end_min_gwei") - pl.col("start_max_gwei")
    high = pl.col("end_max_gwei") - pl.col("start_min_gwei")
    remainder = _compute_remainder()
    return (
        rows.with_columns(number=(~(is_next & pl.col("is_start_open"))).cum_sum())
        .group_by("validator_index", "number", maintain_order=True)
        .agg(
            epoch.first(),
            epoch.last().alias("until_epoch"),
            pl.col(_CHANGES).sum(),
            pl.col("^(is_)?start_.*$").first(),
            pl.col("^(is_)?end_.*$").last(),
        )
        .with_columns(
            ends_gwei=remainder.clip(low, high),
            open_start_slot=pl.when("is_start_open").then(first_slot),
            open_end_slot=pl.when("is_end_open").then(next_slot),
        )
        .select(
            *(*_KEYS, "until_epoch", *_CHANGES, "ends_gwei"),
            (remainder - pl.col("ends_gwei")).alias("unexplained_gwei"),
            *("open_start_slot", "open_end_slot"),
            min_gwei=low,
            max_gwei=high,
        )
    )
