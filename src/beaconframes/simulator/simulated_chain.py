"""What a simulated chain adds to the rows of its dataset: a live head, and drawn attestations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.simulator.dataset_at import DatasetAt
from beaconframes.simulator.old_attestations import OldAttestations

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from beaconframes.dataset import Dataset
    from beaconframes.simulator.head_clock import HeadClock


@dataclass(frozen=True)
class SimulatedChain:
    """The additions of a simulated chain; a live one has the head of its *clock*."""

    clock: HeadClock | None = None

    def draw_attestations(self, dataset: Dataset) -> OldAttestations:
        """Return the attestations of epochs that *dataset* does not store."""
        return OldAttestations(dataset)

    def show_at(
        self, dataset: Dataset, slot: int, scan: Callable[[str], pl.LazyFrame]
    ) -> DatasetAt:
        """Return *dataset* as of the live head at *slot*; *scan* reads its tables."""
        assert self.clock is not None
        return DatasetAt(dataset, self.clock.head_at(slot), scan)
