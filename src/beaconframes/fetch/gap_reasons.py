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
from beaconframes.endpoint.cache_policy import CHAIN_SUBJECTS
from beaconframes.errors import RequestLimitExceeded
from beaconframes.fetch.completeness import IMPOSSIBLE, PUBKEYS_WITHOUT_ROWS, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from beaconframes.endpoint import Call, ChainHead, Endpoint
    from beaconframes.intervals import Intervals

UNITS = ("epoch", "slot", "day")
VALIDATOR = "validator_index"
PUBKEY = "pubkey"


NO_VALIDATORS = pl.DataFrame(
    schema={
        VALIDATOR: pl.Int64,
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
        """Return the index of each public key that has one; None if the request failed.

        Raise RequestLimitExceeded if the limit of the load leaves no request.
        """


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
        self._unknown_pubkeys: set[str] = set()
        subjects = Requirement.of_calls(endpoint, not_found).subjects
        if subjects is not None and endpoint.lifetime is not None:
            self._unknown_pubkeys = {*subjects.pubkeys, *subjects.values.get(PUBKEY, ())}
            self._answered = set(subjects.values.get(VALIDATOR, ()))

    def find(self, missing: pl.DataFrame, keys: Callable[[], pl.DataFrame]) -> Gaps:
        """Return *missing* with the reason of each gap, without rows that cannot exist.

        *keys* returns the keys of all received rows.
        """
        if REASON not in missing.columns:
            missing = missing.with_columns(pl.lit(NOT_RETURNED).alias(REASON))
        lifetime = self._endpoint.lifetime
        if lifetime is Lifetime.KNOWN:
            missing = missing.with_columns(pl.lit(UNKNOWN).alias(REASON))
        if lifetime in (None, Lifetime.KNOWN) or missing.is_empty():
            return Gaps(missing, missing.clear())
        received = set(keys()[VALIDATOR].drop_nulls().unique())
        unknown_pubkeys, missing = self._resolve(missing, received)
        if VALIDATOR not in missing.columns:
            return Gaps(missing, missing.clear())
        is_open = pl.col(VALIDATOR).is_not_null()
        if lifetime is Lifetime.BALANCE:
            # Validators keep their balance rows after the exit, so a gap between two is an error.
            is_open &= ~pl.col(IMPOSSIBLE)
        unit = next((u for u in UNITS if f"first_{u}" in missing.columns), "")
        has_units = pl.col(f"first_{unit}").is_not_null() if unit else pl.lit(value=False)
        nothing = missing.clear()
        found = [Gaps(unknown_pubkeys, nothing), Gaps(missing.filter(~is_open), nothing)]
        with_units = missing.filter(is_open, has_units)
        without_units = missing.filter(is_open, ~has_units)
        if not with_units.is_empty():
            found.append(self._split(with_units, unit, received))
        if not without_units.is_empty():
            found.append(self._split_by_status(without_units, received))
        return Gaps(
            pl.concat([gaps.missing for gaps in found], how="diagonal"),
            pl.concat([gaps.inactive for gaps in found], how="diagonal"),
        )

    def _resolve(
        self, missing: pl.DataFrame, received: set[int]
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the public keys without a validator, and *missing* with indices for the others."""
        by_count = PUBKEYS_WITHOUT_ROWS in missing.columns
        by_pubkey = PUBKEY in missing.columns
        subjects = self._required.subjects
        if not (by_count or by_pubkey) or subjects is None:
            return missing.clear(), missing
        pubkeys = subjects.pubkeys | set(missing[PUBKEY].drop_nulls() if by_pubkey else ())
        indices = self._find_indices(pubkeys)
        if indices is None:
            columns = [name for name in (PUBKEY, PUBKEYS_WITHOUT_ROWS) if name in missing]
            reason = (
                pl.when(pl.any_horizontal(pl.col(columns).is_not_null()))
                .then(pl.col(REASON).replace(NOT_RETURNED, self._reason))
                .otherwise(REASON)
            )
            return missing.clear(), missing.with_columns(reason.alias(REASON))
        if by_pubkey:
            missing = replace_pubkeys(missing, indices)
        if by_count:
            without_rows = build_gaps(
                pl.Series(VALIDATOR, sorted(set(indices.values()) - received), pl.Int64).to_frame(),
                NOT_RETURNED,
            )
            units = self._required.units
            if units is not None:
                ((unit, numbers),) = units.values.items()
                without_rows = without_rows.with_columns(
                    pl.lit(min(numbers), pl.Int64).alias(f"first_{unit}"),
                    pl.lit(max(numbers), pl.Int64).alias(f"last_{unit}"),
                )
            missing = missing.filter(pl.col(PUBKEYS_WITHOUT_ROWS).is_null())
            missing = missing.drop(PUBKEYS_WITHOUT_ROWS)
            missing = pl.concat([missing, without_rows], how="diagonal")
        unknown = [pubkey for pubkey in sorted(pubkeys) if pubkey not in indices]
        return build_gaps(pl.Series(PUBKEY, unknown, pl.String).to_frame(), UNKNOWN), missing

    def _find_indices(self, pubkeys: set[str]) -> dict[str, int] | None:
        """Return the index of each of *pubkeys* that has one; None if they were not requested."""
        if self._indices is None:
            resolvable = sorted(pubkeys - self._unknown_pubkeys)
            try:
                self._indices = self._validators.resolve(resolvable) if resolvable else {}
            except RequestLimitExceeded:
                self._reason = NOT_CHECKED
        return self._indices

    def _split(self, gaps: pl.DataFrame, unit: Any, received: set[int]) -> Gaps:
        """Return *gaps* with reasons, and the parts of them in which rows cannot exist."""
        chain = self._head.chain
        last: Any = gaps[f"last_{unit}"].max()
        until = last if unit == "epoch" else chain.at("epoch", chain.time_of(unit, last + 1))
        validators = self._load(set(gaps[VALIDATOR]), until, received)
        gaps = self._mark_unknown(gaps, validators, received)
        lifetime = self._endpoint.lifetime
        assert lifetime is not None
        periods = find_periods(validators, lifetime, unit, chain)
        missing, inactive = split_gaps(gaps, periods, unit)
        if self._endpoint.is_contiguous and self._endpoint.finality is Finality.AT_FINALITY:
            # An active validator has rows, so an interval without any of them is a gap as well.
            without_rows = list(set(validators[VALIDATOR]) - received)
            has_no_rows = pl.col(VALIDATOR).is_in(without_rows)
            missing = missing.with_columns(pl.col(IMPOSSIBLE) | has_no_rows)
        return Gaps(missing, inactive)

    def _split_by_status(self, gaps: pl.DataFrame, received: set[int]) -> Gaps:
        """Return *gaps* without units as `_split` does: those of validators that are not active."""
        validators = self._load(set(gaps[VALIDATOR]), None, received)
        gaps = self._mark_unknown(gaps, validators, received)
        was_active = pl.col("activation_epoch").is_not_null()
        is_active = was_active
        if not self._endpoint.parameters_of(Role.RANGE):
            is_active = pl.any_horizontal(
                pl.col("status").str.starts_with(status) for status in ACTIVE_STATUSES
            )
        reasons = validators.filter(~is_active).select(
            VALIDATOR,
            pl.when(was_active).then(pl.lit(EXITED)).otherwise(pl.lit(NOT_ACTIVE_YET)).alias("why"),
        )
        joined = gaps.join(reasons, on=VALIDATOR, how="left", maintain_order="left")
        inactive = joined.filter(pl.col("why").is_not_null())
        return Gaps(
            joined.filter(pl.col("why").is_null()).drop("why"),
            inactive.with_columns(pl.col("why").alias(REASON)).drop("why"),
        )

    def _mark_unknown(
        self, gaps: pl.DataFrame, validators: pl.DataFrame, received: set[int]
    ) -> pl.DataFrame:
        """Return *gaps* with the reason of validators that the service does not know."""
        known = {*validators[VALIDATOR], *received}
        is_unknown = pl.col(VALIDATOR).is_in(list(self._answered - known))
        is_checked = pl.col(VALIDATOR).is_in(list(self._answered))
        is_open = (pl.col(REASON) == NOT_RETURNED) & ~is_checked
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


def build_gaps(gaps: pl.DataFrame, reason: str) -> pl.DataFrame:
    """Return *gaps*, which have subjects or units, for a *reason*."""
    return gaps.with_columns(pl.lit(reason).alias(REASON), pl.lit(value=False).alias(IMPOSSIBLE))


def build_interval_gaps(
    subject: str | None, unit: str, intervals: Mapping[str, Intervals], reason: str
) -> pl.DataFrame:
    """Return the *intervals* of units, by subject, as gaps for a *reason*."""
    gaps = [
        {
            **({} if subject is None or name in CHAIN_SUBJECTS else {subject: int(name)}),
            f"first_{unit}": first,
            f"last_{unit}": last,
        }
        for name, units in intervals.items()
        for first, last in units
    ]
    return build_gaps(pl.DataFrame(gaps), reason)


def replace_pubkeys(missing: pl.DataFrame, indices: Mapping[str, int]) -> pl.DataFrame:
    """Return *missing* with the index of each public key, without keys that have no index."""
    index = pl.col(PUBKEY).replace_strict(indices, default=None, return_dtype=pl.Int64)
    if VALIDATOR in missing.columns:
        index = pl.coalesce(VALIDATOR, index)
    missing = missing.with_columns(index.alias(VALIDATOR))
    return missing.filter(pl.col(PUBKEY).is_null() | pl.col(VALIDATOR).is_not_null())


def select_returnable(endpoint: Endpoint, missing: pl.DataFrame) -> pl.DataFrame:
    """Return the part of *missing* that a second request may return: no unknown validators."""
    if endpoint.lifetime is Lifetime.KNOWN:
        return missing.filter(pl.col(REASON) != NOT_IN_DATASET)
    return missing.filter(~pl.col(REASON).is_in([UNKNOWN, NOT_IN_DATASET]))
