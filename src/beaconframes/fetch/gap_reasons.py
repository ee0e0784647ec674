"""The reasons of gaps: rows that cannot exist are separated from those that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import polars as pl

from beaconframes.active_periods import (
    ACTIVE_STATUSES,
    EXITED,
    NOT_ACTIVE_YET,
    NOT_CHECKED,
    NOT_IN_DATASET,
    NOT_RETURNED,
    REASON,
    UNKNOWN,
    Lifetime,
    find_periods,
    split_gaps,
)
from beaconframes.endpoint import Finality, Role
from beaconframes.errors import RequestLimitExceeded
from beaconframes.fetch.completeness import IMPOSSIBLE, PUBKEYS_WITHOUT_ROWS, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from beaconframes.endpoint import Call, ChainHead, Endpoint

UNITS = ("epoch", "slot", "day")
SUBJECT = "validator_index"
KEY = "pubkey"


NO_VALIDATORS = pl.DataFrame(
    schema={
        SUBJECT: pl.Int64,
        "status": pl.String,
        "slashed": pl.Boolean,
        "activation_epoch": pl.Int64,
        "exit_epoch": pl.Int64,
        "withdrawable_epoch": pl.Int64,
    }
)


class ValidatorSource(Protocol):
    """Where the activity epochs and the indices of validators come from."""

    def load(
        self, indices: Collection[int], until: int | None, existing: Collection[int]
    ) -> tuple[pl.DataFrame, Collection[int]]:
        """Return the activity epochs up to *until*, and the validators with an answer.

        The validators *existing* have rows: a response without one of them is incomplete.
        """

    def resolve(self, pubkeys: Sequence[str]) -> dict[str, int] | None:
        """Return the index of each public key that has one; None if the request failed."""


class Gaps(NamedTuple):
    """The missing rows of a load, and those that cannot exist, one row per gap."""

    missing: pl.DataFrame
    inactive: pl.DataFrame


class GapReasons:
    """Finds the reasons of the gaps of one load; requests each validator at most once."""

    def __init__(
        self,
        endpoint: Endpoint,
        validators: ValidatorSource,
        chain_head: ChainHead,
        required: Requirement,
        not_found: Sequence[Call],
    ) -> None:
        """Explain the gaps in *required*; *not_found* are calls for unknown validators only."""
        self._endpoint, self._validators, self._head = endpoint, validators, chain_head
        self._required = required
        self._reason = NOT_RETURNED
        self._rows: pl.DataFrame | None = None
        self._answered: set[int] = set()
        self._indices: dict[str, int] | None = None
        self._unknown_keys: set[str] = set()
        subjects = Requirement.of_calls(endpoint, not_found).subjects
        if subjects is not None and endpoint.lifetime is not None:
            self._unknown_keys = {*subjects.pubkeys, *subjects.values.get(KEY, ())}
            self._answered = set(subjects.values.get(SUBJECT, ()))

    def find(self, missing: pl.DataFrame, keys: Callable[[], pl.DataFrame]) -> Gaps:
        """Return *missing* with the reason of each gap, without rows that cannot exist.

        *keys* returns the keys of all received rows.
        """
        if REASON not in missing.columns:
            missing = missing.with_columns(pl.lit(NOT_RETURNED).alias(REASON))
        if self._endpoint.lifetime is Lifetime.KNOWN:
            return without_inactive(missing.with_columns(pl.lit(UNKNOWN).alias(REASON)))
        if self._endpoint.lifetime is None or missing.is_empty():
            return without_inactive(missing)
        received = set(keys()[SUBJECT].drop_nulls().unique())
        unknown_keys, missing = self._resolve(missing, received)
        if SUBJECT not in missing.columns:
            return without_inactive(pl.concat([unknown_keys, missing], how="diagonal"))
        is_open = pl.col(SUBJECT).is_not_null()
        if self._endpoint.lifetime is Lifetime.BALANCE:
            # Validators keep their balance rows after the exit, so a gap between two is an error.
            is_open &= ~pl.col(IMPOSSIBLE)
        unit = next((u for u in UNITS if f"first_{u}" in missing.columns), "")
        has_units = pl.col(f"first_{unit}").is_not_null() if unit else pl.lit(value=False)
        parts = [unknown_keys, missing.filter(~is_open)]
        inactive = [missing.clear()]
        for gaps, split in (
            (missing.filter(is_open, has_units), self._split),
            (missing.filter(is_open, ~has_units), self._split_by_status),
        ):
            if not gaps.is_empty():
                found = split(gaps, unit, received)
                parts.append(found.missing)
                inactive.append(found.inactive)
        return Gaps(pl.concat(parts, how="diagonal"), pl.concat(inactive, how="diagonal"))

    def _resolve(
        self, missing: pl.DataFrame, received: set[int]
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the public keys without a validator, and *missing* with indices for the others."""
        nothing, required = missing.clear(), self._required
        by_count = PUBKEYS_WITHOUT_ROWS in missing.columns
        by_key = KEY in missing.columns
        if not (by_count or by_key) or required.subjects is None:
            return nothing, missing
        keys = required.subjects.pubkeys | set(missing[KEY].drop_nulls() if by_key else ())
        if self._indices is None:
            known = sorted(keys - self._unknown_keys)
            self._indices = self._validators.resolve(known) if known else {}
        if self._indices is None:
            return nothing, missing
        indices = self._indices
        names = [key for key in sorted(keys) if key not in indices]
        unknown = pl.DataFrame({KEY: names}, schema={KEY: pl.String}).with_columns(
            pl.lit(UNKNOWN).alias(REASON), pl.lit(value=False).alias(IMPOSSIBLE)
        )
        if by_key:
            index = pl.col(KEY).replace_strict(indices, default=None, return_dtype=pl.Int64)
            named = index if SUBJECT not in missing.columns else pl.coalesce(SUBJECT, index)
            missing = missing.with_columns(named.alias(SUBJECT))
            missing = missing.filter(pl.col(KEY).is_null() | pl.col(SUBJECT).is_not_null())
        if by_count:
            silent = sorted(set(indices.values()) - received)
            missing = missing.filter(pl.col(PUBKEYS_WITHOUT_ROWS).is_null())
            missing = missing.drop(PUBKEYS_WITHOUT_ROWS)
            gaps = pl.DataFrame({SUBJECT: silent}, schema={SUBJECT: pl.Int64}).with_columns(
                pl.lit(NOT_RETURNED).alias(REASON), pl.lit(value=False).alias(IMPOSSIBLE)
            )
            if required.units is not None:
                ((unit, numbers),) = required.units.values.items()
                gaps = gaps.with_columns(
                    pl.lit(min(numbers), pl.Int64).alias(f"first_{unit}"),
                    pl.lit(max(numbers), pl.Int64).alias(f"last_{unit}"),
                )
            missing = pl.concat([missing, gaps], how="diagonal")
        return unknown, missing

    def _split(self, gaps: pl.DataFrame, unit: Any, received: set[int]) -> Gaps:
        """Return *gaps* with reasons, and the parts of them in which rows cannot exist."""
        chain = self._head.chain
        last: Any = gaps[f"last_{unit}"].max()
        until = last if unit == "epoch" else chain.at("epoch", chain.time_of(unit, last + 1))
        validators = self._load(set(gaps[SUBJECT]), until, received)
        gaps = self._mark_unknown(gaps, validators, received)
        lifetime = self._endpoint.lifetime
        assert lifetime is not None
        periods = find_periods(validators, lifetime, unit, chain)
        missing, inactive = split_gaps(gaps, periods, unit)
        if self._endpoint.is_contiguous and self._endpoint.finality is Finality.AT_FINALITY:
            # An active validator has rows, so an interval without any of them is a gap as well.
            silent = pl.col(SUBJECT).is_in(list(set(validators[SUBJECT]) - received))
            missing = missing.with_columns(pl.col(IMPOSSIBLE) | silent)
        return Gaps(missing, inactive)

    def _split_by_status(
        self,
        gaps: pl.DataFrame,
        unit: Any,  # noqa: ARG002 - as `_split`
        received: set[int],
    ) -> Gaps:
        """Return *gaps* without units as `_split` does: those of validators that are not active."""
        validators = self._load(set(gaps[SUBJECT]), None, received)
        gaps = self._mark_unknown(gaps, validators, received)
        was_active = pl.col("activation_epoch").is_not_null()
        is_active = was_active
        if not self._endpoint.parameters_of(Role.RANGE):
            is_active = pl.any_horizontal(
                pl.col("status").str.starts_with(status) for status in ACTIVE_STATUSES
            )
        reasons = validators.filter(~is_active).select(
            SUBJECT,
            pl.when(was_active).then(pl.lit(EXITED)).otherwise(pl.lit(NOT_ACTIVE_YET)).alias("why"),
        )
        joined = gaps.join(reasons, on=SUBJECT, how="left", maintain_order="left")
        inactive = joined.filter(pl.col("why").is_not_null())
        return Gaps(
            joined.filter(pl.col("why").is_null()).drop("why"),
            inactive.with_columns(pl.col("why").alias(REASON)).drop("why"),
        )

    def _mark_unknown(
        self, gaps: pl.DataFrame, validators: pl.DataFrame, received: set[int]
    ) -> pl.DataFrame:
        """Return *gaps* with the reason of validators that the service does not know."""
        known = {*validators[SUBJECT], *received}
        is_unknown = pl.col(SUBJECT).is_in(list(self._answered - known))
        is_open = pl.col(REASON) == NOT_RETURNED
        unknown, default = pl.lit(UNKNOWN), pl.lit(self._reason)
        reason = pl.when(is_unknown).then(unknown).when(is_open).then(default).otherwise(REASON)
        return gaps.with_columns(reason.alias(REASON))

    def _load(self, indices: set[int], until: int | None, received: set[int]) -> pl.DataFrame:
        """Return the activity epochs of *indices*, as far as the service knows them."""
        new = indices - self._answered
        if new or self._rows is None:
            try:
                rows, answered = self._validators.load(new, until, received)
            except RequestLimitExceeded:
                self._reason = NOT_CHECKED
                return self._rows if self._rows is not None else NO_VALIDATORS
            self._answered |= set(answered)
            self._rows = rows if self._rows is None else pl.concat([self._rows, rows])
        return self._rows


def without_inactive(missing: pl.DataFrame) -> Gaps:
    """Return *missing* without any rows that cannot exist."""
    return Gaps(missing, missing.clear())


def select_returnable(endpoint: Endpoint, missing: pl.DataFrame) -> pl.DataFrame:
    """Return the part of *missing* that a second request may return: no unknown validators."""
    if endpoint.lifetime is Lifetime.KNOWN:
        return missing.filter(pl.col(REASON) != NOT_IN_DATASET)
    return missing.filter(~pl.col(REASON).is_in([UNKNOWN, NOT_IN_DATASET]))
