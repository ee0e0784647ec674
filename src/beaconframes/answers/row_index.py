"""Indices of rows in memory: the rows with a number are found by position, without a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

    import polars as pl
    from numpy.typing import NDArray


@dataclass(frozen=True)
class NumberIndex:
    """The positions of rows by a number, such as the slot of a block."""

    numbers: NDArray[np.int64]
    """The different numbers, sorted."""
    starts: NDArray[np.uint32]
    """Where the ranks of each number start, and the number of ranks."""
    ranks: NDArray[np.uint32]
    """The place of each row in the order of an answer, sorted by number."""
    positions: NDArray[np.uint32]
    """The position of each row, in the order of an answer."""

    @classmethod
    def build(cls, rows: pl.DataFrame) -> NumberIndex:
        """Return the index of *rows*: their number and position, in the order of an answer."""
        numbers, positions = (column.to_numpy() for column in rows)
        ranks = np.argsort(numbers, kind="stable").astype(np.uint32)
        found, starts = np.unique(numbers[ranks], return_index=True)
        ends = np.append(starts, len(ranks)).astype(np.uint32)
        return cls(found, ends, ranks, positions)

    def find(self, numbers: Collection[int]) -> NDArray[np.uint32]:
        """Return the positions of the rows with these *numbers*, in the order of an answer."""
        wanted = np.array(sorted(numbers), dtype=np.int64)
        first = np.searchsorted(self.numbers, wanted, "left")
        last = np.searchsorted(self.numbers, wanted, "right")
        bounds = zip(self.starts[first].tolist(), self.starts[last].tolist(), strict=True)
        ranks = [self.ranks[begin:end] for begin, end in bounds]
        # The ranks of one number are sorted.
        return self.positions[ranks[0] if len(ranks) == 1 else np.sort(np.concatenate(ranks))]

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        arrays = (self.numbers, self.starts, self.ranks, self.positions)
        return sum(array.nbytes for array in arrays)


class Window:
    """The rows of all validators in a range of units, sorted by validator."""

    def __init__(self, name: tuple[Hashable, ...], rows: pl.DataFrame, index: NumberIndex) -> None:
        """Sort *rows*, whose positions are those of *index*."""
        self.name = name
        self.rows = rows[index.positions[index.ranks]].rechunk()
        positions = np.empty_like(index.positions)
        positions[index.ranks] = np.arange(len(positions), dtype=positions.dtype)
        self.index = replace(index, positions=positions)

    def find(self, validators: Collection[int]) -> NDArray[np.uint32] | slice:
        """Return where the rows of the *validators* are, in the order of an answer."""
        positions = self.index.find(validators)
        if len(validators) == 1 and len(positions):
            # They are consecutive, and a slice copies nothing.
            return slice(int(positions[0]), int(positions[0]) + len(positions))
        return positions

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return int(self.rows.estimated_size()) + self.index.size
