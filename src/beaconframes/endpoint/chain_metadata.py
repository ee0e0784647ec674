"""The chain of a dataset and its head, as stated in the metadata of the dataset."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from beaconframes.calendar import Chain
from beaconframes.endpoint.chain_head import Head
from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ChainMetadata:
    """The chain of a dataset and its head."""

    chain: Chain
    head: Head

    @classmethod
    def parse(cls, meta: Mapping[str, Any]) -> ChainMetadata:
        """Return the chain and the head from the metadata of a dataset.

        Raises
        ------
        DatasetError
            The metadata do not have them.
        """
        try:
            described: dict[str, Any] = dict(meta["chain"])
            described["genesis"] = datetime.fromisoformat(described["genesis"])
            chain = Chain(**described)
            head = Head(meta["latest_epoch"], meta["finalized_epoch"], meta["latest_slot"])
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(
                f"the dataset does not state its chain and its head ({error})",
                hint="Use a dataset that beaconframes wrote",
            ) from None
        return cls(chain, head)
