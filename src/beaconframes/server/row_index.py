"""Indices of rows in memory: the rows with a number are found by position, without a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    import polars as pl
    from numpy.typing import NDArray

Place = TypeVar("Place", bound=np.integer)


@dataclass(frozen=True)
class Window:
    """The rows of a range of epochs for all validators, in the order of an answer."""

    rows: pl.DataFrame
    validators: NDArray[np.int64]
    """The validator of each row, sorted."""
    positions: NDArray[np.uint32]
    """The position of each row in that order."""

    def select(self, indices: Collection[int]) -> pl.DataFrame:
        """Return the rows of the validators with these *indices*, in the order of an answer."""
        return self.rows[find_all(self.validators, self.positions, indices)]

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        index = self.validators.nbytes + self.positions.nbytes
        return int(self.rows.estimated_size()) + index


@dataclass(frozen=True)
class NumberIndex:
    """The positions of a table's rows by a number, such as the slot of a block."""

    numbers: NDArray[np.int64]
    """The number of each row, sorted."""
    ranks: NDArray[np.intp]
    """The place of each row in the order of an answer."""
    positions: NDArray[np.uint32]
    """The position of each row in the table, in the order of an answer."""

    @classmethod
    def build(cls, numbers: NDArray[np.int64], positions: NDArray[np.uint32]) -> NumberIndex:
        """Return the index of rows, given in the order of an answer."""
        ranks = np.argsort(numbers, kind="stable")
        return cls(numbers[ranks], ranks, positions)

    def find(self, numbers: Collection[int]) -> NDArray[np.uint32]:
        """Return the positions of the rows with these *numbers*, in the order of an answer."""
        return self.positions[find_all(self.numbers, self.ranks, numbers)]

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return self.numbers.nbytes + self.ranks.nbytes + self.positions.nbytes


def find_all(
    numbers: NDArray[np.int64], places: NDArray[Place], wanted: Collection[int]
) -> NDArray[Place]:
    """Return the *places* of the sorted *numbers* that are *wanted*, in ascending order."""
    keys = np.array(sorted(wanted), dtype=np.int64)
    first = np.searchsorted(numbers, keys, "left")
    last = np.searchsorted(numbers, keys, "right")
    found = [places[begin:end] for begin, end in zip(first, last, strict=True)]
    return np.sort(np.concatenate(found))
