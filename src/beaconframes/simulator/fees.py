"""Priority fees of blocks, in whole wei."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Ints

_STEPS: Final = 1024
_BITS: Final = 20  # of the position between two steps
_SPREAD: Final = 0.9
_YIELD_PER_MILLE: Final = 5  # of the stake, in a year
_BLOCKS_PER_YEAR: Final = 2_628_000


class FeeTable:
    """Draws log-normal fees whose mean grows with the stake, so that the yield is plausible.

    Fees are drawn from a table of quantiles with integers: all systems give the same digits.
    """

    def __init__(self, stake: int) -> None:
        """Build the table of quantiles for a total *stake* in gwei."""
        # The median of a log-normal with this spread is two thirds of its mean.
        median = stake * 10**9 * 2 // 3 * _YIELD_PER_MILLE // 1000 // _BLOCKS_PER_YEAR
        normal = NormalDist()
        quantiles = [normal.inv_cdf((step + 0.5) / (_STEPS + 1)) for step in range(_STEPS + 1)]
        self._table = np.array(
            # Rounded to a millionth: the results of exp() differ between systems.
            [round(math.exp(_SPREAD * q) * 10**6) * median // 10**6 for q in quantiles],
            dtype=np.int64,
        )

    @property
    def mean(self) -> int:
        """Return the mean fee of a block, in wei."""
        return int((self._table[1:] + self._table[:-1]).sum()) // (2 * _STEPS)

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """Return the fees of *count* blocks."""
        drawn = rng.integers(0, _STEPS << _BITS, count)
        step, position = drawn >> _BITS, drawn & ((1 << _BITS) - 1)
        low, high = self._table[step], self._table[step + 1]
        # Divided first, because fee times position would overflow 64 bits for a very large stake.
        width = high - low
        whole = (width >> _BITS) * position
        drawn_fees: Ints = low + whole + (((width & ((1 << _BITS) - 1)) * position) >> _BITS)
        return drawn_fees
