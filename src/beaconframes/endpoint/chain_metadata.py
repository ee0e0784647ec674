"""What a dataset says about itself: its chain, and where that ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from beaconframes.calendar import Chain
from beaconframes.endpoint import Head
from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from beaconframes.dataset import Dataset


@dataclass(frozen=True)
class Facts:
    """The chain of a dataset and its end."""

    chain: Chain
    head: Head

    @classmethod
    def of(cls, dataset: Dataset) -> Facts:
        """Read the facts of *dataset*; one without them cannot be served."""
        meta = dataset.meta
        try:
            described: dict[str, Any] = dict(meta["chain"])
            described["genesis"] = datetime.fromisoformat(described["genesis"])
            chain = Chain(**described)
            head = Head(meta["latest_epoch"], meta["finalized_epoch"], meta["latest_slot"])
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(
                f"the dataset does not say which chain it is of, or where it ends ({error})",
                hint="Serve a dataset that beaconframes wrote",
            ) from None
        return cls(chain, head)
