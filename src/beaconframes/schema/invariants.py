"""Invariants: what holds for the rows of a table beyond the types of their cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from beaconframes.schema.texts import Hex
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.calendar import Chain
    from beaconframes.schema.columns import Column


class Rule(NamedTuple):
    """The expression of the rows that violate an invariant, and the text of the error."""

    violated: pl.Expr
    explain: Callable[[Mapping[str, Any]], str]


class Invariant(ABC):
    """A relation between the columns of a table."""

    @abstractmethod
    def build(self, chain: Chain) -> Rule:
        """Return the rule on *chain*. A comparison with null is no violation."""


@dataclass(frozen=True)
class SlotInEpoch(Invariant):
    """The slot belongs to the epoch."""

    slot: str = "slot"
    epoch: str = "epoch"

    def build(self, chain: Chain) -> Rule:
        """Return the rule on *chain*."""
        return Rule(
            pl.col(self.slot) // chain.slots_per_epoch != pl.col(self.epoch),
            lambda row: f"{self.slot} {row[self.slot]} is not in {self.epoch} {row[self.epoch]}",
        )


@dataclass(frozen=True)
class Consecutive(Invariant):
    """The numbers of the rows in one group have no gap.

    With ``first`` they begin with it. The documentation of the API has a list of one item with the
    number 1, so a single item may have any number.
    """

    number: str
    within: tuple[str, ...]
    first: int | None = None

    def build(self, chain: Chain) -> Rule:  # noqa: ARG002 - every invariant's
        """Return the rule."""
        number = pl.col(self.number)
        # The same item may come twice: from two pages, or for two names of one slot.
        each = (number.min(), number.max(), number.n_unique())
        least, most, count = (part.over(self.within) for part in each)
        has_gap = count != most - least + 1
        if self.first is not None:
            has_gap |= (least != self.first) & (count > 1)
        return Rule(has_gap, self._explain)

    def _explain(self, row: Mapping[str, Any]) -> str:
        group = ", ".join(f"{name} {shorten(row[name])}" for name in self.within)
        return f"an item is missing: the numbers in {self.number} of {group} have a gap"


@dataclass(frozen=True)
class WholeCommittee(Invariant):
    """Each period has all seats of its sync committee: a missing one moves all later seats."""

    def build(self, chain: Chain) -> Rule:
        """Return the rule on *chain*."""
        size = chain.sync_committee_size
        return Rule(
            pl.col("seat").n_unique().over("period") != size,
            lambda row: (
                f"the committee of period {row['period']} does not have {size} seats, "
                "so the seat of each validator is uncertain"
            ),
        )


@dataclass(frozen=True)
class SamePubkey(Invariant):
    """All rows of a validator have the same public key, which is part of the key of the table."""

    def build(self, chain: Chain) -> Rule:  # noqa: ARG002 - every invariant's
        """Return the rule."""
        validator, pubkey = pl.col("validator_index"), pl.col("pubkey")
        is_other = pubkey != pubkey.first().over(validator)
        return Rule(
            validator.is_not_null() & is_other,
            lambda row: (
                f"validator_index {row['validator_index']} has more than one pubkey, "
                f"one of them is {shorten(row['pubkey'])}"
            ),
        )


@dataclass(frozen=True)
class SameAddress(Invariant):
    """The address in the response is the requested one, if an address was requested."""

    def build(self, chain: Chain) -> Rule:  # noqa: ARG002 - every invariant's
        """Return the rule."""
        requested = pl.col("requested").str.to_lowercase()
        return Rule(
            requested.str.starts_with("0x") & (requested != pl.col("address")),
            lambda row: f"{row['address']} is not the requested {row['requested']}",
        )


@cache
def build_rules(
    columns: tuple[Column, ...], invariants: tuple[Invariant, ...], chain: Chain
) -> tuple[list[Rule], list[pl.Expr]]:
    """Return the rules of a table on *chain*: those of its columns, then its invariants.

    The expressions are whether any row violates each rule.
    """
    rules = [rule for column in columns for rule in build_column_rules(column)]
    rules += [invariant.build(chain) for invariant in invariants]
    return rules, [rule.violated.any().alias(str(n)) for n, rule in enumerate(rules)]


def build_column_rules(column: Column) -> list[Rule]:
    """Return the rules that *column* declares: its smallest value, its length."""
    cell, name, rules = pl.col(column.name), column.name, []
    if column.minimum is not None:
        rules.append(
            Rule(cell < column.minimum, lambda row: f"{name} is {row[name]}, a negative amount")
        )
    if isinstance(column, Hex) and column.size is not None:
        rules.append(
            Rule(
                cell.str.len_bytes() != 2 + 2 * column.size,
                lambda row: f"{name} {shorten(row[name])} does not have {column.size} bytes",
            )
        )
    return rules
